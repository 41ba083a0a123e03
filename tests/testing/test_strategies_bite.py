"""What whole strategies are checked by can fail: red for routers and moves that are broken."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.engine.contract import run_log
from tests.engine.decisions import WAYS, index_for, made
from tests.engine.edges import crowded, objects_by_shard
from tests.engine.test_product import CHECKS, settings_of
from tests.recovery.test_balance_steps import crash_at_each_point
from tests.testing.broken import Duplicates, FlatWorld, LosesBorders
from tests.testing.broken_routers import BROKEN

from nearcast.engine.output import batch_files as sinks
from nearcast.index import INDEXES
from nearcast.index.arena import Storage
from nearcast.kinds import KINDS
from nearcast.model.space import Space
from nearcast.routing import ROUTERS, Router
from nearcast.routing.grid import leaving
from nearcast.routing.orders import Leaving
from nearcast.routing.sstd import qt_router
from nearcast.routing.sstd.leaving import leaving_by_tree

# Nobody moves by these, so there is nothing to spoil: new subscriptions go by a new strategy, and
# owners stay where they are under new bounds.
STAYING = ("repartition", "new bounds")


def bites(strategy: str, folder: Path) -> bool:
    """Whether some check of the product does not let the strategy pass."""
    for check in CHECKS:
        try:
            check(strategy, folder / check.__name__)
        except AssertionError:  # a strategy that falls over would prove nothing
            return True
    return False


@pytest.mark.parametrize("router", BROKEN, ids=lambda router: router.name)
def test_every_broken_router_is_bitten(
    router: type[Router], memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ROUTERS, router.name, router)
    monkeypatch.setitem(KINDS["range"].routers, router.name, "scan")
    assert bites(f"{router.name}+scan", memory)


@pytest.mark.parametrize("index", [LosesBorders, FlatWorld, Duplicates], ids=lambda i: i.__name__)
def test_broken_indexes_are_bitten_behind_a_router(
    index: Any, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(index):  # type: ignore[misc]
        name = "broken"

        def __init__(self, space: Space, storage: Storage) -> None:
            super().__init__(KINDS["range"], space, storage)

    monkeypatch.setitem(INDEXES["regions"], Broken.name, Broken)
    assert bites("tornado+broken", memory)


def test_shards_of_a_router_that_sends_everything_everywhere_receive_something(
    memory: Path,
) -> None:
    run = run_log(memory, crowded(), settings_of("broadcast+scan", memory, "time", 5), 10)
    assert min(objects_by_shard(run)) > 0


@pytest.mark.parametrize("name", [n for n, way in WAYS.items() if way.kind not in STAYING])
def test_each_decision_that_moves_nobody_is_bitten(
    name: str, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned, by_tree = leaving._concerned, leaving_by_tree

    def nobody(router: Any, following: Any, index: Any, slots: Any) -> Any:
        concerned = planned(router, following, index, slots)
        return concerned if router.grid is None else np.empty(0, np.int64)

    def nothing(router: Any, following: Any, shard: int, index: Any, slots: Any) -> Any:
        moved = by_tree(router, following, shard, index, slots)
        none = np.empty(0, np.int64)
        return moved if router.tree is None else Leaving(none, none, none)

    monkeypatch.setattr(leaving, "_concerned", nobody)
    monkeypatch.setattr(qt_router, "leaving_by_tree", nothing)
    with pytest.raises(AssertionError, match="lost"):
        made(WAYS[name], index_for(WAYS[name], "time"), "time", memory)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["vertical shift", "the end of the old strategy"])
def test_a_sink_that_writes_again_what_it_has_written_is_bitten(
    name: str, memory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which shows only where a crash falls between the files and Spark's note of the batch."""
    tries = count()

    def commit(out: Path, files: dict[str, str]) -> None:
        sinks.commit(
            out, {f"{to.removesuffix('.jsonl')}-{next(tries)}.jsonl": files[to] for to in files}
        )

    monkeypatch.setattr("nearcast.engine.output.commit.commit", commit)
    monkeypatch.setenv("NEARCAST_FAULTS", str(tmp_path))
    with pytest.raises(AssertionError, match="sink-renamed"):
        crash_at_each_point(WAYS[name], "time", memory, tmp_path)
