"""Every router for the objects of highest score: the engine reports what the oracle reports."""

from __future__ import annotations

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import cast

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.contract import Miniature, run_log

from nearcast.engine.moves.control import Controls
from nearcast.engine.options.settings import Settings
from nearcast.kinds import KINDS
from nearcast.model.space import Space
from nearcast.routing import ROUTERS
from nearcast.testing.logs import random_log
from nearcast.testing.oracle import Order
from nearcast.testing.strategies import event_logs, spaces

BEST = KINDS["topk"]
ONLY = {BEST.name: BEST}
INDEXES = list(BEST.indexes)
PLANNED = [name for name in BEST.routers if ROUTERS[name].plans]
WINDOWS = ("count:5", "count:1000", "20ms")


def settings_of(
    strategy: str, folder: Path, order: Order, window: str, shards: int = 3, warmup: int = 8,
    space: Space = Space.PLANAR,
) -> Settings:  # fmt: skip
    return Settings(
        space=space,
        shards=shards,
        strategies={BEST.name: strategy},
        only=(BEST.name,),
        order=order,
        warmup=warmup,
        window=window,
        maxdist=50.0,
        arena=str(folder / "arena"),
    )


def tables(run: Miniature) -> list[bool]:
    """Whether there was a plan, in the first batch and in the last."""
    controls = Controls(run.checkpoint, run.settings)
    return [bool(controls.routers(n)[BEST.name].table) for n in (0, run.next - 1)]


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("router", BEST.routers)
def test_neither_router_nor_index_shows(router: str, index: str, memory: Path) -> None:
    """A live stream with late events, a plan on the way, batches that come again."""
    rng = Random(f"{router}+{index}")
    window = WINDOWS[(INDEXES.index(index) + list(BEST.routers).index(router)) % len(WINDOWS)]
    space = rng.choice(list(Space))
    log = random_log(rng.randrange(1000), space, 90, 0.2, late_controls=True, kinds=ONLY)
    settings = settings_of(f"{router}+{index}", memory, "arrival", window, 3, 6, space)
    run = run_log(memory, log, settings, 9, rng)
    if router in PLANNED:
        assert tables(run) == [False, True]


@given(data=st.data())
@hypothesis.settings(max_examples=12)
def test_neither_plans_nor_batches_show_in_any_log(
    module_memory: Path, data: st.DataObject
) -> None:
    space = data.draw(spaces)
    order = cast(Order, data.draw(st.sampled_from(["time", "arrival"])))
    strategy = f"{data.draw(st.sampled_from(PLANNED))}+{data.draw(st.sampled_from(INDEXES))}"
    log = data.draw(event_logs(space, 40, kinds=ONLY))
    trouble = data.draw(st.randoms(use_true_random=False))
    with TemporaryDirectory(dir=module_memory) as name:
        shards, warmup = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 8))
        window = data.draw(st.sampled_from(WINDOWS))
        settings = settings_of(strategy, Path(name), order, window, shards, warmup, space)
        run_log(Path(name), log, settings, data.draw(st.integers(2, 12)), trouble)
