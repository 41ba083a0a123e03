"""When shards get the order to write statistics: loads too uneven, or a new strategy due."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nearcast.engine.moves.balancer import STATS, Balancer
from nearcast.routing.balance import CELLS, PLAN, Balance, Counts, Rest
from nearcast.routing.base import Sample
from nearcast.routing.grid.survey import join
from nearcast.routing.ps2stream.hybrid import Ps2Stream

EVEN, UNEVEN = ([Counts(objects=n) for n in of] for of in ((100, 100), (190, 10)))


def router() -> Ps2Stream:
    """Two shards, a plan of nothing, in use from batch 0 on."""
    none = np.empty(0)
    sample = Sample(none, none, np.zeros(1, np.int64), np.empty(0, np.uint64))
    return Ps2Stream(2, Ps2Stream(2).plan(sample, join([]), {}).data)


def queried(batch: int, counts: list[Counts], rest: Rest | None, **balance: object) -> str | None:
    settings = Balance.from_json({"mode": "auto", "least": 0, "every": 20, "wait": 4, **balance})
    order = Balancer(Path("nowhere"), settings).look(batch, "range", router(), counts, rest)
    return order[STATS] if order else None


def test_a_new_strategy_is_due_every_so_often_and_a_little_later_if_something_moved() -> None:
    due = [batch for batch in range(1, 60) if queried(batch, EVEN, None) == PLAN]
    assert due == [*range(20, 25), *range(40, 45)]
    assert queried(22, EVEN, Rest(26, 1.0, PLAN)) is None  # it was looked at
    assert queried(22, EVEN, Rest(26, 1.9, CELLS)) == PLAN  # something else was
    assert queried(20, EVEN, None, mode="local") is None


def test_uneven_loads_are_looked_at_unless_there_was_nothing_to_gain() -> None:
    assert queried(5, UNEVEN, None) == CELLS
    assert queried(5, EVEN, None) is None
    assert queried(5, UNEVEN, Rest(9, 1.9)) is None
    assert queried(9, UNEVEN, Rest(9, 1.9)) == CELLS
    assert queried(5, UNEVEN, Rest(9, 1.2)) == CELLS  # it got worse
    assert queried(5, UNEVEN, None, mode="global") == PLAN
    assert queried(5, UNEVEN, None, least=10**9) is None
