"""`bounds` is a hint for the cells of a plan, never a filter (SPEC section 1)."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from tests.engine.contract import run_log
from tests.engine.test_product import planned_on_the_way

from nearcast.engine.moves.control import Controls
from nearcast.engine.options.settings import Settings
from nearcast.model.space import Space
from nearcast.routing import ROUTERS
from nearcast.testing.logs import random_log

BY_PLACE = [name for name, router in ROUTERS.items() if router.by_place]
HINTS = [(-1.0, -1.0, 1.0, 1.0), (500.0, 500.0, 501.0, 501.0)]  # a part of the posts; none


def test_routers_that_divide_space() -> None:
    assert BY_PLACE == [
        "ps2stream", "space-grid", "space-kd", "space-r", "tornado", "tornado-uniform",
        "sstd", "sstd-quadtree",
    ]  # fmt: skip


@pytest.mark.parametrize("hint", HINTS, ids=["part", "elsewhere"])
@pytest.mark.parametrize("name", BY_PLACE)
def test_cells_lie_within_the_bounds_and_nothing_is_missed(
    name: str, hint: tuple[float, float, float, float], memory: Path
) -> None:
    rng = Random(f"{name} {hint}")
    settings = Settings(
        space=Space.PLANAR,
        shards=3,
        strategies={"range": name},
        bounds=hint,
        warmup=8,
        arena=str(memory / "arena"),
    )
    run = run_log(memory, random_log(rng.randrange(1000), Space.PLANAR, 100), settings, 10, rng)
    assert planned_on_the_way(run)
    router = Controls(run.checkpoint, settings).routers(run.next - 1)["range"]
    assert tuple(router.picture().bounds) == hint
