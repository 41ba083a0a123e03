"""Results of knn subscriptions against plain sorted lists that forget nothing too early."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nearcast.kernels import results as rs

Reported = tuple[int, int, int, float]  # event, moment, name, distance
Offer = tuple[int, int, int, int]  # slot, distance, how late, how far the clock moves on


@dataclass(slots=True)
class Plain:
    """All objects that may still count, by (distance, order of arrival)."""

    k: int
    window: int
    held: list[tuple[float, int, int]] = field(default_factory=list)  # distance, time, name

    def visible(self) -> list[tuple[float, int, int]]:
        """The result; without a window nobody keeps times."""
        return [(d, time if self.window else 0, name) for d, time, name in self.held[: self.k]]

    def offer(self, distance: float, time: int, name: int) -> list[Reported]:
        rank = sum(d <= distance for d, _, _ in self.held)
        self.held.insert(rank, (distance, time, name))
        reported: list[Reported] = []
        if rank < self.k:
            reported.append((rs.ENTER, time, name, distance))
            if len(self.held) > self.k:
                reported.append((rs.LEAVE, time, self.held[self.k][2], 0.0))
        if not self.window:
            del self.held[self.k :]
        return reported

    def pass_time(self, now: int) -> list[Reported]:
        reported: list[Reported] = []
        while self.window and self.held:
            moment = min(time for _, time, _ in self.held) + self.window
            if moment > now:
                break
            before = self.held[: self.k]
            self.held = [h for h in self.held if h[1] + self.window > moment]
            after = self.held[: self.k]
            reported += [(rs.LEAVE, moment, h[2], 0.0) for h in before if h not in after]
            reported += [(rs.ENTER, moment, h[2], h[0]) for h in after if h not in before]
        return reported


class Store:
    """The state of some slots, its pool growing when it must."""

    def __init__(self, settings_: list[tuple[int, int]], entries: int = 1) -> None:
        rows = np.zeros((len(settings_), 8), np.int64)
        rows[:, rs.K] = [k for k, _ in settings_]
        rows[:, rs.WINDOW] = [window for _, window in settings_]
        rows.view(np.float64)[:, rs.REACH] = np.nan
        meta = np.zeros(rs.META, np.int64)
        pool = np.zeros((entries, rs.ENTRY), np.int64)
        self.state = rs.Results(
            rows,
            rows.view(np.float64),
            rows.view(np.int32),
            pool,
            pool.view(np.float64),
            np.zeros(1000, np.uint8),
            meta,
            np.full(len(settings_), -1, np.int32),
            np.zeros((500, 5), np.int64),
            np.zeros(500),
        )

    def offer(self, slot: int, distance: float, time: int, name: int) -> bool:
        r = self.state
        length, k = int(r.half[slot, rs.LENGTH]), int(r.rows[slot, rs.K])
        need = length + 1 if r.rows[slot, rs.WINDOW] else min(length + 1, k)
        while not rs.make_room(self.state, slot, need):
            pool = np.concatenate([self.state.pool, np.full((1, rs.ENTRY), -9, np.int64)])
            self.state = self.state._replace(pool=pool, distances=pool.view(np.float64))
        return rs.offer(self.state, slot, name, distance, time, name)

    def pass_time(self, slot: int, now: int, report: bool = True) -> None:
        if not self.state.rows[slot, rs.WINDOW]:
            return
        while self.state.half[slot, rs.LENGTH] and rs.next_moment(self.state, slot) <= now:
            rs.expire(self.state, slot, rs.next_moment(self.state, slot), report)

    def reported(self) -> list[Reported]:
        r = self.state
        n = int(r.meta[rs.OUT_TOP])
        r.meta[rs.OUT_TOP] = 0
        rows = [(int(e), int(t), int(name)) for _, _, e, t, name in r.out[:n].tolist()]
        return [(*row, float(d)) for row, d in zip(rows, r.out_distance[:n], strict=True)]

    def visible(self, slot: int) -> list[tuple[float, int, int]]:
        r = self.state
        first = int(r.rows[slot, rs.LIST])
        n = min(int(r.half[slot, rs.LENGTH]), int(r.rows[slot, rs.K]))
        more = int(r.half[slot, rs.ROOM])
        windowed = r.rows[slot, rs.WINDOW] > 0
        return [
            (
                float(r.distances[e, rs.DISTANCE]),
                int(r.pool[e + more, rs.TIME]) if windowed else 0,
                int(r.pool[e, rs.NAME]),
            )
            for e in range(first, first + n)
        ]


subscriptions = st.lists(
    st.tuples(st.sampled_from([1, 2, 3, 2**40]), st.sampled_from([0, 1, 3, 8, 2**60])),
    min_size=1,
    max_size=3,
)
offers = st.lists(
    st.tuples(
        st.integers(0, 2), st.integers(0, 4), st.sampled_from([0, 0, 1, 4]), st.integers(0, 3)
    ),
    max_size=30,
)


@settings(max_examples=120)
@given(subscriptions, offers)
@example([(1, 8)], [(0, 1, 0, 0), (0, 1, 0, 0), (0, 0, 4, 0), (0, 3, 0, 3), (0, 2, 0, 3)])
def test_changes_and_results(wanted: list[tuple[int, int]], offered: list[Offer]) -> None:
    store, plain, clock = Store(wanted), [Plain(*w) for w in wanted], 0
    for name, (slot, distance, late, ahead) in enumerate(offered):
        clock += ahead
        slot %= len(plain)
        store.pass_time(slot, clock)
        right = plain[slot].pass_time(clock)
        window = plain[slot].window
        if not window or late < window:
            taken = store.offer(slot, distance, clock - late, name)
            right += plain[slot].offer(distance, clock - late, name)
            assert taken or not right or right[-1][2] != name
        assert store.reported() == right
        assert [store.visible(n) for n in range(len(plain))] == [p.visible() for p in plain]
    for slot, p in enumerate(plain):
        store.pass_time(slot, clock + 10)
        assert store.reported() == p.pass_time(clock + 10)
        assert store.visible(slot) == p.visible()


def test_at_equal_distance_the_first_stays() -> None:
    store = Store([(1, 0)])
    assert store.offer(0, 2.0, 0, 1)
    assert not store.offer(0, 2.0, 1, 2)
    assert store.offer(0, 1.0, 2, 3)
    assert store.reported() == [
        (rs.ENTER, 0, 1, 2.0),
        (rs.ENTER, 2, 3, 1.0),
        (rs.LEAVE, 2, 1, 0.0),
    ]


def test_the_reach_is_the_distance_of_the_last_when_the_list_is_full() -> None:
    store = Store([(2, 0), (2, 5)])
    store.offer(0, 3.0, 0, 1)
    assert np.isnan(store.state.reals[0, rs.REACH])
    store.offer(0, 1.0, 0, 2)
    assert store.state.reals[0, rs.REACH] == 3.0
    for name in range(3):
        store.offer(1, 1.0, name, name)
    assert np.isnan(store.state.reals[1, rs.REACH])  # with a window, anything may count one day


def test_what_can_never_be_seen_again_is_dropped() -> None:
    store = Store([(2, 100)])
    for name in range(20):
        store.offer(0, 20.0 - name, name, name)  # each nearer and younger than those before
    assert store.state.half[0, rs.LENGTH] == 2


def test_slots_that_changed_are_noted_once() -> None:
    store = Store([(1, 0), (1, 0)])
    store.offer(1, 2.0, 0, 1)
    store.offer(1, 1.0, 0, 2)
    assert store.state.meta[rs.DIRTY_TOP] == 1
    assert store.state.dirty[0] == 1


def test_what_ended_goes_without_a_word() -> None:
    store = Store([(1, 5)])
    store.offer(0, 1.0, 0, 1)
    store.reported()
    store.pass_time(0, 100, report=False)
    assert store.reported() == []
    assert store.visible(0) == []


@pytest.mark.parametrize("lengths", [[0, 3, 1], [2, 0, 5]])
def test_restore(lengths: list[int]) -> None:
    store = Store([(3, 9)] * 3, entries=40)
    store.offer(1, 7.0, 7, 0)
    total = sum(lengths)
    names = [f"n{i}".encode() * (1 if i else 150) for i in range(total)]  # one beyond 255 bytes
    offsets = np.cumsum([0, *lengths]).astype(np.int64)
    numbers: Any = np.arange(total)
    rs.restore(
        store.state,
        np.arange(3),
        offsets,
        numbers.astype(np.float64),
        numbers * 2,
        numbers * 3,
        np.cumsum([0, *(len(n) for n in names)]).astype(np.int64),
        np.frombuffer(b"".join(names), np.uint8),
    )
    r = store.state
    for slot in range(3):
        first, n = int(r.rows[slot, rs.LIST]), int(r.half[slot, rs.LENGTH])
        right = numbers[offsets[slot] : offsets[slot + 1]]
        assert n == lengths[slot]
        assert r.distances[first : first + n, rs.DISTANCE].tolist() == right.tolist()
        more = first + int(r.half[slot, rs.ROOM])
        assert r.pool[more : more + n, rs.TIME].tolist() == (right * 2).tolist()
        assert r.pool[more : more + n, rs.OUTLIVED].tolist() == (right * 3).tolist()
        for at, number in zip(r.pool[first : first + n, rs.NAME].tolist(), right, strict=True):
            size = int(r.names[at]) | int(r.names[at + 1]) << 8
            assert r.names[at + 2 : at + 2 + size].tobytes() == names[number]
