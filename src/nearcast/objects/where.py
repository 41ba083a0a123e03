"""`where` on the words of a slice: programs with numbers of its dictionary in place of hashes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.program import TAG_AND, TAG_MASK, TAG_NOT, TAG_WORD
from nearcast.model.jit import njit
from nearcast.objects.base import Queries
from nearcast.objects.slices import Columns

__all__ = [
    "ALL",
    "LISTS",
    "NONE",
    "Plan",
    "code_of",
    "found_before",
    "in_period",
    "list_size",
    "place_of",
    "plan_of",
    "true_of",
]

NONE, ALL, LISTS = 0, 1, 2
"""Which rows a query must look at: none, each, or those on the lists of some words."""

_ABSENT = np.uint64(1 << 34)  # the number of no word
_TWO = np.uint64(2)


class Plan(NamedTuple):
    """What a query means for one slice."""

    sort: int
    lists: NDArray[np.int64]  # numbers of words: a match holds at least one of them
    proved: bool  # being on a list is enough
    tokens: NDArray[np.uint64]
    stack: NDArray[np.uint8]
    covered: bool  # every object of the slice is of the period and was handled before


@njit(lean=True)
def code_of(words: NDArray[np.uint64], word: np.uint64) -> int:
    """The number of a word in an ascending dictionary, or -1.

    Hashes spread evenly, so the search begins where the word should be.
    """
    n = len(words)
    if n == 0:
        return -1
    lo = int(np.float64(word) * (n / 2.0**64))
    if lo >= n:
        lo = n - 1
    hi = lo + 1
    step = 1
    while lo > 0 and words[lo] > word:
        lo = max(lo - step, 0)
        step *= 2
    step = 1
    while hi < n and words[hi] <= word:
        hi = min(hi + step, n)
        step *= 2
    while hi - lo > 1:
        mid = (lo + hi) >> 1
        if words[mid] <= word:
            lo = mid
        else:
            hi = mid
    return lo if words[lo] == word else -1


@njit
def plan_of(
    c: Columns, list_starts: NDArray[np.uint32], q: Queries, i: int, limits: NDArray[np.int64]
) -> Plan:
    """How query `i` finds its rows. `limits`: first and last time, first and last rank.

    A conjunction is found on the list of its rarest word, other expressions on those of their
    cover.
    """
    first, last = q.program_offsets[i], q.program_offsets[i + 1]
    tokens = np.empty(last - first, np.uint64)
    lists = np.empty(max(q.cover_offsets[i + 1] - q.cover_offsets[i], 1), np.int64)
    found = 0
    rarest = 1 << 62
    sort = ALL
    for j in range(first, last):
        token = q.program[j]
        if token & TAG_MASK != TAG_WORD:
            tokens[j - first] = token
            continue
        code = code_of(c.words, token)
        tokens[j - first] = _ABSENT if code < 0 else np.uint64(code) << _TWO
        if not q.conjunction[i]:
            continue
        sort = NONE if code < 0 or sort == NONE else LISTS
        if sort == LISTS and list_size(list_starts, code) < rarest:
            rarest = list_size(list_starts, code)
            lists[0] = code
            found = 1
    if not q.conjunction[i] and q.cover_offsets[i + 1] > q.cover_offsets[i]:
        for j in range(q.cover_offsets[i], q.cover_offsets[i + 1]):
            lists[found] = code_of(c.words, q.cover[j])
            found += lists[found] >= 0
        sort = LISTS if found else NONE
    return Plan(
        sort,
        lists[:found],
        q.conjunction[i] and last - first == 1,
        tokens,
        np.empty(last - first + 1, np.uint8),
        q.after[i] < limits[0]
        and q.until[i] >= limits[1]
        and q.before_rank[i] > limits[3]
        and (len(q.from_rank) == 0 or q.from_rank[i] <= limits[2] or q.early[i] < limits[0]),
    )


@njit(lean=True)
def list_size(list_starts: NDArray[np.uint32], code: int) -> int:
    """How many rows hold a word."""
    return np.int64(list_starts[code + 1]) - np.int64(list_starts[code])


@njit(lean=True)
def in_period(c: Columns, q: Queries, i: int, row: int) -> bool:
    """Whether the object is of the query's period and was handled before it."""
    time, rank = c.when[row, 0], c.when[row, 1]
    after = q.after[i]
    if len(q.from_rank) and rank < q.from_rank[i]:
        after = q.early[i]
    return after < time and time <= q.until[i] and rank < q.before_rank[i]


@njit(lean=True)
def place_of(c: Columns, row: int, code: int) -> int:
    """Where among `codes` an object has a word, or -1."""
    wanted = np.uint32(code)
    for j in range(np.int64(c.starts[row]), np.int64(c.starts[row + 1])):
        if c.codes[j] == wanted:
            return j
    return -1


@njit(lean=True)
def true_of(p: Plan, c: Columns, row: int) -> bool:
    """Whether the words of an object make the expression of a plan true."""
    top = 0
    plain = True
    for token in p.tokens:
        tag = token & TAG_MASK
        if tag == TAG_WORD:
            p.stack[top] = token != _ABSENT and place_of(c, row, np.int64(token >> _TWO)) >= 0
            top += 1
            continue
        plain = False
        if tag == TAG_NOT:
            p.stack[top - 1] = 1 - p.stack[top - 1]
            continue
        n = np.int64(token >> _TWO)
        value = np.uint8(tag == TAG_AND)
        for j in range(top - n, top):
            if tag == TAG_AND:
                value &= p.stack[j]
            else:
                value |= p.stack[j]
        top = top - n
        p.stack[top] = value
        top += 1
    if plain:
        for j in range(top):
            if not p.stack[j]:
                return False
        return True
    return p.stack[0] == 1


@njit(lean=True)
def found_before(p: Plan, c: Columns, row: int, at: int) -> bool:
    """Whether an object is on a list before the one at place `at`: it was looked at there."""
    for j in range(at):
        if place_of(c, row, p.lists[j]) >= 0:
            return True
    return False
