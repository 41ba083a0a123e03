"""Offering objects to knn subscriptions on posting lists, and letting old objects go."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.index.posting import LEVELS, UNIVERSAL, Index
from nearcast.index.range_match import EXAMINED, LOOKUPS, NEXT, SCANNED, where_holds
from nearcast.kernels import postings as pl
from nearcast.kernels import results as rs
from nearcast.kernels import slots as sl
from nearcast.kernels.cells import ROOT, cell_key
from nearcast.kernels.results import Results
from nearcast.model.jit import njit
from nearcast.model.space import distance
from nearcast.wire.tables import ObjectColumns

TAKEN = 5  # place in `counts`, behind those of range_match


@njit
def _name(r: Results, o: ObjectColumns, row: int) -> None:
    """Put the id of object `row` at the top of `names`, without keeping it yet."""
    top = r.meta[rs.NAMES_TOP]
    length = o.id_offsets[row + 1] - o.id_offsets[row]
    r.names[top] = length & 0xFF
    r.names[top + 1] = length >> 8
    for j in range(length):
        r.names[top + 2 + j] = o.id_bytes[o.id_offsets[row] + j]


@njit
def _let_go(ix: Index, r: Results, slot: int, now: int) -> int:
    """Expire what is too old at `now`, moment by moment; DONE or what is short."""
    moment = rs.next_moment(r, slot)
    while moment <= now and r.half[slot, rs.LENGTH] > 0:
        if r.meta[rs.OUT_TOP] + 2 * r.half[slot, rs.LENGTH] > len(r.out):
            return rs.NEED_OUT
        rs.expire(r, slot, moment, sl.lives_at(ix.slots, slot, moment))
        moment = rs.next_moment(r, slot)
    return rs.DONE


@njit
def _offer(
    ix: Index,
    r: Results,
    space: int,
    slot: int,
    o: ObjectColumns,
    i: int,
    clock: NDArray[np.int64],
    name: int,
) -> int:
    """Offer object `i` to `slot`: DONE, -1 when it was taken, or what is short."""
    row = o.order[i]
    time = o.time[row]
    if not sl.sees(ix.slots, slot, i, time, o.until[row]):
        return rs.DONE
    dist = distance(space, r.reals[slot, rs.X], r.reals[slot, rs.Y], o.x[row], o.y[row])
    if dist >= r.reals[slot, rs.REACH] or not where_holds(ix, slot, o, row):
        return rs.DONE
    window = r.rows[slot, rs.WINDOW]
    if window > 0:
        short = _let_go(ix, r, slot, clock[i])
        if short:
            return short
        if time + window <= clock[i]:
            return rs.DONE
    if r.meta[rs.OUT_TOP] + 2 > len(r.out):
        return rs.NEED_OUT
    length = np.int64(r.half[slot, rs.LENGTH])
    need = length + 1 if window > 0 else min(length + 1, r.rows[slot, rs.K])
    if not rs.make_room(r, slot, need):
        return rs.NEED_POOL
    return -1 if rs.offer(r, slot, i, dist, time, name) else rs.DONE


@njit
def _offer_word(
    ix: Index,
    r: Results,
    space: int,
    word: np.uint64,
    o: ObjectColumns,
    i: int,
    clock: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> int:
    """Offer object `i` to the list of `word`; DONE or what is short."""
    found = pl.find(ix.words, word)
    if found < 0 or ix.words[found, LEVELS] == np.uint64(0):
        return rs.DONE
    name = r.meta[rs.NAMES_TOP]
    stamp = np.int32(ix.slots.meta[sl.CLOCK] + i)
    first, length = pl.entries(ix.lists, cell_key(word, ROOT, 0, 0))
    counts[LOOKUPS] += 1
    counts[SCANNED] += length
    for e in range(first, first + length):
        slot = np.int64(ix.lists.pool[e, 0])
        if ix.slots.half[slot, sl.STAMP] == stamp:
            continue
        counts[EXAMINED] += 1
        answer = _offer(ix, r, space, slot, o, i, clock, name)
        if answer > 0:
            return answer
        ix.slots.half[slot, sl.STAMP] = stamp
        if answer < 0:
            counts[TAKEN] = 1
    return rs.DONE


@njit
def _offer_all(
    ix: Index,
    r: Results,
    space: int,
    o: ObjectColumns,
    i: int,
    clock: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> int:
    row = o.order[i]
    short = _offer_word(ix, r, space, UNIVERSAL, o, i, clock, counts)
    for w in range(o.word_offsets[row], o.word_offsets[row + 1]):
        if short:
            break
        short = _offer_word(ix, r, space, o.words[w], o, i, clock, counts)
    return short


@njit
def match_knn(
    ix: Index,
    r: Results,
    space: int,
    o: ObjectColumns,
    clock: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> int:
    """Offer the objects from number `counts[NEXT]` on; DONE, or what is short (then call again).

    A call that starts again in the middle of an object writes its name a second time; stamps keep
    subscriptions from being offered it twice.
    """
    while counts[NEXT] < len(o.order):
        i = counts[NEXT]
        row = o.order[i]
        _name(r, o, row)
        short = _offer_all(ix, r, space, o, i, clock, counts)
        if counts[TAKEN]:  # somebody's result refers to the name now: keep it
            r.meta[rs.NAMES_TOP] += 2 + o.id_offsets[row + 1] - o.id_offsets[row]
            counts[TAKEN] = 0
        if short:
            return short
        counts[NEXT] = i + 1
    return rs.DONE


@njit
def pass_time(ix: Index, r: Results, now: int, counts: NDArray[np.int64]) -> int:
    """Let all windows slide on to `now`, from slot `counts[NEXT]` on; DONE or what is short."""
    while counts[NEXT] < ix.slots.meta[sl.COUNT]:
        slot = counts[NEXT]
        if r.rows[slot, rs.WINDOW] > 0:
            short = _let_go(ix, r, slot, now)
            if short:
                return short
        counts[NEXT] = slot + 1
    return rs.DONE
