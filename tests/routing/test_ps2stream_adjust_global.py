"""Global adjustment: when a new strategy begins beside the old one, and when the old one goes."""

from __future__ import annotations

import numpy as np

from nearcast.routing.ps2stream.adjust.decisions import REPARTITION, RETIRE
from nearcast.routing.ps2stream.adjust.strategies import repartition, retire

EVEN, UNEVEN = np.array([10.0, 10.0]), np.array([18.0, 2.0])


def test_a_repartitioning_pays_if_it_saves_enough() -> None:
    saves = repartition(EVEN, EVEN * 0.8, sigma=1.5, gain=0.2)
    assert saves is not None
    assert saves.kind == REPARTITION
    assert "total load 20 to 16" in saves.reason
    assert repartition(EVEN, EVEN * 0.9, sigma=1.5, gain=0.2) is None
    assert repartition(EVEN, EVEN, sigma=1.5, gain=0.0) is None


def test_a_repartitioning_pays_if_it_balances_at_no_cost() -> None:
    balances = repartition(UNEVEN, EVEN, sigma=1.5, gain=0.2)
    assert balances is not None
    assert "more than 1.5 times" in balances.reason
    assert repartition(UNEVEN, EVEN * 1.1, sigma=1.5, gain=0.2) is None


def test_the_old_strategy_goes_when_little_is_left_of_it() -> None:
    assert retire(11, 100, few=0.1, loads=EVEN) is None
    gone = retire(10, 100, few=0.1, loads=EVEN)
    assert gone is not None
    assert gone.kind == RETIRE
    assert retire(0, 0, few=0.1, loads=EVEN) is not None
