"""Kinds that keep objects: every shard finds what it needs of the past, after moves and crashes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.engine.contract import run_log
from tests.kinds.recent import RecentKind

from nearcast.engine.options.settings import Settings
from nearcast.kinds import KINDS, kinds_of
from nearcast.model.space import Space
from nearcast.testing.cases import busy_log, publish, subscribe, unsubscribe
from nearcast.testing.oracle import replay

Json = dict[str, Any]
PLUGIN = "tests.kinds.recent"
KINDS_HERE = kinds_of([PLUGIN])
SHARDS = 3
WORLD = {"bbox": [-1e300, -1e300, 1e300, 1e300]}


def settings_of(memory: Path, **more: Any) -> Settings:
    given: Json = {"shards": SHARDS, "warmup": 20, **more}
    return Settings(space=Space.PLANAR, plugins=(PLUGIN,), arena=str(memory), **given)


@pytest.mark.parametrize("store", ["curve", "rtree", "scan"])
@pytest.mark.parametrize("router", ["hash", "random", "broadcast"])
def test_it_reports_what_the_oracle_reports(
    tmp_path: Path, memory: Path, router: str, store: str
) -> None:
    """Batches come again, some on lost arenas; `random` moves subscriptions, not objects."""
    log = busy_log(5, Space.PLANAR, 150, late=0.2, kinds=KINDS_HERE)
    strategies = {"recent": router, "range": "tornado"}
    settings = settings_of(memory, strategies=strategies, store=store)
    run_log(tmp_path, log, settings, 12, Random(3))
    counted = replay(log, Space.PLANAR, kinds=KINDS_HERE).of("recent")
    assert sum(n["count"] > 3 for n in counted) > 50


def objects(first: int, last: int) -> list[Json]:
    return [publish(f"o{n}", n, n % 5, 0, "a") for n in range(first, last)]


def kept(run: Any) -> list[int]:
    """How many objects the files of each shard hold for the kind."""
    number = RecentKind.number
    folders = [run.checkpoint / "objects" / f"{shard:04d}-{number}" for shard in range(SHARDS)]
    return [len(list(f.iterdir())) if f.is_dir() else 0 for f in folders]


def test_what_no_subscription_looks_at_is_let_go(tmp_path: Path, memory: Path) -> None:
    """Files of the past stay few, however long the log; on shards without subscriptions too."""
    looks: Sequence[Json] = [
        subscribe("s", 0, {"kind": "recent", "region": WORLD, "window": 30}),
        *objects(1, 600),
        unsubscribe("s", 600),
        *objects(601, 900),
    ]
    run = run_log(tmp_path, looks, settings_of(memory), 20)
    assert all(1 <= n <= 12 for n in kept(run)), kept(run)
    sizes = [run.states[run.next][shard].kept["recent"] for shard in range(SHARDS)]
    assert all(len(files.slices) <= 8 for files in sizes)


def test_nobody_pays_who_does_not_use_it(tmp_path: Path, memory: Path) -> None:
    """Without a subscription of the kind nothing is stored."""
    everything = KINDS["range"].examples.everything
    log = [subscribe("r", 0, everything), *objects(1, 50)]
    run = run_log(tmp_path, log, settings_of(memory), 10)
    assert kept(run) == [0] * SHARDS
    assert not run.states[run.next][0].kept
