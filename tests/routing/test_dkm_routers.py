"""The routers kop, sop and dkm-sks: plans, costs of new subscriptions, tables."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.routing import dkm_twins as twins
from tests.routing.dkm_twins import EVERYWHERE, Obj, Sub, sample_of, survey_of
from tests.wire.rows import control_row

from nearcast.model.errors import NearcastError
from nearcast.routing.arrays import pack, unpack
from nearcast.routing.dkm.dkm_sks import DkmSks, subsets_wanted
from nearcast.routing.dkm.kop import Kop
from nearcast.routing.dkm.plan import PlannedRouter, table_of_plan
from nearcast.routing.dkm.sop import Sop
from nearcast.wire.tables import BALLS, table_of

quick = settings(max_examples=25)

coordinates = st.integers(0, 8).map(float)
word_sets = st.frozensets(st.sampled_from([4, 8, 12, 2**63]), max_size=3)
objects = st.lists(st.builds(Obj, coordinates, coordinates, word_sets), max_size=20)
new = st.lists(
    st.tuples(coordinates, coordinates, word_sets, st.integers(1, 4), st.booleans()), max_size=6
)


@st.composite
def subscriptions(draw: st.DrawFn) -> Sub:
    x, y = draw(coordinates), draw(coordinates)
    radius = draw(st.sampled_from([0.0, 0.5, 3.0, math.inf]))
    return Sub(x, y, draw(word_sets), (x - radius, y - radius, x + radius, y + radius))


many = st.lists(subscriptions(), max_size=20)


def controls_of(asks: list[tuple[float, float, frozenset[int], int, bool]]) -> pa.RecordBatch:
    """(x, y, words, k, whether all of them are wanted)."""
    rows = [
        control_row(
            *(x, y, k, 0),
            op=0,
            id=b"s%d" % i,
            time=1,
            conjunction=conjunction,
            program=sorted(words) if conjunction else [],
            cover=[] if conjunction else sorted(words),
        )
        for i, (x, y, words, k, conjunction) in enumerate(asks)
    ]
    return table_of(rows, BALLS)


def hashes(n: int) -> Any:
    return np.arange(1, n + 1).astype(np.uint64)


def planned(
    router: type[PlannedRouter], m: int, found: list[Obj], subs: list[Sub], **parameters: float
) -> tuple[PlannedRouter, list[int], list[float]]:
    data, _, workers, costs = router(m).plan(sample_of(found), survey_of(subs), parameters)
    assert workers.shape == (len(subs),)
    assert costs.shape == (m,)
    following = router(m, table_of_plan(costs, data=data))
    return following, workers.tolist(), (costs * max(len(found), 1)).round(6).tolist()


def rarest(found: list[Obj], words: frozenset[int], conjunction: bool) -> frozenset[int]:
    """The words that count: of a conjunction the one that the fewest objects have."""
    if not conjunction or not words:
        return words
    return frozenset([min(sorted(words), key=lambda w: sum(w in o.words for o in found))])


def rectangle(found: list[Obj], words: frozenset[int], k: int, x: float, y: float) -> twins.Box:
    radius = twins.reach(found, words, k, x, y)
    return (x - radius, y - radius, x + radius, y + radius)


# -- plans ---------------------------------------------------------------------------------------


@quick
@given(objects, many, st.integers(1, 4))
def test_kop_plan(found: list[Obj], subs: list[Sub], m: int) -> None:
    _, workers, loads = planned(Kop, m, found, subs)
    costs = [float(twins.equation_1(found, s.words)) for s in subs]
    assert (workers, loads) == twins.algorithm_1(costs, m)


@quick
@given(objects, many.filter(bool), st.integers(1, 4), st.integers(1, 5))
def test_sop_plan(found: list[Obj], subs: list[Sub], m: int, theta: int) -> None:
    _, workers, loads = planned(Sop, m, found, subs, theta=theta)
    subsets = twins.space_oriented(found, subs, theta * m)
    of_subset, right = twins.algorithm_1([s.cost for s in subsets], m)
    expected = {i: w for s, w in zip(subsets, of_subset, strict=True) for i in s.members}
    assert workers == [expected[i] for i in range(len(subs))]
    assert loads == right


@quick
@given(objects, many.filter(bool), st.integers(1, 4), st.sampled_from([0, 1, 3]))
def test_dkm_sks_plan(found: list[Obj], subs: list[Sub], m: int, gamma1: int) -> None:
    _, workers, loads = planned(DkmSks, m, found, subs, gamma1=gamma1, gamma2=5)
    subsets = twins.algorithm_2(found, subs, subsets_wanted(len(subs), m, gamma1), 5)
    costs = [0.0] * len(subs)
    for subset in subsets:
        r = twins.around([subs[i] for i in subset.members])
        for i in subset.members:
            costs[i] = float(twins.equation_5(found, subs[i].words, r))
    assert (workers, loads) == twins.algorithm_3(costs, [s.members for s in subsets], m)


@pytest.mark.parametrize("router", [Kop, Sop, DkmSks])
@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize(
    ("found", "subs"),
    [
        ([], []),
        ([Obj(1, 1, frozenset([4]))], []),
        ([], [Sub(1, 1, frozenset([4]), EVERYWHERE)] * 7),
        ([Obj(1, 1, frozenset())] * 3, [Sub(1, 1, frozenset(), (1, 1, 1, 1))] * 7),
        ([Obj(1, 1, frozenset([4]))] * 40, [Sub(1, 1, frozenset([4]), (0, 0, 2, 2))] * 50),
    ],
    ids=["nothing", "no subscriptions", "no objects", "no words", "one spot"],
)
def test_degenerate_inputs(
    router: type[PlannedRouter], m: int, found: list[Obj], subs: list[Sub]
) -> None:
    following, workers, loads = planned(router, m, found, subs)
    assert set(workers) <= set(range(m))
    assert len(workers) == len(subs)
    assert all(math.isfinite(load) for load in loads)
    table = controls_of([(1, 1, frozenset([4]), 1, False), (9, 9, frozenset(), 99, False)])
    costs = following.costs(table)
    assert ((costs > 0) & np.isfinite(costs)).all()
    assert set(following.place(table, hashes(2)).shards.tolist()) <= set(range(m))


@pytest.mark.parametrize("router", [Kop, DkmSks])
def test_a_plan_balances(router: type[PlannedRouter], rng: np.random.Generator) -> None:
    found = [
        Obj(x, y, frozenset(rng.zipf(1.5, 3).tolist())) for x, y in rng.random((300, 2)).tolist()
    ]
    subs = []
    for x, y in rng.random((500, 2)).tolist():
        subs.append(Sub(x, y, frozenset(rng.zipf(1.5, 2).tolist()), (x - 0.1, y, x, y + 0.1)))
    _, _, loads = planned(router, 4, found, subs)
    assert max(loads) - min(loads) < 0.01 * max(loads)


def test_subscriptions_that_no_object_was_like_are_spread() -> None:
    found = [Obj(1, 1, frozenset([4]))]
    _, workers, _ = planned(Kop, 4, found, [Sub(1, 1, frozenset([8]), EVERYWHERE)] * 40)
    assert np.bincount(workers).tolist() == [10] * 4


# -- new subscriptions ---------------------------------------------------------------------------


@quick
@given(objects, new)
def test_kop_costs(found: list[Obj], asks: list[Any]) -> None:
    router, _, _ = planned(Kop, 2, found, [])
    costs = router.costs(controls_of(asks)) * max(len(found), 1)
    right = [twins.equation_1(found, rarest(found, w, c)) for _, _, w, _, c in asks]
    assert costs.round(6).tolist() == right


@quick
@given(objects, new)
def test_sop_costs(found: list[Obj], asks: list[Any]) -> None:
    router, _, _ = planned(Sop, 2, found, [])
    costs = router.costs(controls_of(asks)) * max(len(found), 1)
    right = [
        twins.equation_2(found, rectangle(found, rarest(found, w, c), k, x, y))
        for x, y, w, k, c in asks
    ]
    assert costs.round(6).tolist() == right


@quick
@given(objects, many.filter(bool), new)
def test_dkm_sks_costs(found: list[Obj], subs: list[Sub], asks: list[Any]) -> None:
    router, _, _ = planned(DkmSks, 2, found, subs, gamma1=3, gamma2=5, young=0)
    costs = router.costs(controls_of(asks)) * max(len(found), 1)
    space = twins.space_of(found, subs)
    subsets = twins.algorithm_2(found, subs, subsets_wanted(len(subs), 2, 3), 5)
    plan = [cut(twins.around([subs[i] for i in s.members]), space) for s in subsets]
    for (x, y, words, k, conjunction), cost in zip(asks, costs.round(6).tolist(), strict=True):
        queried = rarest(found, words, conjunction)
        own = rectangle(found, queried, k, x, y)
        shares = [twins.overlap(r, cut(own, space)) for r in plan]
        stars = [r for r, s in zip(plan, shares, strict=True) if s == max(shares)]
        least = min(twins.overlap(r, r) for r in stars)
        stars = [r for r in stars if twins.overlap(r, r) == least] if max(shares) else [own]
        assert cost in {twins.equation_5(found, queried, r) for r in stars}


@quick
@given(objects, new)
def test_dkm_sks_deals_new_ones_by_what_they_will_take(found: list[Obj], asks: list[Any]) -> None:
    table = controls_of(asks)
    router, _, _ = planned(DkmSks, 2, found, SUBS)
    dealt = router.place(table, hashes(len(asks))).costs
    assert dealt is not None
    ended = router.costs(table)
    for n, (_, _, words, k, conjunction) in enumerate(asks):
        f = twins.equation_1(found, rarest(found, words, conjunction))
        takes = f if f <= k else k * (1 + math.log(f / k))
        assert dealt[n] * max(len(found), 1) == pytest.approx(takes)
        assert ended[n] * max(len(found), 1) == pytest.approx(min(f, k))


@pytest.mark.parametrize("router", [Kop, Sop, DkmSks])
def test_the_paper_deals_new_ones_by_their_costs(router: type[PlannedRouter]) -> None:
    papers = {"young": 0.0} if router is DkmSks else {}
    following, _, _ = planned(router, 3, FOUND, SUBS, **papers)
    table = controls_of(ASKS)
    dealt = following.place(table, hashes(len(ASKS))).costs
    assert dealt is not None
    assert dealt.tolist() == following.costs(table).tolist()


def test_young_subscriptions_change_as_often_as_their_cost_says(rng: np.random.Generator) -> None:
    k, n, tries = 5, 2000, 200
    taken = 0
    for _ in range(tries):
        nearest: list[float] = []
        for distance in rng.random(n).tolist():
            if len(nearest) < k or distance < nearest[-1]:
                nearest = sorted([*nearest, distance])[:k]
                taken += 1
    found = [Obj(1, 1, frozenset([4]))] * n
    router, _, _ = planned(DkmSks, 2, found, SUBS)
    dealt = router.place(controls_of([(1, 1, frozenset([4]), k, False)]), hashes(1)).costs
    assert dealt is not None
    assert taken / tries == pytest.approx(dealt[0] * n, rel=0.05)


def cut(box: twins.Box, space: twins.Box) -> twins.Box:
    a, b, c, d = box
    return (max(a, space[0]), max(b, space[1]), min(c, space[2]), min(d, space[3]))


# -- tables --------------------------------------------------------------------------------------

ASKS: list[Any] = [(float(i), 1.0, frozenset([4, 8][: i % 3]), 1 + i % 2, i == 4) for i in range(9)]
FOUND = [Obj(float(i), 1.0, frozenset([4, 8, 12][: i % 4])) for i in range(10)]
SUBS = [Sub(x, y, w, (x - 1, y - 1, x + 1, y + 1)) for x, y, w, _, _ in ASKS]


@pytest.mark.parametrize("router", [Kop, Sop, DkmSks])
def test_new_ones_go_where_there_is_least_to_do(router: type[PlannedRouter]) -> None:
    following, _, _ = planned(router, 3, FOUND, SUBS)
    emptied = router(3, following.adjusted(np.array([0.0, -1e9, 0.0])))
    loads = emptied._table.costs
    assert loads[1] == 0
    placed = emptied.place(controls_of(ASKS), hashes(len(ASKS)))
    assert placed.costs is not None
    right = twins.greedy(placed.costs.tolist(), list(range(len(ASKS))), list(loads))
    assert placed.shards.tolist() == right
    assert right[0] == 1
    assert placed.rows.tolist() == list(range(len(ASKS)))
    assert placed.reports.all()


@pytest.mark.parametrize("router", [Kop, Sop, DkmSks])
def test_costs_that_come_and_go(router: type[PlannedRouter]) -> None:
    following, _, _ = planned(router, 3, FOUND, SUBS)
    more = router(3, following.adjusted(np.array([1.0, 0.0, 2.5])))
    assert more._table.costs == [
        c + a for c, a in zip(following._table.costs, [1.0, 0.0, 2.5], strict=True)
    ]
    assert more.costs(controls_of(ASKS)).tolist() == following.costs(controls_of(ASKS)).tolist()


@pytest.mark.parametrize("router", [Kop, Sop, DkmSks])
def test_before_a_plan_ids_say_where(router: type[PlannedRouter]) -> None:
    table = controls_of(ASKS)
    assert router(4).costs(table).tolist() == [0.0] * len(ASKS)
    assert router(4).place(table, hashes(9)).shards.tolist() == [i % 4 for i in range(1, 10)]
    assert router(4).adjusted(np.ones(4)) == b""
    assert router(4).route(table) is None


@pytest.mark.parametrize("router", [Kop, Sop, DkmSks])
def test_a_plan_in_a_file(router: type[PlannedRouter], tmp_path: Path) -> None:
    plan = router(3).plan(sample_of(FOUND), survey_of(SUBS), {})
    path = tmp_path / "plan"
    path.write_bytes(plan.data)
    inline = router(3, table_of_plan(plan.costs, data=plan.data))
    filed = router(3, router(3).table_at(plan, str(path)))
    table = controls_of(ASKS)
    assert filed.costs(table).tolist() == inline.costs(table).tolist()
    assert len(filed.table) < 200
    assert router(3).plan(sample_of(FOUND), survey_of(SUBS), {}).data == plan.data


def test_an_unknown_parameter() -> None:
    with pytest.raises(NearcastError, match="sop: no parameter 'gamma1'; there are theta"):
        Sop(2).plan(sample_of([]), survey_of([]), {"gamma1": 1})
    with pytest.raises(NearcastError, match="kop: no parameter 'theta'; there are none"):
        Kop(2).plan(sample_of([]), survey_of([]), {"theta": 1})


def test_arrays_come_back() -> None:
    arrays: dict[str, Any] = {
        "none": np.empty((0, 4)),
        "bytes": np.arange(5, dtype=np.uint8),
        "table": np.arange(6.0).reshape(3, 2),
    }
    back = unpack(pack(arrays))
    assert list(back) == list(arrays)
    for name, array in arrays.items():
        assert back[name].dtype == array.dtype
        assert back[name].tolist() == array.tolist()
        assert not back[name].flags.writeable


def test_what_is_no_plan() -> None:
    with pytest.raises(NearcastError, match="another version"):
        unpack(b"something else")
