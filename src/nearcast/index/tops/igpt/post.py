"""Posting: the keywords of subscriptions, their lists, thresholds that changed (Skype 5.5)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.index.tops.igpt.bounds import (
    alpha_star,
    kscore_star,
    lambda_s,
    suffix_maxima,
    suffix_sums,
)
from nearcast.index.tops.igpt.lists import add, list_row, move_entry
from nearcast.index.tops.igpt.state import (
    ALPHA_STAR,
    CELL,
    DEAD,
    DIRTY,
    FARTHEST,
    GROUP,
    HELD,
    IDF,
    KEYS,
    KEYS_TOP,
    KSCORE,
    LEAST,
    LISTED,
    LISTS,
    MAXWT,
    NUMBER,
    ORDINAL,
    POSTED,
    REREAD,
    STALE,
    STATE,
    TIDY,
    WORD,
    WORDS,
    WT,
    WTSUM,
    Arrays,
    group_of,
    key_of,
)
from nearcast.index.tops.state import ALPHA, FLOOR, HEAP, KEYWORDS, MAXDIST, Tops
from nearcast.kernels import postings as pl
from nearcast.kernels import slots as sl
from nearcast.model.jit import njit

Longs = NDArray[np.int64]
_SAME = 1e-9  # of a threshold: less apart, it is the same


@njit(lean=True)
def _word_row(ig: Arrays, word: np.uint64, idf: float) -> int:
    """The row of a word, which is put into the table if it is new; there must be room."""
    row = pl.find(ig.words, word)
    if row < 0:
        row = -1 - row
        ig.words[row, WORD] = word
        ig.words[row, NUMBER] = np.uint64(ig.meta[WORDS])
        ig.words[row, IDF] = np.uint64(max(idf, 0.0) * 4294967296.0)  # fixed point: it is compared
        ig.meta[WORDS] += 1
    return row


@njit(lean=True, forceinline=True)
def rarer(ig: Arrays, one: int, other: int) -> bool:
    """Whether one word comes before another: by idf, then by which was met later."""
    if ig.words[one, IDF] != ig.words[other, IDF]:
        return bool(ig.words[one, IDF] > ig.words[other, IDF])
    return bool(ig.words[one, NUMBER] > ig.words[other, NUMBER])


@njit
def describe(ig: Arrays, t: Tops, slots: Longs, idf: NDArray[np.float64], most: int) -> None:
    """Write the keywords of new slots in the order of all keywords, and what bounds need of them.

    `idf` has those of all keywords, one slot after the other; no slot has more than `most`. There
    is room for all of it.
    """
    rows, at = np.empty(most, np.int64), np.empty(most, np.int64)
    weights = np.empty(most)
    sums, maxima = np.empty(most + 1), np.empty(most + 1)
    done = 0
    for slot in slots:
        first, n = np.int64(t.half[slot, HEAP]), np.int64(t.half[slot, KEYWORDS])
        for j in range(n):
            row = _word_row(ig, t.heap[first + j], idf[done + j])
            place = j
            while place > 0 and rarer(ig, row, rows[place - 1]):
                rows[place], at[place] = rows[place - 1], at[place - 1]
                place -= 1
            rows[place], at[place] = row, j
        for j in range(n):
            weights[j] = t.reals[first + n + at[j]]
        suffix_sums(weights, n, sums)
        suffix_maxima(weights, n, maxima)
        top = ig.meta[KEYS_TOP]
        for j in range(n + 1):
            ig.numbers[top + j, ORDINAL] = np.int64(ig.words[rows[j], NUMBER]) if j < n else -1
            ig.keys[top + j, WT] = weights[j] if j < n else 0.0
            ig.keys[top + j, WTSUM], ig.keys[top + j, MAXWT] = sums[j], maxima[j]
        ig.half[slot, KEYS] = np.int32(top)
        ig.half[slot, STATE] = 0
        ig.half[slot, LISTED] = 0
        ig.meta[KEYS_TOP] = top + n + 1
        done += n
        ig.meta[POSTED] += 1


@njit(lean=True)
def weigh(ig: Arrays, t: Tops, slots: Longs) -> None:
    """Write what depends on threshold and alpha."""
    for slot in slots:
        alpha = t.rows[slot, ALPHA]
        ig.subs[slot, KSCORE] = kscore_star(t.rows[slot, FLOOR], alpha)
        ig.subs[slot, ALPHA_STAR] = alpha_star(alpha)
        ig.subs[slot, FARTHEST] = t.rows[slot, MAXDIST]
        ig.half[slot, GROUP] = np.int32(group_of(ig, alpha))


@njit
def put_on_lists(ig: Arrays, t: Tops, slots: Longs, begin: int, dirty: Longs) -> int:
    """Put slots from number `begin` on onto the lists of their leaves; how many are.

    Fewer than all: there is no room. `dirty` gets the rows of lists, in front their number.
    """
    for q in range(begin, len(slots)):
        slot = slots[q]
        first, n = np.int64(ig.half[slot, KEYS]), np.int64(t.half[slot, KEYWORDS])
        if (ig.meta[LISTS] + n) * 10 > len(ig.lists) * 7:
            return q
        node = ig.half[slot, CELL] - 1
        for j in range(np.int64(ig.half[slot, LISTED]), n):
            row = list_row(ig, key_of(node, ig.numbers[first + j, ORDINAL]))
            if not add(ig, row, slot, first + j):
                return q
            ig.half[slot, LISTED] = np.int32(j + 1)
            _mark(ig, row, TIDY, dirty)
    return len(slots)


@njit(lean=True, forceinline=True)
def _mark(ig: Arrays, row: int, mark: np.uint64, dirty: Longs) -> None:
    """Note that a list changed, once."""
    if ig.lists[row, HELD] & TIDY == np.uint64(0):
        dirty[0] += 1
        dirty[dirty[0]] = row
    ig.lists[row, HELD] |= mark | TIDY


@njit
def change(ig: Arrays, t: Tops, s: sl.Slots, slots: Longs, dirty: Longs) -> None:
    """Take over thresholds that changed, and who ended. `dirty` as in `put_on_lists`."""
    for slot in slots:
        ig.half[slot, STATE] &= ~STALE
        if ig.half[slot, CELL] == 0 or ig.half[slot, STATE] & DEAD:
            continue
        node, alpha = ig.half[slot, CELL] - 1, t.rows[slot, ALPHA]
        before = lambda_s(ig.subs[slot, KSCORE] * (1.0 - alpha), alpha)
        if not before > ig.cells[node, LEAST] + _SAME * (1.0 + abs(ig.cells[node, LEAST])):
            ig.tree[node, DIRTY] = 1  # it may have been the least of its cell
        dead = not s.half[slot, sl.FLAGS] & sl.LIVE
        if dead:
            ig.half[slot, STATE] |= DEAD
            ig.meta[POSTED] -= 1
        else:
            ig.subs[slot, KSCORE] = kscore_star(t.rows[slot, FLOOR], alpha)
            least = lambda_s(t.rows[slot, FLOOR], alpha)
            ig.cells[node, LEAST] = min(ig.cells[node, LEAST], least)
        first = np.int64(ig.half[slot, KEYS])
        for j in range(first, first + ig.half[slot, LISTED]):
            row = pl.find(ig.lists, key_of(node, ig.numbers[j, ORDINAL]))
            moved = not dead and move_entry(ig, row, slot)
            _mark(ig, row, TIDY if moved else REREAD, dirty)
