"""Which subscriptions see which objects, against events handled one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nearcast.kernels import slots as sl
from nearcast.kernels.hashing import hash_ids
from nearcast.wire.tables import CONTROLS, FOREVER, control_columns, control_row, table_of

SUB, UNSUB, OBJECT, DROP = "subscribe", "unsubscribe", "object", "drop"
Step = tuple[str, str, int, int]  # what, id, time, end


@dataclass(slots=True)
class Plain:
    """One subscription as SPEC section 4 has it."""

    id: str
    start: int
    end: int


class Table:
    """A table of slots with room for everything, and the same in plain Python."""

    def __init__(self, one_hash: bool) -> None:
        rows, heap = np.zeros((200, 8), np.int64), np.zeros(2000, np.uint64)
        self.state = sl.Slots(
            rows,
            rows.view(np.int32),
            heap,
            heap.view(np.float64),
            np.zeros(5000, np.uint8),
            np.zeros((8, 2), np.uint64),
            np.zeros((200, 4), np.int64),
            np.zeros(sl.META, np.int64),
        )
        self.one_hash = one_hash
        self.plain: list[Plain] = []

    def hashes(self, ids: list[str]) -> tuple[Any, Any, Any]:
        offsets = np.cumsum([0, *(len(i) for i in ids)]).astype(np.int64)
        data = np.frombuffer("".join(ids).encode(), np.uint8)
        # Ids that share a hash are told apart by their text.
        keys = np.full(len(ids), 5, np.uint64) if self.one_hash else hash_ids(data, offsets)
        return keys, offsets, data

    def batch(self, steps: list[Step]) -> tuple[list[set[int]], list[set[int]]]:
        """(which slots saw each object by the kernel, by the plain rules)."""
        right = [self._handle(step) for step in steps]
        objects = [time for what, _, time, _ in steps if what == OBJECT]
        controls = [(n, s) for n, s in enumerate(steps) if s[0] in (SUB, UNSUB)]
        rows = [
            control_row(
                op=sl.SUBSCRIBE if what == SUB else sl.UNSUBSCRIBE,
                id=id_.encode(),
                time=time,
                end=end,
                pos=n,
                tail=b",tail" * (time % 2),
                program=[8 * n + 4] * (n % 3),
                region=[float(n), 1.0, 2.0, 3.0],
            )
            for n, (what, id_, time, end) in controls
        ]
        if rows:
            at = [sum(s[0] == OBJECT for s in steps[:n]) for n, _ in controls]
            table = table_of(rows, CONTROLS)
            c = control_columns(table, np.array(at, np.int32))
            keys, _, _ = self.hashes([s[1] for _, s in controls])
            sl.apply_controls(self.state, c._replace(id_hash=keys))
        count = int(self.state.meta[sl.COUNT])
        found = [
            {slot for slot in range(count) if sl.sees(self.state, slot, i, time)}
            for i, time in enumerate(objects)
        ]
        return found, [seen for seen in right if seen is not None]

    def _handle(self, step: Step) -> set[int] | None:
        what, id_, time, end = step
        if what == OBJECT:
            return {n for n, s in enumerate(self.plain) if s.start <= time < s.end}
        same = [s for s in self.plain if s.id == id_]
        if same:
            same[-1].end = min(same[-1].end, time)
        if what == SUB:
            self.plain.append(Plain(id_, time, end))
        return None

    def drop(self, id_: str) -> None:
        keys, offsets, data = self.hashes([id_])
        sl.drop_ids(self.state, keys, offsets, data)
        for last in [s for s in self.plain if s.id == id_][-1:]:
            last.end = last.start


times = st.integers(-3, 6)
ends = st.one_of(st.just(FOREVER), times)
steps = st.tuples(
    st.sampled_from([SUB, SUB, UNSUB, OBJECT, OBJECT]), st.sampled_from(["a", "b", "ab"]), times, ends
)
batches = st.lists(
    st.tuples(st.lists(steps, max_size=9), st.sampled_from(["", "", "a", "b", "x"])), max_size=4
)


@settings(max_examples=80)
@given(batches, st.booleans())
@example([([(SUB, "a", 0, FOREVER), (OBJECT, "", 5, 0), (UNSUB, "a", 3, 0)], "")], False)
@example(
    [
        (
            [
                (SUB, "a", 0, 9),
                (OBJECT, "", 5, 0),
                (UNSUB, "a", 6, 0),
                (OBJECT, "", 5, 0),
                (UNSUB, "a", 2, 0),
                (OBJECT, "", 5, 0),
            ],
            "",
        )
    ],
    False,
)
def test_sees(cut: list[tuple[list[Step], str]], one_hash: bool) -> None:
    table = Table(one_hash)
    for events, dropped in cut:
        found, right = table.batch(events)
        assert found == right
        sl.close_batch(table.state)
        if dropped:
            table.drop(dropped)


def test_after_its_batch_only_time_counts() -> None:
    table = Table(one_hash=False)
    found, _ = table.batch(
        [(OBJECT, "", 5, 0), (SUB, "a", 0, FOREVER), (OBJECT, "", 5, 0), (UNSUB, "a", 3, 0)]
    )
    assert found == [set(), {0}]
    sl.close_batch(table.state)
    assert [sl.sees(table.state, 0, 0, time) for time in (-1, 0, 2, 3)] == [0, 1, 1, 0]
    assert table.state.meta[sl.ENDS_TOP] == 0


def test_rows_keep_body_and_text() -> None:
    table = Table(one_hash=False)
    row = control_row(
        op=sl.SUBSCRIBE,
        id=b"name",
        time=-5,
        end=9,
        region_code=2,
        conjunction=True,
        tail=b',"owner":"me"',
        program=[4, 8],
        cover=[12],
        region=[1.5, 2.5],
        boxes=[1.0, 2.0, 3.0, 4.0],
    )
    other = control_row(op=sl.SUBSCRIBE, id=b"n", time=0, program=[16])
    controls = control_columns(table_of([other, row], CONTROLS), np.zeros(2, np.int32))
    sl.apply_controls(table.state, controls)
    s = table.state
    assert (s.rows[1, sl.START], s.rows[1, sl.END]) == (-5, 9)
    body = int(s.rows[1, sl.BODY])
    assert s.heap[body : body + 3].tolist() == [4, 8, 12]
    assert s.reals[body + 3 : body + 9].tolist() == [1.5, 2.5, 1.0, 2.0, 3.0, 4.0]
    assert [int(s.half[1, c]) for c in (sl.PROGRAM, sl.COVER, sl.REGION)] == [2, 1, 2]
    text = int(s.rows[1, sl.TEXT])
    flags = int(s.half[1, sl.FLAGS])
    assert s.text[text : text + 17].tobytes() == b'name,"owner":"me"'
    assert (flags >> sl.ID_SHIFT, int(s.half[1, sl.TAIL])) == (4, 13)
    assert flags & sl.REGION_CODE == 2
    assert flags & sl.REPORTS
    assert flags & sl.CONJUNCTION
    assert flags & sl.LIVE
    assert (flags >> sl.BOXES_SHIFT) & sl.BOXES_MASK == 1
    assert s.meta[sl.LONGEST] == 2


def test_ids_are_found_after_a_rehash() -> None:
    table = Table(one_hash=False)
    names = ["a", "b", "c", "d", "e"]
    table.batch([(SUB, name, 0, FOREVER) for name in names])
    wider = np.zeros((32, 2), np.uint64)
    sl.rehash_ids(table.state.ids, wider)
    state = table.state._replace(ids=wider)
    keys, offsets, data = table.hashes([*names, "unknown"])
    found = [
        sl.find_id(state, keys[n], data, offsets[n], offsets[n + 1])[1] for n in range(len(keys))
    ]
    assert found == [0, 1, 2, 3, 4, -1]
    assert state.meta[sl.IDS] == len(names)
