"""The steps of the engine against the oracle, without a JVM: many logs, cuts and strategies."""

from __future__ import annotations

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.contract import (
    Miniature,
    difference,
    expected,
    reported,
    run_log,
    write_log,
)

from nearcast.engine.moves import parcels as transfer
from nearcast.engine.moves.parcels import Moved
from nearcast.engine.options.settings import Settings
from nearcast.engine.output.reports import Reports
from nearcast.kinds import KINDS
from nearcast.model.space import Space
from nearcast.routing import ROUTERS
from nearcast.testing.logs import random_log
from nearcast.testing.oracle import Order
from nearcast.testing.strategies import event_logs, spaces

PLANNED = [name for name, router in ROUTERS.items() if router.keeps_costs]
KNN_INDEXES = KINDS["knn"].indexes
STRATEGIES: tuple[dict[str, str], ...] = (
    {},
    {"range": "random", "knn": "random"},
    {"range": "random+pyramid", "knn": "hash"},
    {"range": "broadcast", "knn": "random+scan"},
    {"range": "random+scan", "knn": "broadcast+inverted"},
)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("order", ["time", "arrival"])
def test_neither_shards_nor_batches_show(seed: int, order: Order, memory: Path) -> None:
    rng = Random(f"{seed} {order}")
    space = rng.choice(list(Space))
    events = random_log(seed, space, 80, rng.choice((0.0, 0.3)), late_controls=True)
    settings = Settings(
        space=space,
        shards=rng.choice((1, 2, 3, 5)),
        strategies=STRATEGIES[seed % len(STRATEGIES)],
        order=order,
        arena=str(memory / "arena"),
    )
    run_log(memory, events, settings, rng.choice((3, 10, 25, 1000)), splits=rng.choice((1, 2, 3)))


def _moved(run: Miniature) -> int:
    """Subscriptions that went to other shards."""
    return sum(r.moved for record in Reports(run.checkpoint).all() for r in record.reports)


@pytest.mark.parametrize("order", ["time", "arrival"])
def test_an_index_that_is_built_anew_before_more_comes_does_not_show(
    order: Order, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nearcast.routing.random.SHARE", 1.0)  # every other batch all go anywhere
    renumbered = []

    def take_in(*given: Any) -> Moved:
        moved = transfer.take_in(*given)
        renumbered.append(moved.renumbered)
        return moved

    monkeypatch.setattr("nearcast.engine.shard.step.take_in", take_in)
    rng = Random(order)
    for seed in range(3):
        late = 0.3 if order == "arrival" else 0.0
        events = random_log(seed, Space.PLANAR, 80, late, late > 0)
        folder = memory / str(seed)
        folder.mkdir()
        settings = Settings(
            space=Space.PLANAR,
            shards=5,
            strategies={"range": "random+pyramid", "knn": "random"},
            order=order,
            arena=str(folder / "arena"),
        )
        run_log(folder, events, settings, 7, rng)
    assert any(renumbered)


@pytest.mark.parametrize("router", PLANNED)
@pytest.mark.parametrize("index", KNN_INDEXES)
@pytest.mark.parametrize("order", ["time", "arrival"])
def test_a_plan_in_the_middle_does_not_show(
    router: str, index: str, order: Order, memory: Path
) -> None:
    rng = Random(f"{router} {index} {order}")
    late = 0.3 if order == "arrival" else 0.0
    for n in range(5):  # not every log is such that a plan moves something
        space = rng.choice(list(Space))
        folder = memory / str(n)
        settings = Settings(
            space=space,
            shards=rng.choice((2, 3)),
            strategies={"knn": f"{router}+{index}"},
            order=order,
            warmup=rng.randint(1, 25),
            arena=str(folder / "arena"),
        )
        events = random_log(rng.randrange(1000), space, 100, late, late > 0, crowd=True)
        if _moved(run_log(folder, events, settings, rng.choice((4, 7, 10)), rng)):
            return
    pytest.fail("no plan moved anything")


@given(data=st.data())
@hypothesis.settings(max_examples=12)
def test_a_plan_anywhere_in_any_log_does_not_show(module_memory: Path, data: st.DataObject) -> None:
    """Also where it comes too late, finds no subscriptions, or finds them all in one place."""
    space = data.draw(spaces)
    order = data.draw(st.sampled_from(["time", "arrival"]))
    strategy = f"{data.draw(st.sampled_from(PLANNED))}+{data.draw(st.sampled_from(KNN_INDEXES))}"
    late = 0.2 if order == "arrival" else 0.0
    events = data.draw(event_logs(space, 30, late, late > 0, data.draw(st.booleans())))
    with TemporaryDirectory(dir=module_memory) as folder:
        settings = Settings(
            space=space,
            shards=data.draw(st.integers(2, 3)),
            strategies={"knn": strategy},
            order=order,
            warmup=data.draw(st.integers(1, 8)),
            arena=str(Path(folder, "arena")),
        )
        rng = data.draw(st.randoms(use_true_random=False))
        run_log(Path(folder), events, settings, data.draw(st.integers(2, 9)), rng)


def test_a_cut_within_an_instant_does_not_show(memory: Path) -> None:
    """The window lets go at 5, but at 5 the subscription has ended, as the next batch says."""
    query = {"kind": "knn", "at": [0, 0], "k": 1, "window": 5}
    events = [
        {"op": "subscribe", "id": "s", "time": 0, "query": query},
        {"op": "publish", "id": "o", "time": 0, "at": [0, 0]},
        {"op": "unsubscribe", "id": "another", "time": 5},
        {"op": "unsubscribe", "id": "s", "time": 5},
    ]
    wanted = expected(events, "geographic")
    assert wanted.total() == 1
    for batch_events in (1, 2, 3, 4):
        folder = memory / f"{batch_events}"
        folder.mkdir()
        run = Miniature(Settings(shards=1, arena=str(folder / "arena")), folder)
        run.plan(write_log(folder / "log.jsonl", events), batch_events)
        run.finish()
        assert difference(reported(run.out), wanted) == ""
