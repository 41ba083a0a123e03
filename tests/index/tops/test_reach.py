"""`reach` and what all indexes of its shape share: floors, buffers, refills, lists."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.index.tops.logs import Watched, bound, crowd, leaves, mixed, topk

from nearcast.index.arena import Memory, Storage
from nearcast.index.base import LocalIndex
from nearcast.index.tops import base
from nearcast.index.tops.base import TopIndex
from nearcast.index.tops.policy import Roots
from nearcast.index.tops.reach import lists as ls
from nearcast.index.tops.reach.index import Reach, ReachLists
from nearcast.index.tops.state import FLOOR, KEYWORDS, LENGTH, K
from nearcast.kinds import KINDS
from nearcast.model.frame import Frame, Window
from nearcast.model.space import Space
from nearcast.testing.cases import assert_same_story, publish, subscribe, unsubscribe
from nearcast.testing.drive import notifications, plan, run_index, step
from nearcast.testing.oracle import replay


class Tight(Reach):
    """As few entries besides the result as can be: it is short at every turn."""

    name = "tight"

    def __init__(self, space: Space, storage: Storage, frame: Frame = Frame()) -> None:  # noqa: B008
        super().__init__(space, storage, frame, Roots(0.0))


@pytest.fixture
def short_periods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "_LEAST", 1)


# -- the same notifications --------------------------------------------------------------------


@pytest.mark.usefixtures("short_periods")
@pytest.mark.parametrize("window", [Window(count=40), Window(span_ms=40)], ids=str)
@pytest.mark.parametrize("index", [Reach, Tight])
def test_refills_do_not_show(index: type[TopIndex], window: Window) -> None:
    """Windows that are left bit by bit, buffers that run short, batches of any size."""
    for seed in range(3):
        space = Space.GEOGRAPHIC if seed == 2 else Space.PLANAR
        kind, log = bound(window, fitted=seed == 1), mixed(seed, 260, space)
        right = replay(log, space, kinds={**KINDS, "topk": kind}).notifications
        made: list[TopIndex] = []

        def make(space: Space, storage: Any, made: list[TopIndex] = made) -> LocalIndex:
            made.append(index(space, storage, kind.frame))  # noqa: B023 -- called at once
            return made[-1]

        for cuts in ((), range(0, 260, 11)):
            assert_same_story(run_index(make, log, kind, space, cuts), right)
        if index is Tight:
            assert min(one.refills.filled for one in made) > 20


def test_a_silence_longer_than_the_window_empties_results_one_by_one() -> None:
    kind = bound(Window(span_ms=10))
    log = [subscribe("s", 0, topk(1, "a", alpha=1))]
    log += [publish(f"o{n}", n, 9 - n, 0, "a") for n in range(9)]
    log += [publish(f"p{n}", 8, n, 0, "a") for n in range(3)]
    log += [publish("other", 1000, 0, 0, "b"), unsubscribe("nobody", 2000)]
    right = replay(log, Space.PLANAR, kinds={**KINDS, "topk": kind}).notifications
    for cuts in ((), range(len(log))):
        make = kind.index("reach")
        assert_same_story(run_index(make, log, kind, Space.PLANAR, cuts), right)


# -- structure ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("short_periods")
@pytest.mark.parametrize("window", [Window(count=40), Window(span_ms=40)], ids=str)
def test_buffers_hold_the_skyband_above_their_floors(window: Window) -> None:
    kind = bound(window)
    held = Watched(kind, Space.PLANAR, Tight)
    seen = 0
    for batch in plan(mixed(5, 300), kind, Space.PLANAR, cuts=range(0, 300, 17)):
        held.step(batch)
        t = held.index._tops.state
        for slot, sub in held.slots():
            scored = [(sub.score(o), o.rank, o) for o in held.window() if sub.matches(o)]
            scored.sort(key=lambda one: one[:2], reverse=True)
            table = held.index._tops.table(np.array([slot]), np.array([0])).to_pylist()[0]
            k, floor = int(t.half[slot, K]), float(t.rows[slot, FLOOR])
            entries = list(zip(table["score"], table["rank"], strict=True))
            assert entries == sorted(entries, reverse=True)
            assert entries[:k] == [one[:2] for one in scored[:k]]
            inside = [e for e in entries if any(e[1] == o.rank for _, _, o in scored)]
            assert set(inside) <= {one[:2] for one in scored}
            # All that may come to be seen is there, but what ties with the floor and is older.
            for n, (score, rank, o) in enumerate(scored):
                beaten = sum(leaves(window, b) >= leaves(window, o) for _, _, b in scored[:n])
                assert beaten >= k or score <= floor or (score, rank) in entries
            visible = [leaves(window, o) for _, _, o in scored[:k]]
            assert t.due[slot] <= min(visible, default=2**62)
            seen += len(entries) > k
    assert seen > 50


def test_long_lists_are_in_leaves_that_bound_their_entries() -> None:
    kind, log = crowd(600, 60)
    held = Watched(kind, Space.PLANAR)
    for batch in plan(log, kind, Space.PLANAR, cuts=(60, 360, 660, 700)):
        held.step(batch)
    lists = cast(ReachLists, held.index._found_by).lists
    half = held.index._tops.state.half
    posted: list[int] = []
    for row in np.flatnonzero(lists.table[:, ls.COUNT]).tolist():
        count, first = ls.count_of(lists, row), ls.first_of(lists, row)
        assert ls.size_of(lists, row) >= ls.FEW_CLASSES
        for n in range(-(-count // ls.LEAF)):
            width = min(ls.LEAF, count - n * ls.LEAF)
            entries, bounds = lists.leaves[first + n, :, :width], lists.summaries[first + n]
            assert np.all(bounds[:3] <= entries[:3].min(1))
            assert np.all(bounds[3:6] >= entries[:3].max(1))
            assert np.all(bounds[6:9] >= entries[3:6].max(1))
            assert np.all(bounds[9:11] <= entries[6:8].min(1))
            posted += lists.leaf_slots[first + n, ls.SLOT, :width].tolist()
    times = np.bincount(np.array(posted), minlength=600)
    assert np.all(times >= half[:600, KEYWORDS])  # more where a floor fell


def test_many_are_refused_without_a_look_at_them() -> None:
    """Candidates are near the changes in number, and far from those that share a word."""
    kind, log = crowd(1000, 2000)
    index = kind.index("reach")(Space.PLANAR, Memory())
    batches = plan(log, kind, Space.PLANAR, cuts=(2000, 3000))
    for batch in batches:
        found = step(index, batch)
        index.close()
    assert len(found) > 200
    assert found.work.examined < 10 * len(found)
    assert found.work.examined < 80 * 1000 / 10


# -- state -------------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([Window(count=25), Window(span_ms=25)]))
def test_deltas_make_the_same_buffers(seed: int, window: Window) -> None:
    """Each batch writes what changed; put together, a new index goes on as the old one."""
    kind, log = bound(window), mixed(seed, 120)
    batches = plan(log, kind, Space.PLANAR, cuts=range(0, 120, 13))
    half = 6
    running = Tight(Space.PLANAR, Memory(), kind.frame)
    fresh = Tight(Space.PLANAR, Memory(), kind.frame)
    for n, batch in enumerate(batches):
        told = notifications(running, step(running, batch), kind)
        if n < half:
            fresh.apply(batch.controls, np.zeros(batch.controls.num_rows, np.int32))
            fresh.restore(running.changed())
            fresh.close()
        else:
            if n == half:
                fresh.past = running.past
            fresh.apply(batch.controls, batch.at)
            fresh.carry(batch.carried)
            again = fresh.match(batch.objects, batch.clock, batch.now)
            assert_same_story(notifications(fresh, again, kind), told)
            fresh.close()
        running.close()


def test_what_left_the_window_is_let_go() -> None:
    kind = bound(Window(count=30))
    log = [subscribe("s", 0, topk(3, "a", alpha=1))]
    log += [publish(f"o{n:05}", 1 + n, n % 7, 0, "a") for n in range(20_000)]
    index = Reach(Space.PLANAR, Memory(), kind.frame)
    for batch in plan(log, kind, Space.PLANAR, cuts=range(1, 20_001, 4000)):
        step(index, batch)
        index.close()
    t, log_ = index._tops.state, index._tops.log
    assert t.half[0, LENGTH] < 30
    assert log_.top - int(log_.meta[3]) < 4100
    assert len(log_.names) < 30 * 20_000 / 4
