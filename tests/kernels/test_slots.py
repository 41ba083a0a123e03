"""Which subscriptions see which objects, against events handled one after the other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.wire.rows import control_row

from nearcast.kernels import slots as sl
from nearcast.kernels.bits import is_set
from nearcast.kernels.hashing import hash_ids
from nearcast.wire.tables import FOREVER, NEVER, REGIONS, control_columns, table_of

SUB, UNSUB, REPLACED, OBJECT = "subscribe", "unsubscribe", "replaced", "object"
OPS = {SUB: sl.SUBSCRIBE, UNSUB: sl.UNSUBSCRIBE, REPLACED: sl.REPLACED}
Step = tuple[str, str, int, int]  # what, id, time, end (of an object: until)


def with_value(row: tuple[Any, ...], name: str, value: Any) -> tuple[Any, ...]:
    at = REGIONS.get_field_index(name)
    return (*row[:at], value, *row[at + 1 :])


@dataclass(slots=True)
class Plain:
    """One subscription as SPEC section 4 has it."""

    start: int
    end: int
    first_end: int  # at the beginning of the batch
    ended: list[tuple[int, int]] = field(default_factory=list)  # in this batch: clock, time

    def lives_at(self, moment: int) -> bool:
        """Whether it had not ended when time came to `moment`, in this batch."""
        ends = [time for clock, time in self.ended if clock < moment]
        return moment < min([self.first_end, *ends])


class Table:
    """A table of slots with room for everything, and the same in plain Python."""

    def __init__(self, one_hash: bool = False) -> None:
        rows, heap = np.zeros((200, 8), np.int64), np.zeros(2000, np.uint64)
        self.state = sl.Slots(
            rows,
            rows.view(np.int32),
            heap,
            heap.view(np.float64),
            np.zeros(5000, np.uint8),
            np.zeros(64, np.uint64),
            np.zeros((200, 5), np.int64),
            np.zeros(4, np.uint64),
            np.zeros(1, np.int64),
            np.zeros(sl.META, np.int64),
        )
        self.one_hash = one_hash
        self.plain: list[Plain] = []
        self.of_id: dict[str, Plain] = {}
        self.clock = NEVER

    def hashes(self, ids: list[str]) -> tuple[Any, Any, Any]:
        offsets = np.cumsum([0, *(len(i) for i in ids)]).astype(np.int64)
        data = np.frombuffer("".join(ids).encode(), np.uint8)
        # Ids that share a hash are kept apart by their text.
        keys = np.full(len(ids), 5, np.uint64) if self.one_hash else hash_ids(data, offsets)
        return keys, offsets, data

    def batch(self, steps: list[Step]) -> tuple[list[set[int]], list[set[int]]]:
        """(which slots saw each object by the kernel, by the plain rules)."""
        for s in self.plain:
            s.first_end, s.ended = s.end, []
        clocks, right = [], []
        for step in steps:
            if step[0] == OBJECT:
                right.append(
                    {n for n, s in enumerate(self.plain) if s.start <= step[2] and step[3] < s.end}
                )
            else:
                clocks.append(self.clock)
                self._control(step)
            self.clock = max(self.clock, step[2])
        self._apply(steps, clocks)
        count = int(self.state.meta[sl.COUNT])
        objects = [(time, until) for what, _, time, until in steps if what == OBJECT]
        found = [
            {slot for slot in range(count) if sl.sees(self.state, slot, i, *times)}
            for i, times in enumerate(objects)
        ]
        for seen, (time, _) in zip(found, objects, strict=True):
            settled = sl.settled(self.state, time)
            assert seen >= {n for n in range(settled) if not is_set(self.state.careful, n)}
        return found, right

    def _control(self, step: Step) -> None:
        what, id_, time, end = step
        old = self.of_id.get(id_)
        if old is not None:
            old.ended.append((self.clock, time))
            old.end = min(old.end, time)
        if what == SUB:
            self.of_id[id_] = Plain(time, end, end)
            self.plain.append(self.of_id[id_])
        elif what == REPLACED:
            self.of_id.pop(id_, None)

    def _apply(self, steps: list[Step], clocks: list[int]) -> None:
        controls = [(n, s) for n, s in enumerate(steps) if s[0] != OBJECT]
        if not controls:
            return
        rows = [
            control_row(
                [], [], op=OPS[what], id=id_.encode(), time=time, end=end, program=[4] * (n % 3)
            )
            for n, (what, id_, time, end) in controls
        ]
        at = [sum(s[0] == OBJECT for s in steps[:n]) for n, _ in controls]
        rows = [with_value(r, "clock", clock) for r, clock in zip(rows, clocks, strict=True)]
        c = control_columns(table_of(rows, REGIONS), np.array(at, np.int32))
        keys, _, _ = self.hashes([s[1] for _, s in controls])
        sl.apply_controls(self.state, c._replace(id_hash=keys))

    def drop(self, slots: set[int]) -> None:
        chosen = sorted(slots & set(range(len(self.plain))))
        sl.drop_slots(self.state, np.array(chosen, np.int64))
        for n in chosen:
            self.plain[n].end = self.plain[n].start


times = st.integers(-3, 6)
ends = st.one_of(st.just(FOREVER), times)
controls = st.tuples(
    st.sampled_from([SUB, SUB, UNSUB, REPLACED]), st.sampled_from(["a", "b", "ab"]), times, ends
)
objects = st.tuples(times, st.integers(0, 2)).map(lambda t: (OBJECT, "", t[0], t[0] + t[1]))
batches = st.lists(
    st.tuples(
        st.lists(st.one_of(controls, objects), max_size=9),
        st.one_of(st.just(set()), st.sets(st.integers(0, 5), max_size=2)),
    ),
    max_size=4,
)


@settings(max_examples=80)
@given(batches, st.booleans())
@example([([(SUB, "a", 0, FOREVER), (OBJECT, "", 5, 5), (UNSUB, "a", 3, 0)], set())], False)
@example(
    [
        (
            [
                (SUB, "a", 0, 9),
                (OBJECT, "", 5, 5),
                (UNSUB, "a", 6, 0),
                (OBJECT, "", 5, 5),
                (UNSUB, "a", 2, 0),
                (OBJECT, "", 5, 5),
            ],
            set(),
        )
    ],
    False,
)
@example(
    [([(SUB, "a", 0, 9), (REPLACED, "a", 6, 0), (UNSUB, "a", 2, 0), (OBJECT, "", 5, 5)], set())],
    True,
)
def test_sees(cut: list[tuple[list[Step], set[int]]], one_hash: bool) -> None:
    table = Table(one_hash)
    for events, dropped in cut:
        found, right = table.batch(events)
        assert found == right
        names = {id(s): n for n, s in enumerate(table.plain)}
        led_to = {names[id(s)] for s in table.of_id.values()}
        assert set(np.flatnonzero(sl.known(table.state)).tolist()) == led_to
        sl.close_batch(table.state)
        table.drop(dropped)


@settings(max_examples=60)
@given(st.lists(controls, max_size=8), st.lists(controls, max_size=8))
def test_moments_pass_before_what_comes_after_them(before: list[Step], events: list[Step]) -> None:
    table = Table()
    table.batch(before)
    sl.close_batch(table.state)
    start = table.clock
    table.batch(events)
    for moment in range(max(start, -4) + 1, 8):
        found = [sl.lives_at(table.state, slot, moment) for slot in range(len(table.plain))]
        assert found == [s.lives_at(moment) for s in table.plain]


def test_after_its_batch_only_time_counts() -> None:
    table = Table()
    found, _ = table.batch(
        [(OBJECT, "", 5, 5), (SUB, "a", 0, FOREVER), (OBJECT, "", 5, 5), (UNSUB, "a", 3, 0)]
    )
    assert found == [set(), {0}]
    sl.close_batch(table.state)
    assert [sl.sees(table.state, 0, 0, time, time) for time in (-1, 0, 2, 3)] == [0, 1, 1, 0]
    assert table.state.meta[sl.ENDS_TOP] == 0


def test_what_comes_too_late_finds_only_what_still_lives() -> None:
    table = Table()
    table.batch([(SUB, "a", 0, 10)])
    assert sl.sees(table.state, 0, 0, 5, 9)
    assert not sl.sees(table.state, 0, 0, 5, 10)


def test_what_was_restored_as_former_ends_nobody() -> None:
    table = Table()
    table.batch([(SUB, "a", 0, FOREVER)])
    row = control_row([], [], op=sl.SUBSCRIBE, id=b"a", time=1, end=2)
    former = with_value(row, "flags", sl.REPORTS | sl.FORMER)
    columns = control_columns(table_of([former], REGIONS), np.zeros(1, np.int32))
    sl.apply_controls(table.state, columns)
    assert table.state.rows[0, sl.END] == FOREVER
    assert sl.known(table.state).tolist() == [True, False]
    assert sl.sees(table.state, 1, 0, 1, 1)


def test_rows_keep_body_and_text() -> None:
    table = Table()
    row = control_row(
        [1.5, 2.5],
        [1.0, 2.0, 3.0, 4.0],
        op=sl.SUBSCRIBE,
        id=b"name",
        time=-5,
        end=9,
        bits=2,
        conjunction=True,
        tail=b',"owner":"me"',
        program=[4, 8],
        cover=[12],
    )
    other = control_row([], [], op=sl.SUBSCRIBE, id=b"n", time=0, program=[16])
    c = control_columns(table_of([other, row], REGIONS), np.zeros(2, np.int32))
    sl.apply_controls(table.state, c)
    s = table.state
    assert (s.rows[1, sl.START], s.rows[1, sl.END]) == (-5, 9)
    body = int(s.rows[1, sl.BODY])
    assert s.heap[body : body + 3].tolist() == [4, 8, 12]
    assert s.reals[body + 3 : body + 9].tolist() == [1.5, 2.5, 1.0, 2.0, 3.0, 4.0]
    assert [int(s.half[1, n]) for n in (sl.PROGRAM, sl.COVER, sl.REGION)] == [2, 1, 2]
    text = int(s.rows[1, sl.TEXT])
    flags = int(s.half[1, sl.FLAGS])
    assert s.text[text : text + 17].tobytes() == b'name,"owner":"me"'
    assert (flags >> sl.ID_SHIFT, int(s.half[1, sl.TAIL])) == (4, 13)
    assert flags & sl.REGION_CODE == 2
    assert flags & sl.REPORTS
    assert flags & sl.CONJUNCTION
    assert flags & sl.LIVE
    assert not flags & sl.FORMER
    assert (flags >> sl.BOXES_SHIFT) & sl.BOXES_MASK == 1
    assert s.meta[sl.LONGEST] == 2


def test_the_longest_id_fits() -> None:
    name = "ß☃" * 128  # 256 characters
    table = Table()
    row = control_row([], [], op=sl.SUBSCRIBE, id=name.encode(), time=0)
    sl.apply_controls(table.state, control_columns(table_of([row], REGIONS), np.zeros(1, np.int32)))
    assert int(table.state.half[0, sl.FLAGS]) >> sl.ID_SHIFT == len(name.encode())


def test_ids_are_found_after_a_rehash() -> None:
    table = Table()
    names = ["a", "b", "c", "d", "e"]
    table.batch([(SUB, name, 0, FOREVER) for name in names] + [(REPLACED, "c", 1, 0)])
    wider = np.zeros(128, np.uint64)
    sl.rehash_ids(table.state.ids, wider)
    state = table.state._replace(ids=wider)
    keys, offsets, data = table.hashes([*names, "unknown"])
    found = [
        sl.find_id(state, keys[n], data, offsets[n], offsets[n + 1])[1] for n in range(len(keys))
    ]
    assert found == [0, 1, -1, 3, 4, -1]
    assert state.meta[sl.IDS] == len(names)
