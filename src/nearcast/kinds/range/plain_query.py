"""`range` queries in their plainest form, read from their JSON text on flat arrays.

    {"kind":"range","region":{"bbox":[w,s,e,n]},"where":"this OR that"}

Keys in any order; numbers of at most 15 digits without an exponent; ASCII words joined by only AND
or only OR. That is most of what comes by the million. Everything else is left to
`Range.compile`, which knows all forms, and every reason to refuse one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.hashing import HASH_START, hash_step, word_of
from nearcast.kernels.program import TAG_OR
from nearcast.kernels.ragged import frozen
from nearcast.model.jit import njit

_QUOTE, _COLON, _COMMA, _SPACE = (np.uint8(ord(c)) for c in '":, ')
_DIGITS = 15  # whole numbers of so many, and powers of ten up to there, are float64 numbers
_POWERS = 10.0 ** np.arange(_DIGITS + 1)
_KIND, _REGION, _WHERE, _BBOX, _RANGE, _OR, _AND, _NOT = (
    np.frombuffer(text, np.uint8)
    for text in (b"kind", b"region", b"where", b"bbox", b"range", b"OR", b"AND", b"NOT")
)
_WORDS = 64  # at most, of one query


class PlainQueries(NamedTuple):
    """What was read; rows that are not `plain` have no box and no words."""

    plain: NDArray[np.bool_]
    boxes: NDArray[np.float64]  # [n, 4]
    conjunction: NDArray[np.bool_]
    program_offsets: NDArray[np.int64]
    program: NDArray[np.uint64]
    cover_offsets: NDArray[np.int64]
    cover: NDArray[np.uint64]


def read_queries(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> PlainQueries:
    """The queries `data[offsets[i]:offsets[i+1]]`."""
    n = len(offsets) - 1
    words = int(np.count_nonzero(data[offsets[0] : offsets[-1]] == _SPACE)) // 2 + n
    found = PlainQueries(
        np.zeros(n, bool),
        np.zeros((n, 4)),
        np.zeros(n, bool),
        np.zeros(n + 1, np.int64),
        np.empty(words + n, np.uint64),
        np.zeros(n + 1, np.int64),
        np.empty(words, np.uint64),
    )
    _read_all(frozen(data), frozen(offsets), found, np.empty((_WORDS, 2), np.int64))
    return found._replace(
        program=found.program[: found.program_offsets[n]],
        cover=found.cover[: found.cover_offsets[n]],
    )


@njit
def _read_all(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], out: PlainQueries, spans: NDArray[np.int64]
) -> None:
    for i in range(len(offsets) - 1):
        words, any_of = _query(data, offsets[i], offsets[i + 1], out.boxes[i], spans)
        top, covered = out.program_offsets[i], out.cover_offsets[i]
        if words > 0:
            out.plain[i] = True
            out.conjunction[i] = not any_of
            for w in range(words):
                out.program[top + w] = _hash(data, spans[w, 0], spans[w, 1])
            top += words
            if any_of:
                out.program[top] = np.uint64(words << 2) | TAG_OR
                top += 1
                for w in range(_sort(data, spans, words)):
                    out.cover[covered] = _hash(data, spans[w, 0], spans[w, 1])
                    covered += 1
        out.program_offsets[i + 1], out.cover_offsets[i + 1] = top, covered


# -- words ---------------------------------------------------------------------------------------


@njit(lean=True)
def _lower(byte: np.uint8) -> np.uint8:
    return byte | np.uint8(32) if 65 <= byte <= 90 else byte


@njit(lean=True)
def _hash(data: NDArray[np.uint8], start: int, stop: int) -> np.uint64:
    """`hash_word` of a word in lower case."""
    h = HASH_START
    for i in range(start, stop):
        h = hash_step(h, _lower(data[i]))
    return word_of(h)


@njit(lean=True)
def _compare(data: NDArray[np.uint8], a: int, a_stop: int, b: int, b_stop: int) -> int:
    """Less than 0, 0, or more: how two words stand in the order of their letters."""
    for i in range(min(a_stop - a, b_stop - b)):
        step = np.int64(_lower(data[a + i])) - np.int64(_lower(data[b + i]))
        if step != 0:
            return step
    return (a_stop - a) - (b_stop - b)


@njit(lean=True)
def _sort(data: NDArray[np.uint8], spans: NDArray[np.int64], n: int) -> int:
    """Put words in the order of their letters, each once; how many there are then."""
    kept = 0
    for w in range(n):
        start, stop = spans[w, 0], spans[w, 1]
        at, order = kept, 1
        while at > 0:
            order = _compare(data, spans[at - 1, 0], spans[at - 1, 1], start, stop)
            if order <= 0:
                break
            at -= 1
        if at > 0 and order == 0:
            continue
        for k in range(kept, at, -1):
            spans[k, 0], spans[k, 1] = spans[k - 1, 0], spans[k - 1, 1]
        spans[at, 0], spans[at, 1] = start, stop
        kept += 1
    return kept


@njit(lean=True)
def _is(data: NDArray[np.uint8], start: int, stop: int, text: NDArray[np.uint8]) -> bool:
    """Whether `data[start:stop]` is `text`."""
    if stop - start != len(text):
        return False
    for i in range(len(text)):
        if data[start + i] != text[i]:
            return False
    return True


@njit(lean=True)
def _operator(data: NDArray[np.uint8], start: int, stop: int) -> int:
    """0 for AND, 1 for OR, 2 for NOT; else -1."""
    if _is(data, start, stop, _AND):
        return 0
    if _is(data, start, stop, _OR):
        return 1
    return 2 if _is(data, start, stop, _NOT) else -1


@njit(lean=True)
def _run(data: NDArray[np.uint8], start: int, stop: int) -> int:
    """Where the letters and digits from `start` on end."""
    while start < stop and (
        48 <= data[start] <= 57 or 65 <= data[start] <= 90 or 97 <= data[start] <= 122
    ):
        start += 1
    return start


@njit(lean=True)
def _where(
    data: NDArray[np.uint8], at: int, stop: int, spans: NDArray[np.int64]
) -> tuple[int, int, bool]:
    """(behind it, words, whether any will do) of the string that begins at `at`; -1: not plain."""
    no = (-1, 0, False)
    if at >= stop or data[at] != _QUOTE:
        return no
    at += 1
    words, joined = 0, -1
    while True:
        end = _run(data, at, stop)
        if end == at or end == stop or words == len(spans) or _operator(data, at, end) >= 0:
            return no
        spans[words, 0], spans[words, 1] = at, end
        words += 1
        if data[end] == _QUOTE:
            return end + 1, words, joined == 1
        if data[end] != _SPACE:
            return no
        at = end + 1
        end = _run(data, at, stop)
        operator = _operator(data, at, end)
        if end == stop or data[end] != _SPACE or not 0 <= operator <= 1:
            return no
        if joined >= 0 and operator != joined:
            return no
        joined, at = operator, end + 1


# -- JSON ----------------------------------------------------------------------------------------


@njit(lean=True)
def _blank(data: NDArray[np.uint8], at: int, stop: int) -> int:
    """Where white space from `at` on ends."""
    while at < stop and (data[at] == 32 or 9 <= data[at] <= 10 or data[at] == 13):
        at += 1
    return at


@njit(lean=True)
def _mark(data: NDArray[np.uint8], at: int, stop: int, wanted: int) -> int:
    """Behind the character `wanted`, and the white space before it; -1: it is not there."""
    if at < 0:
        return -1
    at = _blank(data, at, stop)
    return at + 1 if at < stop and data[at] == wanted else -1


@njit(lean=True)
def _text(data: NDArray[np.uint8], at: int, stop: int) -> tuple[int, int]:
    """(start, stop) of the letters between quotes that come next; (-1, -1): not plain."""
    at = _mark(data, at, stop, _QUOTE)
    if at < 0:
        return -1, -1
    end = _run(data, at, stop)
    if end == stop or data[end] != _QUOTE:
        return -1, -1
    return at, end


@njit(lean=True)
def _number(data: NDArray[np.uint8], at: int, stop: int) -> tuple[int, float]:
    """(behind it, the number that comes next); -1: not plain."""
    at = _blank(data, at, stop)
    minus = at < stop and data[at] == 45
    at += minus
    first, point = at, -1
    value, digits = np.int64(0), 0
    while at < stop and digits <= _DIGITS:
        if data[at] == 46 and point < 0 and at > first:
            point = at
        elif 48 <= data[at] <= 57:
            value = value * 10 + (np.int64(data[at]) - 48)
            digits += 1
        else:
            break
        at += 1
    whole = (point if point >= 0 else at) - first
    if at == stop or digits > _DIGITS or whole == 0 or at - 1 == point:
        return -1, 0.0
    if whole > 1 and data[first] == 48:
        return -1, 0.0
    number = value / _POWERS[at - 1 - point if point >= 0 else 0]
    if minus and (point >= 0 or value != 0):  # -0 is a whole number, and has no sign
        return at, -number
    return at, number


@njit(lean=True)
def _region(data: NDArray[np.uint8], at: int, stop: int, box: NDArray[np.float64]) -> int:
    """Behind the region that comes next, a bbox; -1: not plain."""
    at = _mark(data, at, stop, 123)  # {
    if at < 0:
        return -1
    start, end = _text(data, at, stop)
    if start < 0 or not _is(data, start, end, _BBOX):
        return -1
    at = _mark(data, _mark(data, end + 1, stop, _COLON), stop, 91)  # [
    for side in range(4):
        if at < 0:
            return -1
        at, box[side] = _number(data, at, stop)
        at = _mark(data, at, stop, _COMMA if side < 3 else 93)  # ]
    return _mark(data, at, stop, 125)  # }


@njit(lean=True)
def _query(
    data: NDArray[np.uint8],
    at: int,
    stop: int,
    box: NDArray[np.float64],
    spans: NDArray[np.int64],
) -> tuple[int, bool]:
    """(words, whether any will do) of a query; 0 words: it is not plain."""
    at = _mark(data, at, stop, 123)  # {
    words, any_of = 0, False
    kind = region = False
    for member in range(3):
        if at < 0:
            return 0, False
        start, end = _text(data, at, stop)
        if start < 0:
            return 0, False
        at = _mark(data, end + 1, stop, _COLON)
        if at < 0:
            return 0, False
        if _is(data, start, end, _KIND) and not kind:
            start, end = _text(data, at, stop)
            if start < 0 or not _is(data, start, end, _RANGE):
                return 0, False
            kind, at = True, end + 1
        elif _is(data, start, end, _REGION) and not region:
            at = _region(data, at, stop, box)
            region = True
        elif _is(data, start, end, _WHERE) and words == 0:
            at, words, any_of = _where(data, _blank(data, at, stop), stop, spans)
        else:
            return 0, False
        if at < 0:
            return 0, False
        at = _mark(data, at, stop, _COMMA if member < 2 else 125)
    if at < 0 or _blank(data, at, stop) != stop:
        return 0, False
    return words, any_of
