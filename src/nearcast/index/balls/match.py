"""Offering objects to subscriptions with balls on posting lists, and expiring old objects."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.index.balls.lookups import Stages, find_lists, gather_keys, held_by
from nearcast.index.balls.post import (
    EVERYWHERE,
    GROUPED,
    PYRAMID,
    Scratch,
    follow,
    in_a_corner,
    refine,
    tighten,
)
from nearcast.index.deciding import EXAMINED, NEXT, where_holds
from nearcast.index.posting import CHANGED, POSTED, Index
from nearcast.kernels import postings as pl
from nearcast.kernels import results as rs
from nearcast.kernels import slots as sl
from nearcast.kernels.prefetch import prefetch
from nearcast.kernels.results import Results
from nearcast.model.jit import njit
from nearcast.model.space import distance
from nearcast.wire.tables import ObjectColumns

# places in `counts`, beside those of `deciding`
TAKEN = 5  # whether the object whose name is at the top was taken
NAMED = 6  # 1 + the number of that object; 0: none
COUNTS = 7
_AHEAD = 8  # lists from prefetching to reading


@njit(lean=True, forceinline=True)
def put_name(r: Results, o: ObjectColumns, row: int) -> int:
    """Put the id of object `row` at the top of `names`, without keeping it yet; where that is."""
    top = r.meta[rs.NAMES_TOP]
    length = o.id_offsets[row + 1] - o.id_offsets[row]
    r.names[top] = length & 0xFF
    r.names[top + 1] = length >> 8
    for j in range(length):
        r.names[top + 2 + j] = o.id_bytes[o.id_offsets[row] + j]
    return top


@njit(lean=True)
def _let_go(ix: Index, r: Results, slot: int, now: int) -> int:
    """Expire what is too old at `now`, moment by moment; DONE or what is short."""
    moment = rs.next_moment(r, slot)
    while moment <= now and r.half[slot, rs.LENGTH] > 0:
        if r.meta[rs.OUT_TOP] + 2 * r.half[slot, rs.LENGTH] > len(r.out):
            return rs.NEED_OUT
        rs.expire(r, slot, moment, sl.lives_at(ix.slots, slot, moment))
        moment = rs.next_moment(r, slot)
    return rs.DONE


@njit(lean=True, forceinline=True)
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


@njit(lean=True, forceinline=True)
def _keep_name(r: Results, o: ObjectColumns, counts: NDArray[np.int64]) -> None:
    """Keep the name at the top of `names` if a result refers to it now."""
    if counts[TAKEN]:
        row = o.order[counts[NAMED] - 1]
        r.meta[rs.NAMES_TOP] += 2 + o.id_offsets[row + 1] - o.id_offsets[row]
        counts[TAKEN] = 0
    counts[NAMED] = 0


@njit(lean=True)
def _fetch_ahead(ix: Index, r: Results, st: Stages, n: int) -> None:
    """Prefetch what n candidates need, in two steps: the second reads what the first fetched."""
    for j in range(n):
        prefetch(ix.slots.rows, st.slot[j])
        prefetch(r.rows, st.slot[j])
    for j in range(n):
        slot = st.slot[j]
        if not ix.slots.half[slot, sl.FLAGS] & sl.PROVED:
            prefetch(ix.slots.heap, ix.slots.rows[slot, sl.BODY])
        first, length = r.rows[slot, rs.LIST], r.half[slot, rs.LENGTH]
        for e in range(first, first + length, 4):  # four entries per cache line
            prefetch(r.pool, e)


@njit(lean=True)
def _decide(
    ix: Index,
    r: Results,
    space: int,
    layout: int,
    o: ObjectColumns,
    clock: NDArray[np.int64],
    st: Stages,
    n: int,
    s: Scratch,
    queued: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> int:
    """Offer n candidates their objects, in the order of the objects; DONE or what is short."""
    _fetch_ahead(ix, r, st, n)
    base = ix.slots.meta[sl.CLOCK]
    for j in range(n):
        i, slot = np.int64(st.object[j]), np.int64(st.slot[j])
        counts[NEXT] = i
        stamp = np.int32(base + i)
        if ix.slots.half[slot, sl.STAMP] == stamp:
            continue
        row = o.order[i]
        if counts[NAMED] != i + 1:
            _keep_name(r, o, counts)
            put_name(r, o, row)
            counts[NAMED] = i + 1
        counts[EXAMINED] += 1
        answer = _offer(ix, r, space, slot, o, i, clock, r.meta[rs.NAMES_TOP])
        if answer > 0:
            _keep_name(r, o, counts)
            return answer
        ix.slots.half[slot, sl.STAMP] = stamp
        if answer < 0:
            counts[TAKEN] = 1
            ix.meta[CHANGED] += 1
        if layout != EVERYWHERE:
            first, length = pl.entries(ix.lists, st.list[j])
            entry = first + st.place[j]
            if st.place[j] < length and ix.lists.pool[entry, 0] == slot:  # else it was swept away
                level = np.int64(st.at[j])
                follow(ix, r, space, layout, slot, level, entry, o.x[row], o.y[row], s, queued)
    return rs.DONE


@njit(lean=True)
def _scan(
    ix: Index,
    r: Results,
    space: int,
    layout: int,
    o: ObjectColumns,
    clock: NDArray[np.int64],
    st: Stages,
    n: int,
    s: Scratch,
    queued: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> int:
    """Read n lists; entries whose box holds the object become candidates; DONE or what is short."""
    boxes, pool = ix.lists.boxes, ix.lists.pool
    m = 0
    for j in range(n):
        if j + _AHEAD < n:
            pl.fetch_list(ix.lists, st.row[j + _AHEAD])
        row = o.order[st.number[j]]
        first, length = pl.entries(ix.lists, st.row[j])
        gone = 0
        for start in range(first, first + length, len(st.hit)):
            stop = min(start + len(st.hit), first + length)
            hits, buried = held_by(boxes, start, stop, o.x[row], o.y[row], st.hit)
            gone += buried
            for h in range(hits):
                if layout == PYRAMID and in_a_corner(boxes, st.hit[h], space, o.x[row], o.y[row]):
                    continue
                if m == len(st.slot):
                    short = _decide(ix, r, space, layout, o, clock, st, m, s, queued, counts)
                    if short:
                        return short
                    m = 0
                e = st.hit[h]
                st.object[m] = st.number[j]
                st.slot[m] = pool[e, 0]
                st.list[m] = st.row[j]
                st.place[m] = e - first
                st.at[m] = st.level[j]
                m += 1
        if 2 * gone > length:
            pl.sweep(ix.lists, st.row[j])
    return _decide(ix, r, space, layout, o, clock, st, m, s, queued, counts)


@njit(lean=True)
def match_balls(
    ix: Index,
    r: Results,
    space: int,
    layout: int,
    o: ObjectColumns,
    clock: NDArray[np.int64],
    st: Stages,
    s: Scratch,
    queued: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> int:
    """Offer the objects from number `counts[NEXT]` on; DONE, or what is short (then call again).

    Works in rounds of some hundred look-ups, step by step, because waiting for memory is most of
    the work: within a step the loads do not depend on each other. A call that starts again in the
    middle of an object writes its name a second time; stamps keep subscriptions from being offered
    it twice.
    """
    counts[NAMED] = 0
    while True:
        if not refine(ix, r, space, layout, s, st.groups, queued):
            return rs.NEED_LISTS
        if layout == GROUPED and ix.meta[CHANGED] > ix.meta[POSTED]:
            tighten(ix, r, space, s, st.groups)
        if counts[NEXT] == len(o.order):
            return rs.DONE
        following, n = gather_keys(ix, o, counts[NEXT], st)
        n = find_lists(ix, st, n, counts)
        short = _scan(ix, r, space, layout, o, clock, st, n, s, queued, counts)
        if short:
            return short
        _keep_name(r, o, counts)
        counts[NEXT] = following


@njit(lean=True)
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
