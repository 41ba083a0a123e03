"""Notifications as JSON lines, put together by copying bytes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.model.jit import njit

Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]


class Lines(NamedTuple):
    """n notifications; strings as places in byte arrays."""

    event: NDArray[np.uint8]
    phrases: Bytes  # per event, in blocks: from the subscription's id to the object's (`phrases`)
    phrase_starts: Places
    phrase_lengths: Places
    time: NDArray[np.int64]
    text: Bytes  # of subscriptions
    id_starts: Places
    id_lengths: Places
    tail_lengths: Places  # what is echoed stands right behind the id
    names: Bytes  # of objects
    name_starts: Places
    name_lengths: Places
    bodies: Bytes  # per event, in blocks: `,"…":` if the name is no id and stands behind the time
    body_starts: Places
    body_lengths: Places
    value: Bytes  # `,"…":`, the name of the value that some events carry
    numbers: Bytes  # the values as JSON numbers; empty where there is none
    number_offsets: Places


_ID = np.frombuffer(b'{"id":"', np.uint8)
_TIME = np.frombuffer(b'","time":', np.uint8)
_END = np.frombuffer(b"}\n", np.uint8)
_DIGITS = 20  # at most, of a time
_BLOCK = 16  # bytes that one instruction copies


def phrases(events: Iterable[tuple[str, str]]) -> tuple[Bytes, Places, Places]:
    """`","event":"…","object":"` of each event, in whole blocks; where each starts, its length.

    Events are given with the field that stands in the place of `object`, behind the time, if any.
    """
    return _in_blocks(
        [
            b'","event":"' + name.encode() + (b"" if field else b'","object":"')
            for name, field in events
        ]
    )


def bodies(fields: Iterable[str]) -> tuple[Bytes, Places, Places]:
    """`,"…":` of each event with such a field."""
    return _in_blocks([f',"{field}":'.encode() if field else b"" for field in fields])


def _in_blocks(texts: list[bytes]) -> tuple[Bytes, Places, Places]:
    blocks = [text + bytes(-len(text) % _BLOCK) for text in texts]
    starts = np.cumsum([0, *(len(block) for block in blocks[:-1])])
    return np.frombuffer(b"".join(blocks), np.uint8), starts, np.array([len(t) for t in texts])


@njit
def _copy(out: Bytes, top: int, data: Bytes, start: int, length: int) -> int:
    for i in range(length):
        out[top + i] = data[start + i]
    return top + length


@njit
def _copy_blocks(out: Bytes, top: int, data: Bytes, start: int, length: int) -> int:
    """The same in whole blocks: the next bytes overwrite what is too much, or it is spare."""
    for i in range(0, length, _BLOCK):
        _copy(out, top + i, data, start + i, _BLOCK)
    return top + length


@njit
def _integer(out: Bytes, top: int, value: int) -> int:
    if value < 0:
        out[top] = ord("-")
        top += 1
        value = -value
    digits = 1
    rest = value // 10
    while rest > 0:
        digits += 1
        rest //= 10
    for i in range(digits - 1, -1, -1):
        out[top + i] = ord("0") + value % 10
        value //= 10
    return top + digits


@njit
def size(n: Lines) -> int:
    """How many bytes all lines take, at most."""
    fixed = len(_ID) + len(n.phrases) + len(_TIME) + len(n.value) + len(_END) + _DIGITS
    fixed += len(n.bodies)
    total = len(n.event) * fixed + n.number_offsets[len(n.event)]
    for i in range(len(n.event)):
        total += n.id_lengths[i] + n.tail_lengths[i] + n.name_lengths[i]
    return total


@njit
def write(n: Lines, out: Bytes) -> int:
    """Write all lines to `out`; how many bytes they took."""
    top = 0
    for i in range(len(n.event)):
        top = _copy(out, top, _ID, 0, len(_ID))
        top = _copy(out, top, n.text, n.id_starts[i], n.id_lengths[i])
        e = n.event[i]
        top = _copy_blocks(out, top, n.phrases, n.phrase_starts[e], n.phrase_lengths[e])
        body = n.body_lengths[e]
        if body == 0:
            top = _copy(out, top, n.names, n.name_starts[i], n.name_lengths[i])
        top = _copy(out, top, _TIME, 0, len(_TIME))
        top = _integer(out, top, n.time[i])
        if body > 0:
            top = _copy_blocks(out, top, n.bodies, n.body_starts[e], body)
            top = _copy(out, top, n.names, n.name_starts[i], n.name_lengths[i])
        length = n.number_offsets[i + 1] - n.number_offsets[i]
        if length > 0:
            top = _copy(out, top, n.value, 0, len(n.value))
            top = _copy(out, top, n.numbers, n.number_offsets[i], length)
        top = _copy(out, top, n.text, n.id_starts[i] + n.id_lengths[i], n.tail_lengths[i])
        top = _copy(out, top, _END, 0, len(_END))
    return top
