"""Every range router with every range index: the engine reports what the oracle reports."""

from __future__ import annotations

import math
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import cast

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.contract import Miniature, run_log
from tests.engine.edges import crowded, objects_by_shard, outline, world

from nearcast.engine.moves.control import Controls
from nearcast.engine.options.settings import Settings
from nearcast.kinds import KINDS
from nearcast.model.space import Space
from nearcast.routing import ROUTERS
from nearcast.testing.logs import random_log
from nearcast.testing.oracle import Order
from nearcast.testing.strategies import event_logs, spaces

RANGE_ROUTERS = list(KINDS["range"].routers)
RANGE_INDEXES = KINDS["range"].indexes
PRODUCT = [f"{router}+{index}" for router in RANGE_ROUTERS for index in RANGE_INDEXES]
PLANNED = [name for name in RANGE_ROUTERS if ROUTERS[name].plans]
every_strategy = pytest.mark.parametrize("strategy", PRODUCT)


def settings_of(
    strategy: str, folder: Path, order: Order, shards: int = 3, warmup: int = 8,
    space: Space = Space.GEOGRAPHIC,
) -> Settings:  # fmt: skip
    return Settings(
        space=space,
        shards=shards,
        strategies={"range": strategy},
        order=order,
        warmup=warmup,
        arena=str(folder / "arena"),
    )


def planned_on_the_way(run: Miniature) -> bool:
    """Whether a router that plans began without a table, and had one before the last batch."""
    controls = Controls(run.checkpoint, run.settings)
    tables = [bool(controls.routers(n)["range"].table) for n in (0, run.next - 1)]
    return tables == [False, True]


def check_edges_of_the_world(strategy: str, folder: Path) -> None:
    """Poles, the antimeridian, the whole world, a word that all have; a plan half-way through."""
    run = run_log(folder, world(), settings_of(strategy, folder, "time"), 8)
    if strategy.partition("+")[0] in PLANNED:
        assert planned_on_the_way(run)


def check_random_edges(strategy: str, folder: Path) -> None:
    """A live stream with late events, some batches of which come again."""
    rng = Random(strategy)
    space = rng.choice(list(Space))
    events = random_log(rng.randrange(1000), space, 60, 0.3, late_controls=True)
    settings = settings_of(strategy, folder, "arrival", rng.choice((2, 3)), 6, space)
    run_log(folder, events, settings, 9, rng)


CHECKS = (check_edges_of_the_world, check_random_edges)


@every_strategy
def test_the_edges_of_the_world(strategy: str, memory: Path) -> None:
    check_edges_of_the_world(strategy, memory)


@every_strategy
def test_random_edges(strategy: str, memory: Path) -> None:
    check_random_edges(strategy, memory)


@pytest.mark.parametrize("part", range(4))  # so that two cores share them
@given(data=st.data())
@hypothesis.settings(max_examples=10)
def test_neither_strategy_nor_batches_show_in_any_log(
    module_memory: Path, part: int, data: st.DataObject
) -> None:
    del part
    space = data.draw(spaces)
    order = cast(Order, data.draw(st.sampled_from(["time", "arrival"])))
    strategy = data.draw(st.sampled_from(PRODUCT))
    events = data.draw(event_logs(space, 30))
    trouble = data.draw(st.randoms(use_true_random=False))
    with TemporaryDirectory(dir=module_memory) as name:
        shards, warmup = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 8))
        settings = settings_of(strategy, Path(name), order, shards, warmup, space)
        run_log(Path(name), events, settings, data.draw(st.integers(2, 12)), trouble)


def in_turn(router: str) -> str:
    """A router with one of the indexes, such that all of them have their turn."""
    return f"{router}+{RANGE_INDEXES[PLANNED.index(router) % len(RANGE_INDEXES)]}"


def test_every_index_has_its_turn() -> None:
    assert {in_turn(router).partition("+")[2] for router in PLANNED} == set(RANGE_INDEXES)


@pytest.mark.parametrize("router", PLANNED)
def test_polygons_of_ten_thousand_vertices(router: str, memory: Path) -> None:
    rng = Random(router)
    events = [outline("large", 0, 10_000, 20.0), outline("small", 0, 10_000, 3.0)]
    for n in range(1, 40):
        away, angle = rng.choice((0.0, 2.99, 3.01, 19.99, 20.01, 30.0)), rng.uniform(0, math.tau)
        at = [away * math.cos(angle), away * math.sin(angle)]
        events.append({"op": "publish", "id": f"o{n}", "time": n, "at": at, "text": "a"})
    events.insert(20, outline("late", 19, 10_000, 3.0))
    run = run_log(memory, events, settings_of(in_turn(router), memory, "time"), 8)
    assert planned_on_the_way(run)


@pytest.mark.parametrize("router", [n for n in PLANNED if "text" not in n])
def test_shards_that_receive_nothing(router: str, memory: Path) -> None:
    """Once there is a plan all is in one place: the shards of other places get no object."""
    run = run_log(memory, crowded(), settings_of(in_turn(router), memory, "time", 5), 10)
    got = objects_by_shard(run)
    assert min(got) == 0
    assert max(got) > 0
