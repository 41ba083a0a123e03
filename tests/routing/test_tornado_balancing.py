"""Tornado's routers decide by what shards report: chains, one operation, new bounds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nearcast.routing import Sample
from nearcast.routing.balance import Balance, Counts
from nearcast.routing.grid import table as gt
from nearcast.routing.grid.live import Adjustment, Period
from nearcast.routing.grid.survey import RegionSurvey, take
from nearcast.routing.tornado.decision import NEW_BOUNDS
from nearcast.routing.tornado.pieces import pieces_of
from nearcast.routing.tornado.refit import refitted
from nearcast.routing.tornado.router import Tornado

SHARDS = 4
WORD = np.array([4], np.uint64)
AUTO = Balance(mode="auto", threshold=1.2, least=0)


def objects_at(rng: np.random.Generator, x: float, y: float, spread: float, n: int) -> Sample:
    at = rng.normal((x, y), spread, (n, 2))
    return Sample(at[:, 0].copy(), at[:, 1].copy(), np.arange(n + 1), np.repeat(WORD, n))


def queries(rng: np.random.Generator, n: int) -> RegionSurvey:
    low = rng.uniform(0, 0.98, (n, 2))
    return RegionSurvey(
        id_hash=np.arange(n, dtype=np.uint64),
        box_offsets=np.arange(n + 1),
        boxes=np.hstack([low, low + 0.02]),
        word_offsets=np.arange(n + 1),
        words=np.repeat(WORD, n),
        conjunction=np.ones(n, bool),
    )


def decided(
    router: Tornado, objects: Sample, held: RegionSurvey, balance: Balance
) -> Adjustment | None:
    """What the shards report of a batch with these objects, and what becomes of it."""
    assert router.grid is not None
    _, to = gt.route_rows(router.grid, *objects)
    reported, counts = [], []
    for shard in range(SHARDS):
        mine = np.flatnonzero(to == shard)
        seen = Sample(
            objects.x[mine], objects.y[mine], np.arange(len(mine) + 1), np.repeat(WORD, len(mine))
        )
        rows, at = gt.place_rows(router.grid, held)
        here = take(held, rows[at == shard])
        reported.append(router.gather_cells(shard, Period(seen, here, here, here), balance))
        counts.append(Counts(len(mine), 0, len(mine), 10 * len(mine), 10 * len(mine), len(mine)))
    return router.rebalance(reported, counts, balance)


@pytest.fixture
def held(rng: np.random.Generator) -> RegionSurvey:
    return queries(rng, 4000)


@pytest.fixture
def router(rng: np.random.Generator, held: RegionSurvey) -> Tornado:
    everywhere = rng.uniform(0, 1, (2, 3000))
    sample = Sample(everywhere[0], everywhere[1], np.arange(3001), np.repeat(WORD, 3000))
    return Tornado(SHARDS, Tornado(SHARDS).plan(sample, held, {"side": 64}).data)


def test_a_jump_is_answered_by_one_chain(
    router: Tornado, held: RegionSurvey, rng: np.random.Generator
) -> None:
    objects = objects_at(rng, 0.3, 0.3, 0.03, 20_000)
    made = decided(router, objects, held, AUTO)
    assert made is not None
    assert made.before.max() > 2.5 * made.before.mean()
    assert made.after.max() <= 1.2 * made.after.mean()
    assert len(made.decisions) > 1
    assert all("C_r" in d["reason"] for d in made.decisions)
    assert len(pieces_of(made.table.cells).boxes) <= SHARDS * AUTO.rectangles
    following = Tornado(SHARDS, gt.pack(made.table))
    assert decided(following, objects, held, AUTO) is None  # it is even now
    # Shards with several rectangles go on, also one operation at a time.
    local = decided(following, objects_at(rng, 0.7, 0.7, 0.03, 20_000), held,
                    replace(AUTO, mode="local"))  # fmt: skip
    assert local is not None
    assert len(local.decisions) == 1


def test_local_tells_no_cells_and_makes_one_operation_of_the_paper(
    router: Tornado, held: RegionSurvey, rng: np.random.Generator
) -> None:
    objects = objects_at(rng, 0.3, 0.3, 0.03, 20_000)
    balance = replace(AUTO, mode="local")
    reported = router.gather_cells(0, Period(objects, held, held, held), balance)
    assert "cells" not in reported
    assert "rows" in reported
    assert "rows" not in router.gather_cells(0, Period(objects, held, held, held), AUTO)
    made = decided(router, objects, held, balance)
    assert made is not None
    assert len(made.decisions) == 1
    assert len(pieces_of(made.table.cells).boxes) == SHARDS


@pytest.mark.parametrize("setting", [{"beta": 1e6}, {"beta": 0.0}, {"horizon": 10**6}])
def test_moves_are_weighed(
    setting: dict[str, float], router: Tornado, held: RegionSurvey, rng: np.random.Generator
) -> None:
    balance = replace(AUTO, **setting)  # type: ignore[arg-type]
    made = decided(router, objects_at(rng, 0.3, 0.3, 0.03, 20_000), held, balance)
    assert (made is None) == (setting.get("beta") == 1e6)


def test_a_hot_spot_outside_of_the_bounds_gets_new_ones(
    router: Tornado, held: RegionSurvey, rng: np.random.Generator
) -> None:
    outside = objects_at(rng, 3.0, -2.0, 0.1, 20_000)
    first = decided(router, outside, held, AUTO)
    assert first is not None
    assert [d["kind"] for d in first.decisions] == [NEW_BOUNDS]
    minx, miny, maxx, maxy = first.table.bounds.tolist()
    assert (minx < 0.1, miny < -2.0, maxx > 3.0, maxy >= 0.9) == (True,) * 4
    assert len(first.table.cells) > 64
    following = Tornado(SHARDS, gt.pack(first.table))
    second = decided(following, outside, held, AUTO)
    assert second is not None
    assert NEW_BOUNDS not in [d["kind"] for d in second.decisions]
    assert second.after.max() < 0.6 * second.before.max()


def test_bounds_of_a_point_can_grow(router: Tornado) -> None:
    assert router.grid is not None
    point = router.grid._replace(bounds=np.array([0.5, 0.5, 0.5, 0.5]))
    table = refitted(point, np.array([0.0, 0.0, 1.0, 1.0]))
    assert table.cells.shape == (64, 64)
    assert gt.owner(table, 0.9, 0.9, np.uint64(4)) == gt.owner(point, 0.9, 0.9, np.uint64(4))


def test_new_bounds_keep_owners(router: Tornado, rng: np.random.Generator) -> None:
    assert router.grid is not None
    table = refitted(router.grid, np.array([-1.0, -1.0, 3.0, 2.0]))
    at = rng.uniform(-1, 3, (2, 5000))
    word = np.uint64(4)
    same = [
        gt.owner(table, x, y, word) == gt.owner(router.grid, x, y, word) for x, y in at.T.tolist()
    ]
    assert np.mean(same) > 0.98
