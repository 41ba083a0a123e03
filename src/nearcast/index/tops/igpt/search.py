"""Algorithm 1: message dissemination, keyword by keyword in every cell that is not skipped."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.index.tops.igpt.bounds import (
    kscore_star,
    lambda_t,
    lemma_4,
    lemma_6,
    ssim_ub,
    suffix_maxima,
    suffix_sums,
    theorem_1,
    theorem_2,
    theorem_3,
    theorem_4,
    tsim_ub,
)
from nearcast.index.tops.igpt.lists import run_of
from nearcast.index.tops.igpt.places import outer_distance
from nearcast.index.tops.igpt.post import rarer
from nearcast.index.tops.igpt.state import (
    ALPHA_STAR,
    AT,
    E_ALPHA,
    E_KSCORE,
    E_MAXWT,
    FARTHEST,
    FOUND,
    INNER,
    KSCORE,
    LEAST,
    MAXDIST,
    MAXWT,
    NODES,
    NUMBER,
    OWN_MAXWT,
    OWN_WTSUM,
    PARTIAL,
    SKIPPED,
    SLOT,
    STALE,
    STATE,
    WT,
    WTSUM,
    Arrays,
    count_of,
    first_of,
    key_of,
)
from nearcast.index.tops.places import point
from nearcast.index.tops.state import (
    ALPHA,
    CELLS,
    CELLS_SKIPPED,
    FLOOR,
    LOOKUPS,
    PARTS,
    PARTS_SKIPPED,
    SCANNED,
    Tops,
    Weighed,
)
from nearcast.kernels import postings as pl
from nearcast.kernels import slots as sl
from nearcast.kernels.prefetch import prefetch
from nearcast.model.jit import njit

_AHEAD = 8  # look-ups, or entries, from prefetching memory to reading it

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]
Halves = NDArray[np.int32]


@njit(lean=True)
def _read_words(
    ig: Arrays, w: Weighed, row: int, rows: Longs, wt: Floats, sums: Floats, maxima: Floats
) -> int:
    """The message's keywords in the order of all keywords, with wtsum and maxwt; how many.

    Keywords that no subscription has are left out: they add nothing to any similarity.
    """
    n = 0
    for j in range(w.o.word_offsets[row], w.o.word_offsets[row + 1]):
        at = pl.find(ig.words, w.o.words[j])
        if at >= 0:
            place = n
            while place > 0 and rarer(ig, at, rows[place - 1]):
                rows[place], wt[place] = rows[place - 1], wt[place - 1]
                place -= 1
            rows[place], wt[place] = at, w.weights[j]
            n += 1
    suffix_sums(wt, n, sums)
    suffix_maxima(wt, n, maxima)
    return n


@njit(lean=True)
def _read_cells(
    ig: Arrays, space: int, x: float, y: float, prune: bool, near: Longs, outer: Floats,
    ssim: Floats, counts: Longs,
) -> int:  # fmt: skip
    """Leaves that are not skipped, how far each is and its outer bound; how many."""
    px, py, pz = point(space, x, y)
    n = 0
    for node in range(ig.meta[NODES]):
        least = ig.cells[node, LEAST]
        if least == np.inf:  # it is empty, or no leaf
            continue
        away = outer_distance(space, px, py, pz, ig.cells[node])
        bound = ssim_ub(away, ig.cells[node, MAXDIST])
        counts[CELLS] += 1
        if prune and lemma_6(least, bound):
            counts[CELLS_SKIPPED] += 1
            continue
        near[n], outer[n], ssim[n] = node, away, bound
        n += 1
    return n


@njit(lean=True)
def _find_lists(
    ig: Arrays, near: Longs, cells: int, rows: Longs, words: int, hits: Longs, counts: Longs
) -> int:
    """The lists of the words in these leaves: [cell, word, row] by cell, then by word; how many."""
    n = 0
    counts[LOOKUPS] += cells * words
    for c in range(cells):
        for j in range(words):
            ahead = j + _AHEAD
            if c + ahead // words < cells:
                number = np.int64(ig.words[rows[ahead % words], NUMBER])
                prefetch(ig.lists, pl.home(len(ig.lists), key_of(near[c + ahead // words], number)))
            number = np.int64(ig.words[rows[j], NUMBER])
            row = pl.find(ig.lists, key_of(near[c], number))
            if row >= 0 and count_of(ig, row) > 0:
                hits[3 * n], hits[3 * n + 1], hits[3 * n + 2] = c, j, row
                n += 1
    return n


@njit(lean=True)
def _look(
    ig: Arrays, e: int, outer: float, wt: float, sums: Floats, maxima: Floats, j: int,
    touched: Halves, n: int,
) -> int:  # fmt: skip
    """Look at one entry: lines 17 to 28 of algorithm 1; how many are touched then.

    Lemma 4 is applied besides theorem 1: who was passed over with its group under one keyword, is
    then passed over here under later ones, so what is known of the similarity lacks nothing.
    """
    slot = ig.entries[e, SLOT]
    if ig.half[slot, STATE] & SKIPPED:
        return n
    sub = ig.subs[slot]
    inside = sub[INNER] if outer > 0.0 else 0.0
    needed = lambda_t(sub[KSCORE], sub[ALPHA_STAR], ssim_ub(inside + outer, sub[FARTHEST]))
    own_sum, own_max = np.float64(ig.bounds[e, OWN_WTSUM]), np.float64(ig.bounds[e, OWN_MAXWT])
    if theorem_1(maxima[j], own_sum, needed) or lemma_4(own_max, sums[j], needed):
        return n
    at = np.int64(ig.entries[e, AT])
    if ig.half[slot, STATE] & FOUND == 0:
        ig.half[slot, STATE] |= FOUND
        sub[PARTIAL] = 0.0
        touched[n] = slot
        n += 1
    sub[PARTIAL] += ig.keys[at, WT] * wt
    unseen = tsim_ub(ig.keys[at + 1, WTSUM], maxima[j + 1], sums[j + 1], ig.keys[at + 1, MAXWT])
    if theorem_2(sub[PARTIAL], unseen, needed):
        ig.half[slot, STATE] |= SKIPPED
    return n


@njit(lean=True)
def _read_list(
    ig: Arrays, row: int, outer: float, ssim: float, wt: float, sums: Floats, maxima: Floats,
    j: int, prune: bool, touched: Halves, n: int, counts: Longs,
) -> int:  # fmt: skip
    """The groups of one list: lines 10 to 28 of algorithm 1; how many are touched then."""
    e = first_of(ig, row)
    end = e + count_of(ig, row)
    maxwt, kscore, alpha = ig.bounds[:, E_MAXWT], ig.bounds[:, E_KSCORE], ig.bounds[:, E_ALPHA]
    while e < end:
        behind = e + run_of(ig, e)
        stop = behind
        if prune:
            counts[PARTS] += 1
            counts[SCANNED] += 1
            least, most = np.float64(kscore[e]), np.float64(alpha[e])
            if theorem_3(np.float64(maxwt[e]), sums[j], least, most, ssim):
                counts[PARTS_SKIPPED] += 1
                e = behind
                continue
            stop = theorem_4(maxwt, kscore, alpha, e + 1, behind, sums[j], ssim)
        counts[SCANNED] += stop - e
        for a in range(e, stop):
            if a + _AHEAD < stop:
                prefetch(ig.subs, ig.entries[a + _AHEAD, SLOT])
            n = _look(ig, a, outer, wt, sums, maxima, j, touched, n)
        e = behind
    return n


@njit(lean=True)
def _take(
    ig: Arrays, t: Tops, s: sl.Slots, touched: Halves, n: int, i: int, objects: Halves,
    slots: Halves, found: int, stale: Longs,
) -> int:  # fmt: skip
    """Take the candidates of a cell; how many there are then. `stale` gets whose threshold rose."""
    for q in range(n):
        prefetch(t.rows, touched[q])
        prefetch(s.rows, touched[q])
    for q in range(n):
        slot = touched[q]
        state = ig.half[slot, STATE]
        ig.half[slot, STATE] = state & ~(FOUND | SKIPPED)
        if state & SKIPPED:
            continue
        living = s.half[slot, sl.FLAGS] & sl.LIVE
        risen = kscore_star(t.rows[slot, FLOOR], t.rows[slot, ALPHA]) > ig.subs[slot, KSCORE]
        if (risen or not living) and not state & STALE:
            ig.half[slot, STATE] |= STALE
            stale[0] += 1
            stale[stale[0]] = slot
        if living:
            objects[found], slots[found] = i, slot
            found += 1
    return found


@njit
def disseminate(
    ig: Arrays, t: Tops, s: sl.Slots, w: Weighed, space: int, prune: bool, first: int, stop: int,
    objects: Halves, slots: Halves, stale: Longs, counts: Longs,
) -> tuple[int, int]:  # fmt: skip
    """(objects that are through, candidates) of objects first <= i < stop. Skype, algorithm 1.

    Candidates are written to `objects` and `slots`; it ends early where all subscriptions could not
    be written any more. `prune`: groups and cells are pruned too. `stale` gets slots whose
    thresholds rose, or that ended; in front their number.
    """
    longest = 0
    for i in range(first, stop):
        row = w.o.order[i]
        longest = max(longest, w.o.word_offsets[row + 1] - w.o.word_offsets[row])
    rows, wt = np.empty(longest, np.int64), np.empty(longest)
    sums, maxima = np.empty(longest + 1), np.empty(longest + 1)
    nodes = ig.meta[NODES]
    near, outer, ssim = np.empty(nodes, np.int64), np.empty(nodes), np.empty(nodes)
    hits = np.empty(3 * nodes * longest, np.int64)
    touched = np.empty(len(ig.subs), np.int32)
    found = 0
    for i in range(first, stop):
        if found + len(ig.subs) > len(slots):
            return i, found
        row = w.o.order[i]
        words = _read_words(ig, w, row, rows, wt, sums, maxima)
        if words == 0:
            continue
        cells = _read_cells(ig, space, w.o.x[row], w.o.y[row], prune, near, outer, ssim, counts)
        n = _find_lists(ig, near, cells, rows, words, hits, counts)
        marked = 0
        for h in range(n):
            c, j = hits[3 * h], hits[3 * h + 1]
            if h + 2 < n:
                prefetch(ig.entries, first_of(ig, hits[3 * h + 8]))
            marked = _read_list(
                ig, hits[3 * h + 2], outer[c], ssim[c], wt[j], sums, maxima, j, prune, touched,
                marked, counts,
            )  # fmt: skip
            if h + 1 == n or hits[3 * h + 3] != c:
                found = _take(ig, t, s, touched, marked, i, objects, slots, found, stale)
                marked = 0
    return stop, found
