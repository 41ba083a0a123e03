"""`cheapest` of `terms`: tables where they cost less than counting, and who decides it."""

from __future__ import annotations

import numpy as np
import pytest
from tests.engine.contract import as_text

from nearcast.index.arena import Memory
from nearcast.kinds import KINDS
from nearcast.kinds.terms import cheapest
from nearcast.kinds.terms.cheapest import Cheapest, Costs, cheaper
from nearcast.model.space import Space
from nearcast.testing.cases import publish, subscribe
from nearcast.testing.drive import go_on, plan
from nearcast.testing.oracle import replay

TERMS = KINDS["terms"]
Json = dict[str, object]
NO = np.zeros(1, np.bool_)
YES = np.ones(1, np.bool_)


def costs(members: float, every: float, window: float, changes: float = 1.0) -> Costs:
    """Half of the objects are in the regions; one comes in a millisecond."""
    return made(1, members, every, window, changes)


def made(n: int, members: float, every: float, window: float, changes: float = 1.0) -> Costs:
    """Of `n` groups that are the same."""
    a, b, c, d, e, f = (
        np.full(n, v) for v in (members, every, window, changes / 2, members / 2, 0.5)
    )
    return Costs(a, b, c, 1.0, d, e, f)


def test_many_moments_of_one_window_are_read_from_tables() -> None:
    assert cheaper(costs(50, 1_000, 100_000), NO, 1e12).all()


def test_few_moments_are_counted() -> None:
    assert not cheaper(costs(2, 1_000_000, 100_000), NO, 1e12).any()


def test_a_group_with_little_in_common_is_counted() -> None:
    assert not cheaper(costs(50, 100_000, 100_000, changes=50), NO, 1e12).any()


def test_tables_have_no_more_room_than_is_given() -> None:
    both = made(2, 50.0, 1000.0, 1e5)
    one = float(both.table_bytes[0])
    assert cheaper(both, np.zeros(2, np.bool_), 1.5 * one).sum() == 1
    assert not cheaper(both, np.zeros(2, np.bool_), 0.5 * one).any()


def test_what_is_there_stays_if_both_cost_alike() -> None:
    even = costs(8, 1_000, 1_000)
    even.counting = even.tables.copy()
    assert cheaper(even, YES, 1e12).all()
    assert not cheaper(even, NO, 1e12).any()


@pytest.mark.parametrize(("every", "grouped"), [(2, True), (40_000, False)])
def test_an_index_decides_by_what_its_shard_sees(every: int, grouped: bool) -> None:
    """Ten like subscriptions, objects in all of their regions."""
    query = {"kind": "terms", "k": 2, "window": 40, "every": every}
    log: list[Json] = [
        subscribe(f"s{n}", 0, query | {"region": {"bbox": [n / 100, -5, 9, 5]}}) for n in range(10)
    ]
    log += [publish(f"o{n}", 50 + n, 5, 0, "a", f"w{n % 7}") for n in range(120)]
    log += [publish("later", 40_100, 5, 0, "b")]
    index = Cheapest(Space.PLANAR, Memory())
    batches = plan(log, TERMS, Space.PLANAR, cuts=range(10, 130, 8))
    found = go_on(index, batches[:-1], TERMS)
    assert (index.figures()["in_groups"] > 0) == grouped
    found += go_on(index, batches[-1:], TERMS)
    right = replay(log, Space.PLANAR).notifications
    assert [as_text(n) for n in found] == [as_text(n) for n in right]


def test_groups_that_do_not_pay_any_more_are_dissolved(monkeypatch: pytest.MonkeyPatch) -> None:
    query = {"kind": "terms", "k": 2, "window": 40, "every": 2, "region": {"bbox": [0, 0, 9, 9]}}
    log: list[Json] = [subscribe(f"s{n}", 0, query) for n in range(10)]
    log += [publish(f"o{n}", 50 + n, 5, 5, "a") for n in range(300)]
    index = Cheapest(Space.PLANAR, Memory())
    batches = plan(log, TERMS, Space.PLANAR, cuts=range(10, 310, 8))
    go_on(index, batches[:9], TERMS)
    assert index.figures()["in_groups"] == 10
    monkeypatch.setattr(cheapest, "CHANGED_NS", 1e9)
    go_on(index, batches[9:], TERMS)
    assert index.figures()["in_groups"] == 0
