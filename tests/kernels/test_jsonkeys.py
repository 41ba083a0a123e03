"""The scanner of lines: whatever it is sure of is what the real decoder says."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nearcast.kernels.jsonkeys import FAST, SLOW, count_lines, line_keys
from nearcast.kinds import KINDS
from nearcast.testing.strategies import broken_lines
from nearcast.wire.shapes import (
    AskShape,
    EventShape,
    PublishShape,
    SubscribeShape,
    UnsubscribeShape,
    shapes_of,
)

quick = settings(max_examples=30)

CLASSES = {SubscribeShape: 0, UnsubscribeShape: 0, PublishShape: 1, AskShape: 2}
PUBLISH = b'{"op":"publish","id":"o","time":12,"at":[0,0]}'


def keys(data: bytes) -> list[tuple[int, int, int]]:
    """(status, time, class) of each line."""
    array = np.frombuffer(data, np.uint8)
    _, time, group, status = line_keys(array, count_lines(array))
    return list(zip(status.tolist(), time.tolist(), group.tolist(), strict=True))


def decoded(line: bytes) -> EventShape | None:
    try:
        return shapes_of(KINDS).events.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def agrees(line: bytes) -> None:
    [(status, time, group)] = keys(line)
    event = decoded(line)
    if status == FAST and event is not None:
        assert (time, group) == (event.time, CLASSES[type(event)])


# -- events as somebody may write them -----------------------------------------------------------

spaces = st.sampled_from(["", "", " ", "\t", " \r"])
words = st.sampled_from(
    ["time", "op", 'a"b', "a\\", '\\"time":1', "{", "}", "[", '"op":"ask"', "é", "\n", ""]
)
values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(words, st.integers(-9, 9), st.booleans(), st.none(), st.floats(-2, 2)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(words, inner, max_size=3)),
    max_leaves=5,
)
whole = st.one_of(
    st.integers(-(10**19), 10**19), st.integers(-20, 20), st.integers(10**17, 10**18 + 5)
)
times = st.one_of(
    whole.map(str),
    st.sampled_from(
        ["1.0", "1e3", "-0", "00", "+1", "1_0", '"1970-01-01T00:00:00Z"', '"5"', "null", "true"]
        + ["[1]", '{"time":3}', "1E2", "-", "0x1", " 7", "999999999999999999", "1 2"]
    ),
)
ops = st.one_of(
    st.sampled_from(['"publish"', '"unsubscribe"', '"subscribe"', '"ask"']),
    st.sampled_from(['"publis\\u0068"', '"delete"', "null", "1", '["ask"]', '"ask', '"Ask"']),
)


@st.composite
def fields(draw: st.DrawFn) -> tuple[str, str]:
    """One more member of an object, as JSON text."""
    name = draw(
        st.one_of(
            st.sampled_from(['"time"', '"op"', '"tim\\u0065"', '"o\\u0070"', '"id"', '"x"']),
            words.map(json.dumps),
        )
    )
    if "tim" in name:
        return name, draw(times)
    return name, draw(ops) if name in ('"op"', '"o\\u0070"') else json.dumps(draw(values))


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    """An event with members in any order, some of them twice, some of them odd."""
    members = [('"op"', draw(ops)), ('"time"', draw(times)), ('"id"', '"o"'), ('"at"', "[0,1]")]
    members += draw(st.lists(fields(), max_size=3))
    members = draw(st.permutations(members))
    space = draw(st.lists(spaces, min_size=4, max_size=4))
    inside = ",".join(f"{space[0]}{k}{space[1]}:{space[2]}{v}{space[3]}" for k, v in members)
    return f"{space[0]}{{{inside}}}{space[1]}".encode()


@settings(max_examples=100)
@given(lines())
@example(b'{"op":"publish","op":"publish","id":"o","time":1,"time":2,"at":[0,0]}')
@example(b'{"id":"o","time":{"time":1},"at":[0,0],"op":"publish"}')
@example(b'{"op":"publish","id":"\\\\","time":3,"at":[0,0]}')
def test_events_in_any_dress(line: bytes) -> None:
    agrees(line)


@settings(max_examples=100)
@given(lines(), st.integers(0, 200), st.binary(max_size=3), st.integers(0, 3))
def test_damaged_lines(line: bytes, at: int, put: bytes, cut: int) -> None:
    at %= len(line)
    for broken in (line[:at] + put + line[at + cut :], line[:at]):
        agrees(broken.replace(b"\n", b" ") or b" ")


@quick
@given(st.one_of(st.binary(min_size=1), broken_lines().map(str.encode)))
def test_junk(data: bytes) -> None:
    for line in data.split(b"\n"):
        if line:
            agrees(line)


# -- what must not be left to the slow path ------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "key"),
    [
        (PUBLISH, (12, 1)),
        (b'{"time":-5,"id":"s","op":"unsubscribe"}', (-5, 0)),
        (b' { "op" : "ask" , "time" :\t7 , "x" : "\\"" } \r', (7, 2)),
        (b'{"op":"subscribe","time":0,"query":{"op":"ask","time":9}}', (0, 0)),
        (b'{"op":"publish","time":999999999999999999}', (999999999999999999, 1)),
        (b'{"meta":{"a":["}","\\"",{"time":1}]},"op":"publish","time":2}', (2, 1)),
    ],
)
def test_usual_lines_are_fast(line: bytes, key: tuple[int, int]) -> None:
    assert keys(line) == [(FAST, *key)]


@pytest.mark.parametrize(
    "line",
    [
        b"", b" ", b"{", b'{"op":', b'{"op":"', b'{"time":', b'{"time":1', b"null", b"[]",
        b'{"op":"publish"}', b'{"time":1}', b'{"op":"publish","time":"1970-01-01T00:00:00Z"}',
        b'{"op":"publish","time":1.5}', b'{"op":"publish","time":01}', b'{"op":"x","time":1}',
        b'{"op":"publish","time":1000000000000000000}', b'{"op":"publish","tim\\u0065":1}',
        b'{"op":"publish","time":1}}', b'[{"op":"publish","time":1}]',
    ],
)  # fmt: skip
def test_odd_lines_are_left_to_the_decoder(line: bytes) -> None:
    assert [status for status, _, _ in keys(line + b"\n")] == [SLOW]


@quick
@given(st.lists(st.sampled_from([b"", b"{}", b"ab", PUBLISH]), max_size=6), st.booleans())
def test_offsets(parts: list[bytes], newline: bool) -> None:
    data = b"\n".join(parts) + b"\n" * newline
    right = data.split(b"\n")
    if not right[-1]:
        right.pop()
    array = np.frombuffer(data, np.uint8)
    n = count_lines(array)
    offsets, *_ = line_keys(array, n)
    assert n == len(right)
    cut = [data[a:b].removesuffix(b"\n") for a, b in pairwise(offsets.tolist())]
    assert cut == right
    assert offsets[-1] == len(data)
