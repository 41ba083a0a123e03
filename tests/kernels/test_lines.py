"""Notifications put together from bytes read as the JSON that they should be."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nearcast.kernels.lines import Lines, bodies, phrases, size, write
from nearcast.wire.subscriptions import json_body

quick = settings(max_examples=30)

EVENTS = ("match", "enter", "leave", "says")  # the second carries a value
FIELDS = {"says": "what"}  # has it instead of an object, as JSON
VALUES = ("distance", "score", "")
Note = tuple[str, int, str, int, float, str | None]  # id, event, object, time, value, owner

texts = st.text(min_size=1, max_size=6)
times = st.one_of(
    st.integers(-(2**63) + 1, 2**63 - 1),
    st.sampled_from([0, -1, 9, 10, -10, 99, 2**63 - 1, -(2**63) + 1, 1_700_000_000_000]),
)
notes = st.tuples(
    texts,
    st.integers(0, 3),
    texts,
    times,
    st.floats(0, allow_infinity=False),
    st.one_of(st.none(), texts),
)


def places(strings: list[bytes], gap: bytes) -> tuple[Any, Any, Any]:
    """(bytes, starts, lengths), with other bytes between the strings."""
    starts, at = [], 0
    for s in strings:
        at += len(gap)
        starts.append(at)
        at += len(s)
    data = b"".join(gap + s for s in strings) + gap
    lengths = np.array([len(s) for s in strings], np.int64)
    return np.frombuffer(data, np.uint8), np.array(starts, np.int64), lengths


def rendered(reported: list[Note], value: str = "distance") -> bytes:
    ids = [json_body(n[0]) for n in reported]
    tails = [b"" if n[5] is None else b',"owner":' + json.dumps(n[5]).encode() for n in reported]
    text, starts, _ = places([i + t for i, t in zip(ids, tails, strict=True)], b"##")
    said = [json.dumps([n[2]]).encode() if n[1] == 3 else json_body(n[2]) for n in reported]
    names, name_starts, name_lengths = places(said, b"#")
    numbers = [repr(n[4]).encode() if n[1] == 1 else b"" for n in reported]
    lines = Lines(
        np.array([n[1] for n in reported], np.uint8),
        *phrases((event, FIELDS.get(event, "")) for event in EVENTS),
        np.array([n[3] for n in reported], np.int64),
        text,
        starts,
        np.array([len(i) for i in ids], np.int64),
        np.array([len(t) for t in tails], np.int64),
        names,
        name_starts,
        name_lengths,
        *bodies(FIELDS.get(event, "") for event in EVENTS),
        np.frombuffer(f',"{value}":'.encode(), np.uint8),
        np.frombuffer(b"".join(numbers), np.uint8),
        np.cumsum([0, *(len(n) for n in numbers)]).astype(np.int64),
    )
    room = size(lines)
    out = np.full(room + 8, ord("~"), np.uint8)
    used = write(lines, out)
    assert used <= room
    assert out[used:].tobytes() == b"~" * (room + 8 - used)
    return out[:used].tobytes()


def wanted(note: Note, value: str = "distance") -> dict[str, Any]:
    id_, event, name, time, number, owner = note
    row: dict[str, Any] = {"id": id_, "event": EVENTS[event], "object": name, "time": time}
    if event == 3:
        row = {"id": id_, "event": EVENTS[event], "time": time, "what": [name]}
    if event == 1:
        row[value] = number
    return row | ({} if owner is None else {"owner": owner})


@quick
@given(st.lists(notes, max_size=4), st.sampled_from(VALUES))
@example([('a"\\\n', 1, "é☃\t", -(2**63) + 1, 1e300, 'q"')], "distance")
@example([("a", 0, "b", 2**63 - 1, 0.0, None), ("c", 2, "d", 0, 0.0, "")], "")
def test_lines_are_the_json_of_the_notifications(reported: list[Note], value: str) -> None:
    lines = rendered(reported, value).decode().split("\n")
    assert lines.pop() == ""
    assert [json.loads(line) for line in lines] == [wanted(n, value) for n in reported]


def test_lines_have_no_spaces_and_keep_the_order_of_the_fields() -> None:
    reported: list[Note] = [("s", 0, "o", -7, 0.0, None), ("s", 1, "o", 10, 6671.7, "me")]
    reported.append(("s", 3, "o", 8, 0.0, "me"))
    plain = [json.dumps(wanted(n), separators=(",", ":")) for n in reported]
    assert rendered(reported).decode() == "".join(f"{line}\n" for line in plain)
