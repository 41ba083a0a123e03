"""`reach` and what all indexes of its shape share: floors, buffers, refills, lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.index.arena import Memory, Storage
from nearcast.index.base import LocalIndex
from nearcast.index.tops import base
from nearcast.index.tops.base import TopIndex
from nearcast.index.tops.policy import Roots
from nearcast.index.tops.reach import lists as ls
from nearcast.index.tops.reach.index import Reach, ReachLists
from nearcast.index.tops.state import FLOOR, KEYWORDS, LENGTH, K, Weighed
from nearcast.kinds import KINDS
from nearcast.kinds.topk import Topk
from nearcast.model.frame import Frame, Window
from nearcast.model.space import Space
from nearcast.model.standing import Seen
from nearcast.testing.cases import assert_same_story, publish, subscribe, unsubscribe
from nearcast.testing.drive import Batch, notifications, plan, run_index, step
from nearcast.testing.oracle import replay
from nearcast.wire.idf import Fitted

Json = dict[str, Any]
FITTED = Fitted(40, {"a": 30, "b": 3, "c": 1, "d": 12})


class Tight(Reach):
    """As few entries besides the result as can be: it is short at every turn."""

    name = "tight"

    def __init__(self, space: Space, storage: Storage, frame: Frame = Frame()) -> None:  # noqa: B008
        super().__init__(space, storage, frame, Roots(0.0))


def topk(k: int, *keywords: str, at: Iterable[float] = (0, 0), **fields: Any) -> Json:
    usual = {"alpha": 0.5, "maxdist": 10}
    return {"kind": "topk", "at": list(at), "k": k, "keywords": list(keywords), **usual, **fields}


def bound(window: Window, fitted: bool = False) -> Topk:
    return Topk(Frame(window, 10.0, FITTED)) if fitted else Topk(Frame(window, 10.0))


@pytest.fixture
def short_periods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "_LEAST", 1)


def mixed(seed: int, events: int, space: Space = Space.PLANAR) -> list[Json]:
    """Few subscriptions early, then objects, with ties and without, some of them late."""
    rng, log, clock = Random(seed), [], 0
    side = 9.0 if space is Space.PLANAR else 60.0
    for n in range(events):
        clock += rng.choice((0, 0, 1, 2))
        if n < 8 or rng.random() < 0.04:
            words = rng.sample("abcde", rng.randint(1, 4))
            query = topk(
                rng.choice((1, 2, 4, 50)),
                *words,
                at=[rng.uniform(-side, side), rng.randint(-1, 1)],
                alpha=rng.choice((0, 1, 0.5, rng.random())),
                maxdist=rng.choice((3, 20, 1e7)),
                **({"where": "NOT e"} if rng.random() < 0.2 else {}),
            )
            log.append(subscribe(f"s{rng.randint(0, 20)}", clock, query))
        elif rng.random() < 0.03:
            log.append(unsubscribe(f"s{rng.randint(0, 20)}", clock))
        else:
            at = (rng.uniform(-side, side), rng.randint(-1, 1))
            words = rng.choices("aaaabbcde", k=rng.randint(0, 4))
            log.append(publish(f"o{n % 70}", clock, *at, *words))
    return log


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


class Watched:
    """An index and, in plain Python, the window that it should know."""

    def __init__(self, kind: Topk, space: Space, index: type[TopIndex] = Reach) -> None:
        self.kind, self.space = kind, space
        self.index = index(space, Memory(), kind.frame)
        self.objects: list[Seen] = []
        self.now = 0

    def step(self, batch: Batch) -> None:
        changes = step(self.index, batch)
        notifications(self.index, changes, self.kind)
        self.index.close()
        o, carried = batch.objects, batch.carried
        for i, row in enumerate(o.order.tolist()):
            words = carried.words(row, o.word_offsets, o.words)
            assert carried.ranks is not None
            rank, at = int(carried.ranks[row]), (float(o.x[row]), float(o.y[row]))
            self.objects.append(Seen(i, int(o.time[row]), *at, words, 0, rank))
        self.now = max(batch.now, int(batch.clock.max(initial=batch.now)))

    def window(self) -> list[Seen]:
        published, window = len(self.objects), self.kind.frame.window
        return [o for o in self.objects if window.holds(o.time, o.rank, self.now, published)]

    def slots(self) -> Iterator[tuple[int, Any]]:
        """Living slots with their definitions."""
        slots = self.index.living(self.now)
        rows = self.index.rows(slots)[0].to_pylist()
        for slot, row in zip(slots.tolist(), rows, strict=True):
            yield slot, self.kind.standing(row, self.space)


def leaves(window: Window, o: Seen) -> int:
    return o.rank + window.count if window.count else o.time + window.span_ms


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


def weighed(index: TopIndex, batch: Batch) -> Weighed:
    index.carry(batch.carried)
    return index._weighed(batch.objects, batch.clock)


@pytest.mark.parametrize("space", list(Space))
@pytest.mark.parametrize("fitted", [False, True])
def test_bounds_are_never_too_tight(space: Space, fitted: bool) -> None:
    """Whoever takes an object is a candidate, also when the score is the floor itself."""
    kind = bound(Window(count=60), fitted)
    held = Watched(kind, space)
    for batch in plan(mixed(8, 400, space), kind, space, cuts=range(0, 400, 40)):
        held.step(batch)
        index, t = held.index, held.index._tops.state
        w, counts = weighed(index, batch), np.zeros(6, np.int64)
        found = index._found_by.candidates(t, index._slots, w, 0, len(w.ranks), counts)
        pairs = set(zip(found[0].tolist(), found[1].tolist(), strict=True))
        latest = held.objects[len(held.objects) - len(w.ranks) :]
        for slot, sub in held.slots():
            for i, o in enumerate(latest):
                if sub.matches(o) and sub.score(o) >= t.rows[slot, FLOOR]:
                    assert (i, slot) in pairs
        index.close()


def crowd(subs: int, before: int, seed: int = 1) -> tuple[Topk, list[Json]]:
    rng = Random(seed)
    kind = bound(Window(count=before), fitted=True)
    log = []
    for n in range(before):
        log.append(publish(f"o{n}", 0, rng.uniform(-9, 9), 0, *rng.sample("abcd", 2)))
    for n in range(subs):
        words = rng.sample("abcd", rng.randint(1, 3))
        at = (rng.uniform(-9, 9), rng.uniform(-9, 9))
        log.append(subscribe(f"s{n}", 1, topk(2, *words, at=at, alpha=rng.random())))
    log += [publish(f"p{n}", 2 + n, rng.uniform(-9, 9), 0, "a", "b") for n in range(80)]
    return kind, log


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


def test_what_many_have_in_common() -> None:
    """Thousands at one point with the same words, and hundreds of objects with that one word."""
    kind = bound(Window(count=100))
    log = [subscribe(f"s{n}", 0, topk(1 + n % 3, "a", "b")) for n in range(1500)]
    log += [publish(f"o{n}", 1 + n, n % 5, 0, "a") for n in range(300)]
    index = kind.index("reach")(Space.PLANAR, Memory())
    told = [len(step(index, batch)) for batch in plan(log, kind, Space.PLANAR)]
    same = [log[0], log[1], log[2], *log[1500:]]
    right = replay(same, Space.PLANAR, kinds={**KINDS, "topk": kind}).notifications
    assert told == [500 * len(right)]


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
