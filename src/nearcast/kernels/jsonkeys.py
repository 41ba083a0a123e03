"""When the events of JSON lines happen, without decoding them: enough to plan a replay.

A small scanner that knows strings, escapes and nesting. A line without a plain integer `time` and a
known `op` at the top of its object is left to the real decoder (status SLOW).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.model.jit import njit

Bytes = NDArray[np.uint8]

FAST, SLOW = 0, 1
_QUOTE, _BACKSLASH, _COLON = ord('"'), ord("\\"), ord(":")


@njit
def count_lines(data: Bytes) -> int:
    """Lines of `data`, the last one with or without its newline."""
    n = 0
    for i in range(len(data)):
        n += data[i] == 10
    return n + (len(data) > 0 and data[len(data) - 1] != 10)


@njit
def _string_end(data: Bytes, i: int, stop: int) -> int:
    """The closing quote of the string that opens at `i`; -1 without one, -2 with an escape."""
    escaped = False
    i += 1
    while i < stop:
        if data[i] == _BACKSLASH:
            escaped = True
            i += 2
            continue
        if data[i] == _QUOTE:
            return -2 - i if escaped else i
        i += 1
    return -1


@njit
def _skip_space(data: Bytes, i: int, stop: int) -> int:
    while i < stop and (data[i] == 32 or data[i] == 9 or data[i] == 13):
        i += 1
    return i


@njit
def _is(data: Bytes, start: int, stop: int, word: Bytes) -> bool:
    if stop - start != len(word):
        return False
    for i in range(len(word)):
        if data[start + i] != word[i]:
            return False
    return True


_TIME = np.frombuffer(b"time", np.uint8)
_OP = np.frombuffer(b"op", np.uint8)
_PUBLISH = np.frombuffer(b"publish", np.uint8)
_SUBSCRIBE = np.frombuffer(b"subscribe", np.uint8)
_UNSUBSCRIBE = np.frombuffer(b"unsubscribe", np.uint8)
_ASK = np.frombuffer(b"ask", np.uint8)


@njit
def _integer(data: Bytes, i: int, stop: int) -> tuple[bool, int]:
    """(whether a plain integer of up to 18 digits stands at `i`, its value)."""
    negative = i < stop and data[i] == ord("-")
    i += negative
    first = i
    value = 0
    while i < stop and 48 <= data[i] <= 57:
        if i - first >= 18:
            return False, 0
        value = value * 10 + (data[i] - 48)
        i += 1
    if i == first or (data[first] == 48 and i - first > 1):
        return False, 0
    i = _skip_space(data, i, stop)
    if i >= stop or (data[i] != ord(",") and data[i] != ord("}")):
        return False, 0
    return True, -value if negative else value


@njit
def _order_class(data: Bytes, start: int, stop: int) -> int:
    """SPEC section 3: subscribe and unsubscribe 0, publish 1, ask 2; -1 for another word."""
    if _is(data, start, stop, _PUBLISH):
        return 1
    if _is(data, start, stop, _SUBSCRIBE) or _is(data, start, stop, _UNSUBSCRIBE):
        return 0
    return 2 if _is(data, start, stop, _ASK) else -1


@njit
def _key(data: Bytes, start: int, stop: int) -> tuple[int, int, int]:
    """(status, time, class) of one line."""
    depth = 0
    time = 0
    group = -1
    timed = False
    i = start
    while i < stop:
        c = data[i]
        if c == ord("{") or c == ord("["):
            depth += 1
        elif c == ord("}") or c == ord("]"):
            depth -= 1
        elif c == _QUOTE:
            end = _string_end(data, i, stop)
            if end == -1:
                return SLOW, 0, 0
            escaped = end < 0
            if escaped:
                end = -2 - end
            after = _skip_space(data, end + 1, stop)
            if depth == 1 and after < stop and data[after] == _COLON:
                if escaped:  # may spell `time` or `op`
                    return SLOW, 0, 0
                value = _skip_space(data, after + 1, stop)
                if _is(data, i + 1, end, _TIME):
                    timed, time = _integer(data, value, stop)
                    if not timed:
                        return SLOW, 0, 0
                elif _is(data, i + 1, end, _OP):
                    quoted = value < stop and data[value] == _QUOTE
                    close = _string_end(data, value, stop) if quoted else -1
                    group = _order_class(data, value + 1, close) if close >= 0 else -1
                    if group < 0:
                        return SLOW, 0, 0
                    end = close
            i = end
        i += 1
    if depth != 0 or not timed or group < 0:
        return SLOW, 0, 0
    return FAST, time, group


@njit
def line_keys(
    data: Bytes, n: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int8], NDArray[np.uint8]]:
    """Of the n lines of `data`: offsets int64[n+1], times, order classes, status."""
    offsets = np.empty(n + 1, np.int64)
    time = np.empty(n, np.int64)
    group = np.empty(n, np.int8)
    status = np.empty(n, np.uint8)
    start = 0
    for line in range(n):
        stop = start
        while stop < len(data) and data[stop] != 10:
            stop += 1
        offsets[line] = start
        s, t, g = _key(data, start, stop)
        status[line], time[line], group[line] = s, t, g
        start = stop + 1
    offsets[n] = len(data)
    return offsets, time, group, status
