"""Global adjustment: two strategies side by side, and nobody is forgotten on the way."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.routing.ps2stream.adjust.decisions import REPARTITION, RETIRE
from nearcast.routing.ps2stream.adjust.strategies import (
    NONE,
    Strategies,
    begin,
    check_due,
    finish,
    places,
    repartition,
    replaced,
    retire,
    routes,
)

EVEN, UNEVEN = np.array([10.0, 10.0]), np.array([18.0, 2.0])


def test_one_strategy_places_and_routes() -> None:
    alone = Strategies(3)
    assert places(alone) == 3
    assert routes(alone) == (3,)


def test_two_strategies_side_by_side() -> None:
    both = begin(Strategies(3), 4, batch=70)
    assert places(both) == 4
    assert routes(both) == (3, 4)
    with pytest.raises(ValueError, match="two strategies"):
        begin(both, 5, batch=80)
    assert routes(finish(both)) == (4,)


def test_checks_come_at_intervals_and_not_while_two_are_in_use() -> None:
    assert not check_due(Strategies(3, since=5), 10, every=10)
    assert check_due(Strategies(3, since=5), 15, every=10)
    assert not check_due(Strategies(3, 2, 5), 1000, every=10)
    assert check_due(finish(Strategies(3, 2, 5)), 1000, every=10)


def test_a_repartitioning_pays_if_it_saves_enough() -> None:
    saves = repartition(Strategies(3), EVEN, EVEN * 0.8, sigma=1.5, gain=0.2)
    assert saves is not None
    assert (saves.kind, saves.version) == (REPARTITION, 3)
    assert "total load 20 to 16" in saves.reason
    assert repartition(Strategies(3), EVEN, EVEN * 0.9, sigma=1.5, gain=0.2) is None
    assert repartition(Strategies(3), EVEN, EVEN, sigma=1.5, gain=0.0) is None
    assert repartition(Strategies(3, 2), EVEN, EVEN * 0.1, sigma=1.5, gain=0.2) is None


def test_a_repartitioning_pays_if_it_balances_at_no_cost() -> None:
    balances = repartition(Strategies(3), UNEVEN, EVEN, sigma=1.5, gain=0.2)
    assert balances is not None
    assert "more than 1.5 times" in balances.reason
    assert repartition(Strategies(3), UNEVEN, EVEN * 1.1, sigma=1.5, gain=0.2) is None


def test_the_old_strategy_goes_when_little_is_left_of_it() -> None:
    both = Strategies(4, 3, 70)
    assert retire(both, 11, 100, 5000, few=0.1, loads=EVEN) is None
    gone = retire(both, 10, 100, 5000, few=0.1, loads=EVEN)
    assert gone is not None
    assert (gone.kind, gone.version, gone.size) == (RETIRE, 3, 5000)
    assert retire(Strategies(4), 0, 100, 0, few=0.1, loads=EVEN) is None
    assert retire(both, 0, 0, 0, few=0.1, loads=EVEN) is not None


def test_a_local_adjustment_of_either_table() -> None:
    both = Strategies(4, 3, 70)
    assert replaced(both, 3, 5) == Strategies(4, 5, 70)
    assert replaced(both, 4, 5) == Strategies(5, 3, 70)
    assert replaced(Strategies(4), 4, 5) == Strategies(5, NONE, 0)


steps = st.lists(st.sampled_from(["subscribe", "end", "begin", "retire", "adjust"]), max_size=60)


@given(steps)
def test_objects_always_go_by_the_table_of_every_subscription(made: list[str]) -> None:
    held: list[int] = []  # the version that has each subscription
    now, latest = Strategies(0), 0
    for batch, step in enumerate(made):
        if step == "subscribe":
            held.append(places(now))
        elif step == "end" and held:
            held.pop(0)
        elif step == "begin" and now.old == NONE:
            latest += 1
            now = begin(now, latest, batch)
        elif step == "retire":
            old = held.count(now.old)
            if retire(now, old, len(held), 0, 0.5, EVEN) is not None:
                held = [now.new if v == now.old else v for v in held]
                now = finish(now)
        elif step == "adjust":
            latest += 1
            version = routes(now)[batch % len(routes(now))]
            held = [latest if v == version else v for v in held]
            now = replaced(now, version, latest)
        assert set(held) <= set(routes(now))
        assert len(routes(now)) <= 2
        assert places(now) in routes(now)
