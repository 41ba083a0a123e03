"""How far back a log reaches is found without decoding it, wherever `last` stands."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nearcast.kernels.find import find
from nearcast.wire.reach import reach_of
from nearcast.wire.split import Split


@given(st.binary(max_size=60), st.binary(min_size=3, max_size=6), st.integers(0, 60))
def test_find_is_that_of_bytes(data: bytes, pattern: bytes, start: int) -> None:
    found = find(np.frombuffer(data, np.uint8), start, np.frombuffer(pattern, np.uint8))
    assert found == data.find(pattern, start)


@given(
    st.lists(st.sampled_from("ab"), max_size=40),
    st.lists(st.sampled_from("ab"), min_size=3, max_size=5),
)
def test_find_where_parts_repeat(data: list[str], pattern: list[str]) -> None:
    text, wanted = "".join(data).encode(), "".join(pattern).encode()
    found = find(np.frombuffer(text, np.uint8), 0, np.frombuffer(wanted, np.uint8))
    assert found == text.find(wanted)


def test_find_over_the_border_of_blocks() -> None:
    for place in (0, 4090, 4094, 4095, 4096, 8191, 9000):
        data = np.zeros(place + 6, np.uint8)
        data[place:] = np.frombuffer(b'"last"', np.uint8)
        assert find(data, 0, data[place:].copy()) == place
        assert find(data, place + 1, data[place:].copy()) == -1


def _split(path: Path, start: int, length: int) -> Split:
    return Split("jsonl", str(path), path.name, start, length)


def test_splits_of_a_log(tmp_path: Path) -> None:
    events: list[Any] = [
        {"op": "publish", "id": "o", "time": 1, "at": [0, 0], "text": 'it says "last": 9000'},
        {"op": "ask", "id": "q", "time": 1, "last": 70, "query": {}},
        {"op": "publish", "id": "last", "time": 1, "at": [0, 0]},
        {"op": "ask", "id": "q", "time": 1, "last": 50, "query": {}},
    ]
    lines = [json.dumps(e).encode() + b"\n" for e in events]
    lines.append(b'{"op":"ask","l\\u0061st":600,"id":"q"}\n')
    lines.append(b'{"last": 10000 is no JSON\n')
    lines.append(b'{"op":"ask","last":80}')
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"".join(lines))
    ends = np.cumsum([0, *map(len, lines)]).tolist()
    found = [reach_of(_split(path, a, b - a)) for a, b in pairwise(ends)]
    assert found == [0, 70, 0, 50, 600, 0, 80]
    assert reach_of(_split(path, 0, ends[-1])) == 600
    assert reach_of(_split(path, ends[1], ends[4] - ends[1])) == 70
    assert reach_of(_split(path, 0, 0)) == 0
