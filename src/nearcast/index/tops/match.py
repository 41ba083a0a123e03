"""Offering objects to subscriptions, in object order, and letting others leave in between."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.index.tops.buffers import due_of, offer, ranks_at, scores_at, settle, survivors
from nearcast.index.tops.state import (
    ALPHA,
    COUNTS,
    DONE,
    EXAMINED,
    FLOOR,
    HEAP,
    KEYWORDS,
    LENGTH,
    MAXDIST,
    NEXT,
    NOT_BEGUN,
    OFFERED,
    VISITED,
    K,
    Period,
    Tops,
    Weighed,
    X,
    Y,
    leaves,
    sees_window,
)
from nearcast.kernels import slots as sl
from nearcast.kernels.prefetch import prefetch
from nearcast.kernels.program import all_held, satisfied
from nearcast.model.jit import njit
from nearcast.model.score import blend, near
from nearcast.model.space import distance
from nearcast.wire.tables import ObjectColumns

__all__ = [
    "COUNTS",
    "fill",
    "find_short",
    "last_needed",
    "offer_all",
    "purge",
    "settle_all",
    "skybands",
]

_FAR, _NEAR = 24, 8  # candidates from prefetching memory to reading it


@njit(lean=True, forceinline=True)
def _cosine(t: Tops, slot: int, w: Weighed, row: int) -> float:
    """SPEC section 4, in its order of operations; -1: no keyword is shared."""
    first, n = np.int64(t.half[slot, HEAP]), np.int64(t.half[slot, KEYWORDS])
    start, stop = w.o.word_offsets[row], w.o.word_offsets[row + 1]
    total, shared = 0.0, False
    for j in range(first, first + n):
        word = t.heap[j]
        lo, hi = start, stop
        while hi - lo > 8:
            mid = (lo + hi) >> 1
            if w.o.words[mid] <= word:
                lo = mid
            else:
                hi = mid
        for at in range(lo, hi):
            if w.o.words[at] == word:
                total += t.reals[j + n] * w.weights[at]
                shared = True
                break
    return total if shared else -1.0


@njit(lean=True, forceinline=True)
def _where(s: sl.Slots, stack: NDArray[np.uint8], slot: int, o: ObjectColumns, row: int) -> bool:
    """Whether the words of object `row` make the expression of `slot` true."""
    length = s.half[slot, sl.PROGRAM]
    if length == 0:
        return True
    first = s.rows[slot, sl.BODY]
    start, stop = o.word_offsets[row], o.word_offsets[row + 1]
    if s.half[slot, sl.FLAGS] & sl.CONJUNCTION:
        return all_held(s.heap, first, length, o.words, start, stop)
    return satisfied(s.heap, first, length, o.words, start, stop, stack)


@njit(lean=True)
def offer_all(
    t: Tops,
    s: sl.Slots,
    w: Weighed,
    p: Period,
    space: int,
    stack: NDArray[np.uint8],
    objects: NDArray[np.int32],
    slots: NDArray[np.int32],
    first: int,
    begins: int,
    most: NDArray[np.int32],
    depth: NDArray[np.int32],
    counts: NDArray[np.int64],
) -> int:
    """Offer candidates (object number, slot), in order, from `counts[NEXT]` on.

    `first` is the place in the log of the batch's first object; `begins`: what stamps begin with.
    """
    n = len(slots)
    for c in range(counts[NEXT], n):
        if c + _FAR < n:
            prefetch(s.rows, slots[c + _FAR])
            prefetch(t.rows, slots[c + _FAR])
        if c + _NEAR < n:
            ahead = slots[c + _NEAR]
            prefetch(t.heap, np.int64(t.half[ahead, HEAP]))
            prefetch(t.pool, scores_at(t, ahead))
        i, slot = np.int64(objects[c]), np.int64(slots[c])
        counts[NEXT] = c
        stamp = np.int32(begins + i)
        if s.half[slot, sl.STAMP] == stamp:
            continue
        row = w.o.order[i]
        counts[EXAMINED] += 1
        short = _consider(t, s, w, p, space, stack, slot, i, row, first + i, most, depth, counts)
        if short:
            return short
        s.half[slot, sl.STAMP] = stamp
    counts[NEXT] = n
    return DONE


@njit(lean=True, forceinline=True)
def _consider(
    t: Tops,
    s: sl.Slots,
    w: Weighed,
    p: Period,
    space: int,
    stack: NDArray[np.uint8],
    slot: int,
    i: int,
    row: int,
    place: int,
    most: NDArray[np.int32],
    depth: NDArray[np.int32],
    counts: NDArray[np.int64],
) -> int:
    """Offer one object to one subscription, if it sees it and the score is high enough."""
    o = w.o
    time = o.time[row]
    if not sees_window(s, slot, i, o.until[row]) or t.due[slot] == NOT_BEGUN:
        return DONE
    if p.count == 0 and time <= w.clock[i] - p.span:
        return DONE
    cosine = _cosine(t, slot, w, row)
    if cosine < 0.0:
        return DONE
    alpha = t.rows[slot, ALPHA]
    away = distance(space, t.rows[slot, X], t.rows[slot, Y], o.x[row], o.y[row])
    score = blend(alpha, near(away, t.rows[slot, MAXDIST]), cosine)
    if score < t.rows[slot, FLOOR] or not _where(s, stack, slot, o, row):
        return DONE
    now = t.log[place, 0] if p.count > 0 else w.clock[i]
    short = settle(t, s, w, p, slot, now)
    if short:
        return short
    counts[OFFERED] += 1
    size = min(np.int64(t.half[slot, K]), np.int64(len(most) - 1))
    return offer(
        t, p, slot, i, time, now, score, place, np.int64(most[size]), np.int64(depth[size])
    )


@njit(lean=True)
def settle_all(
    t: Tops, s: sl.Slots, w: Weighed, p: Period, n: int, counts: NDArray[np.int64]
) -> int:
    """Let what leaves until the end of a period leave, of all slots from `counts[NEXT]` on."""
    for slot in range(counts[NEXT], n):
        if t.due[slot] <= p.until and t.due[slot] != NOT_BEGUN:
            counts[NEXT] = slot
            counts[VISITED] += 1
            short = settle(t, s, w, p, slot, p.until)
            if short:
                return short
    counts[NEXT] = n
    return DONE


@njit
def find_short(t: Tops, s: sl.Slots, p: Period, n: int) -> NDArray[np.int64]:
    """Slots whose buffers may have too few entries before the period is over."""
    out = np.empty(64, np.int64)
    found = 0
    for slot in range(n):
        if t.due[slot] > p.until or t.due[slot] == NOT_BEGUN:
            continue
        if t.rows[slot, FLOOR] == -np.inf or not s.half[slot, sl.FLAGS] & sl.LIVE:
            continue
        if survivors(t, p, slot) < t.half[slot, K]:
            if found == len(out):
                wider = np.empty(2 * found, np.int64)
                wider[:found] = out
                out = wider
            out[found] = slot
            found += 1
    return out[:found].copy()


@njit(lean=True)
def fill(
    t: Tops,
    p: Period,
    slots: NDArray[np.int64],
    offsets: NDArray[np.int64],
    scores: NDArray[np.float64],
    ranks: NDArray[np.int64],
    floors: NDArray[np.float64],
) -> None:
    """Put what was found, best first, in place of buffers that have room for it."""
    for q in range(len(slots)):
        slot = slots[q]
        n = offsets[q + 1] - offsets[q]
        at, low = scores_at(t, slot), ranks_at(t, slot)
        for j in range(n):
            t.pool[at + j] = scores[offsets[q] + j]
            t.ranks[low + j] = np.int32(np.uint32(ranks[offsets[q] + j] & 0xFFFFFFFF))
        t.half[slot, LENGTH] = np.int32(n)
        t.rows[slot, FLOOR] = floors[q]
        t.due[slot] = due_of(t, p, slot)


@njit(lean=True)
def purge(t: Tops, p: Period, n: int, passed: int) -> None:
    """Take out, unseen, what had left at the moment `passed`; buffers were put back as stored."""
    for slot in range(n):
        if t.due[slot] == NOT_BEGUN:
            continue
        first, ranks = scores_at(t, slot), ranks_at(t, slot)
        kept = 0
        for j in range(t.half[slot, LENGTH]):
            if leaves(t, p, t.ranks[ranks + j]) > passed:
                t.pool[first + kept] = t.pool[first + j]
                t.ranks[ranks + kept] = t.ranks[ranks + j]
                kept += 1
        t.half[slot, LENGTH] = np.int32(kept)
        t.due[slot] = due_of(t, p, slot)


@njit
def skybands(
    p: Period,
    offsets: NDArray[np.int64],
    ranks: NDArray[np.int64],
    times: NDArray[np.int64],
    wanted: NDArray[np.int64],
    kept: NDArray[np.bool_],
) -> int:
    """Of lists of objects, best first, keep what fewer than k precede and outlive (definition 11).

    Changes `kept`; returns how many pairs were compared.
    """
    compared = 0
    for q in range(len(wanted)):
        for at in range(offsets[q], offsets[q + 1]):
            if not kept[at]:
                continue
            own = ranks[at] if p.count > 0 else times[at]
            beaten, other, spare = 0, offsets[q], at - offsets[q] - wanted[q]
            while other < at and beaten < wanted[q] and other - offsets[q] - beaten <= spare:
                # What is not kept is dominated by others that are, which count in its place.
                beaten += (ranks[other] if p.count > 0 else times[other]) >= own
                other += 1
            compared += other - offsets[q]
            kept[at] = beaten < wanted[q]
    return compared


@njit
def last_needed(
    p: Period,
    offsets: NDArray[np.int64],
    ranks: NDArray[np.int64],
    times: NDArray[np.int64],
    wanted: NDArray[np.int64],
) -> NDArray[np.int64]:
    """By list of objects: the place of the k-th that outlasts the period; -1: there are fewer."""
    out = np.full(len(wanted), -1)
    for q in range(len(wanted)):
        n = 0
        for at in range(offsets[q], offsets[q + 1]):
            n += (ranks[at] + p.count if p.count > 0 else times[at] + p.span) > p.until
            if n == wanted[q]:
                out[q] = at
                break
    return out
