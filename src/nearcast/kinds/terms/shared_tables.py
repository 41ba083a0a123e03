"""Groups of subscriptions with a table of words in common (SSTD section 6.1, figure 6).

A group has subscriptions whose regions are nearly the same. One table counts the words of objects
that are inside the regions of all of them; and each subscription has a table for objects that are
inside its region, but not inside all. An object in the common part is counted once, not once for
each subscription. Objects are added as they come and taken out as they grow too old for the window,
which all of a group have in common, as they have their `where`.

A table is an open hash table in a block of one growing pool (`kernels.blocks`): (word, count); a
word whose count has fallen to 0 goes when its table is rebuilt.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels import blocks
from nearcast.kernels import slots as sl
from nearcast.kernels.program import satisfied
from nearcast.kinds.terms import moments as mo
from nearcast.model.geometry import region_contains
from nearcast.model.jit import njit

__all__ = [
    "AGED", "ALIVE", "DONE", "GROUP_WIDTH", "INNER", "KEY", "MEMBERS", "MOST", "OUTER", "WINDOW",
    "Due", "Groups", "Reported", "Some", "advance", "dissolve", "inside", "shares_of",
    "words_in",
]  # fmt: skip

Longs = NDArray[np.int64]
Reals = NDArray[np.float64]
Words = NDArray[np.uint64]

MOST = 64  # subscriptions of a group
GROUP_WIDTH = 11
ALIVE, MEMBERS, WINDOW, DONE, AGED, KEY = 0, 1, 2, 3, 4, 5
"""Numbers of a group: whether it is one; how many have been in it from its beginning on; their
window; all objects with lower ranks are counted; objects up to this time are not. From KEY on, what
makes subscriptions alike (`grouping`)."""
INNER, OUTER = 0, 4  # boxes: positions that are inside all regions for sure, and may be in one
FIRST, SIZE, USED = range(3)  # of a table: its block of 2^(SIZE - 1) entries; SIZE 0: it has none
_SMALL = 4  # 2^this entries of a new table, at least
_TWO = np.uint64(2)
_NONE = np.uint64(0)  # no hash of a word


class Groups(NamedTuple):
    """All groups of a shard; every array may be memory-mapped."""

    rows: Longs  # [g, GROUP_WIDTH]
    boxes: Reals  # [g, 8]: INNER, OUTER
    members: Longs  # [g * MOST, 2]: slot, and whether it is still there
    tables: Longs  # [g * (MOST + 1), 3]: of the common part, then of each member
    pool: Words  # [*, 2]
    meta: Longs  # of the pool


class Some(NamedTuple):
    """Objects by x, to be added or to be taken out."""

    x: Reals
    y: Reals
    time: Longs
    rank: Longs
    starts: Longs  # where words of each begin
    stops: Longs
    words: Words


class Due(NamedTuple):
    """Moments of groups, in order within each."""

    slot: Longs
    member: Longs
    time: Longs
    rank: Longs  # objects with lower ranks were handled before it


class Reported(NamedTuple):
    """Words that may be among the k of each moment, with their counts; these are complete."""

    words: Words
    counts: Longs
    ends: Longs  # by moment, where its words end


# -- tables --------------------------------------------------------------------------------------


@njit(lean=True)
def _place(pool: Words, first: int, size: int, word: np.uint64) -> int:
    """Where a word of a table is, or would be."""
    mask = np.uint64((1 << size) - 1)
    at = (word >> _TWO) & mask  # a hash already: its two lowest bits are a tag
    while True:
        held = pool[first + np.int64(at), 0]
        if held == word or held == _NONE:
            return int(first + np.int64(at))
        at = (at + np.uint64(1)) & mask


@njit(lean=True)
def _has_room(g: Groups, table: int, more: int) -> bool:
    """Make room in a table for so many more words; False: the pool must grow first."""
    t = g.tables[table]
    if t[SIZE] > 0 and (t[USED] + more) * 4 <= 3 << (t[SIZE] - 1):
        return True
    alive = 0
    if t[SIZE] > 0:
        for at in range(t[FIRST], t[FIRST] + (1 << (t[SIZE] - 1))):
            alive += g.pool[at, 0] != _NONE and g.pool[at, 1] != _NONE
    size = max(_SMALL, blocks.size_for(2 * (alive + more)))
    first = blocks.take(g.pool, g.meta, size)
    if first < 0:
        return False
    for at in range(first, first + (1 << size)):
        g.pool[at, 0] = _NONE
        g.pool[at, 1] = _NONE
    if t[SIZE] > 0:
        for at in range(t[FIRST], t[FIRST] + (1 << (t[SIZE] - 1))):
            if g.pool[at, 0] != _NONE and g.pool[at, 1] != _NONE:
                to = _place(g.pool, first, size, g.pool[at, 0])
                g.pool[to, 0] = g.pool[at, 0]
                g.pool[to, 1] = g.pool[at, 1]
        blocks.give_back(g.pool, g.meta, t[FIRST], t[SIZE] - 1)
    t[FIRST] = first
    t[SIZE] = size + 1
    t[USED] = alive
    return True


@njit(lean=True)
def _change(g: Groups, table: int, o: Some, i: int, by: int) -> None:
    """Count the words of an object once more, or (`by` -1) once less."""
    t = g.tables[table]
    for at in range(o.starts[i], o.stops[i]):
        to = _place(g.pool, t[FIRST], t[SIZE] - 1, o.words[at])
        if g.pool[to, 0] == _NONE:
            g.pool[to, 0] = o.words[at]
            t[USED] += 1
        g.pool[to, 1] = np.uint64(np.int64(g.pool[to, 1]) + by)


@njit(lean=True)
def _count_of(g: Groups, table: int, word: np.uint64) -> int:
    t = g.tables[table]
    if t[SIZE] == 0:
        return 0
    at = _place(g.pool, t[FIRST], t[SIZE] - 1, word)
    return int(g.pool[at, 1]) if g.pool[at, 0] == word else 0


@njit
def words_in(g: Groups, table: int) -> tuple[Words, Longs]:
    """The words of a table, with their counts."""
    t = g.tables[table]
    n = 1 << (t[SIZE] - 1) if t[SIZE] > 0 else 0
    words, counts = np.empty(n, np.uint64), np.empty(n, np.int64)
    held = 0
    for at in range(t[FIRST], t[FIRST] + n):
        if g.pool[at, 0] != _NONE and g.pool[at, 1] != _NONE:
            words[held] = g.pool[at, 0]
            counts[held] = np.int64(g.pool[at, 1])
            held += 1
    return words[:held], counts[:held]


@njit(lean=True)
def dissolve(g: Groups, group: int) -> None:
    """There is no such group any more."""
    for table in range(group * (MOST + 1), (group + 1) * (MOST + 1)):
        if g.tables[table, SIZE] > 0:
            blocks.give_back(g.pool, g.meta, g.tables[table, FIRST], g.tables[table, SIZE] - 1)
        g.tables[table, SIZE] = 0
        g.tables[table, USED] = 0
    g.rows[group, ALIVE] = 0


# -- objects -------------------------------------------------------------------------------------


@njit
def inside(o: Some, box: Reals) -> Longs:
    """The objects in a box, by x."""
    first = np.searchsorted(o.x, box[0])
    last = np.searchsorted(o.x, box[2], side="right")
    out = np.empty(last - first, np.int64)
    n = 0
    for i in range(first, last):
        out[n] = i
        n += box[1] <= o.y[i] and o.y[i] <= box[3]
    return out[:n]


@njit
def _holds(space: int, s: sl.Slots, slot: int, x: float, y: float) -> bool:
    """Whether a position is inside the region of a subscription."""
    half = s.half[slot]
    first = s.rows[slot, sl.BODY] + half[sl.PROGRAM] + half[sl.COVER]
    data = s.reals[first : first + half[sl.REGION]]
    return bool(region_contains(space, half[sl.FLAGS] & sl.REGION_CODE, data, x, y))


@njit
def _tables_of(
    space: int, s: sl.Slots, stack: NDArray[np.uint8], g: Groups, group: int, o: Some, i: int,
    out: Longs,
) -> int:  # fmt: skip
    """In which tables of a group an object is counted: how many; their numbers are in `out`."""
    first = group * MOST
    slot = g.members[first, 0]
    half = s.half[slot]
    body, length = s.rows[slot, sl.BODY], half[sl.PROGRAM]
    if length and not satisfied(s.heap, body, length, o.words, o.starts[i], o.stops[i], stack):
        return 0
    x, y, box = o.x[i], o.y[i], g.boxes[group]
    common = group * (MOST + 1)
    if box[0] <= x and x <= box[2] and box[1] <= y and y <= box[3]:
        out[0] = common
        return 1
    n, every = 0, True
    for member in range(g.rows[group, MEMBERS]):
        if not _holds(space, s, g.members[first + member, 0], x, y):
            every = False
        elif g.members[first + member, 1]:
            out[n] = common + 1 + member
            n += 1
    if every:  # also of those that have ended meanwhile: the common part stays as it was
        out[0] = common
        return 1
    return n


@njit
def _wanted(o: Some, box: Reals, rank: int, time: int, by_rank: bool) -> Longs:
    """Objects in a box from a rank on and later than a time, in the order of either."""
    found = inside(o, box)
    kept = 0
    keys = np.empty(len(found), np.int64)
    for i in found:
        if o.rank[i] >= rank and o.time[i] > time:
            found[kept] = i
            keys[kept] = o.rank[i] if by_rank else o.time[i]
            kept += 1
    return found[:kept][np.argsort(keys[:kept])]


@njit
def advance(
    space: int,
    s: sl.Slots,
    stack: NDArray[np.uint8],
    g: Groups,
    own: Longs,
    excluded: Words,
    which: Longs,
    starts: Longs,
    due: Due,
    arrived: Some,
    leaving: Some,
    until: int,
    passed: int,
    progress: Longs,
) -> Reported:
    """Let groups `which` go on through their moments (`starts`: by group), from `progress` on.

    At last, objects with ranks below `until` are counted and those too old at `passed` are not.
    `progress`: the place of the group, the next moment; it ends before the last group if the pool
    must grow.
    """
    words, counts = np.empty(1024, np.uint64), np.empty(1024, np.int64)
    ends = np.empty(starts[len(which)] - progress[1], np.int64)
    told = top = 0
    targets = np.empty(MOST, np.int64)
    while progress[0] < len(which):
        group = which[progress[0]]
        row = g.rows[group]
        coming = _wanted(arrived, g.boxes[group, OUTER:], row[DONE], row[AGED], True)
        going = _wanted(leaving, g.boxes[group, OUTER:], -mo.FOREVER, row[AGED], False)
        a = b = 0
        while True:
            last = progress[1] == starts[progress[0] + 1]
            rank = until if last else due.rank[progress[1]]
            moment = passed if last else due.time[progress[1]]
            while a < len(coming) and arrived.rank[coming[a]] < rank:
                i = coming[a]
                if arrived.time[i] > row[AGED]:
                    n = _tables_of(space, s, stack, g, group, arrived, i, targets)
                    for table in targets[:n]:
                        if not _has_room(g, table, arrived.stops[i] - arrived.starts[i]):
                            return Reported(words[:top], counts[:top], ends[:told])
                    for table in targets[:n]:
                        _change(g, table, arrived, i, 1)
                row[DONE] = arrived.rank[i] + 1
                a += 1
            row[DONE] = max(row[DONE], rank)
            young = moment - row[WINDOW]
            while b < len(going) and leaving.time[going[b]] <= young:
                i = going[b]
                if leaving.rank[i] < rank:  # what comes later is not counted: it is too old then
                    n = _tables_of(space, s, stack, g, group, leaving, i, targets)
                    for table in targets[:n]:
                        _change(g, table, leaving, i, -1)
                b += 1
            row[AGED] = max(row[AGED], young)
            if last:
                break
            slot = due.slot[progress[1]]
            found, held = _candidates(g, group, due.member[progress[1]], own[slot], excluded)
            if top + len(found) > len(words):
                words, counts = _longer(words, counts, top, 2 * (top + len(found)))
            words[top : top + len(found)] = found
            counts[top : top + len(found)] = held
            top += len(found)
            ends[told] = top
            told += 1
            progress[1] += 1
        progress[0] += 1
    return Reported(words[:top], counts[:top], ends[:told])


@njit
def _longer(words: Words, counts: Longs, used: int, size: int) -> tuple[Words, Longs]:
    more, most = np.empty(size, np.uint64), np.empty(size, np.int64)
    more[:used] = words[:used]
    most[:used] = counts[:used]
    return more, most


# -- moments -------------------------------------------------------------------------------------


@njit(lean=True)
def _is_in(words: Words, first: int, n: int, word: np.uint64) -> bool:
    for i in range(first, first + n):
        if words[i] == word:
            return True
    return False


@njit
def _candidates(
    g: Groups, group: int, member: int, own: Longs, excluded: Words
) -> tuple[Words, Longs]:
    """All words that may be among the k of a member, with their counts.

    A count of all is no less than that of the common table, so what that has k of at least is a
    bound. A word at or above it is in the member's own table, or it alone is above it in the
    common one.
    """
    common = group * (MOST + 1)
    rest = common + 1 + member
    first, n = own[mo.EXCLUDED], own[mo.EXCLUDES]
    least = max(_kth(g, common, own[mo.K] + n), 1)
    own_words, own_counts = words_in(g, rest)
    t = g.tables[common]
    size = 1 << (t[SIZE] - 1) if t[SIZE] > 0 else 0
    words = np.empty(len(own_words) + 64, np.uint64)
    counts = np.empty(len(own_words) + 64, np.int64)
    top = 0
    for i in range(len(own_words)):
        total = own_counts[i] + _count_of(g, common, own_words[i])
        if total >= least and not _is_in(excluded, first, n, own_words[i]):
            words[top] = own_words[i]
            counts[top] = total
            top += 1
    for at in range(t[FIRST], t[FIRST] + size):
        count = np.int64(g.pool[at, 1])
        if count >= least and g.pool[at, 0] != _NONE:
            word = g.pool[at, 0]
            if _count_of(g, rest, word) == 0 and not _is_in(excluded, first, n, word):
                if top == len(words):
                    words, counts = _longer(words, counts, top, 2 * top)
                words[top] = word
                counts[top] = count
                top += 1
    return words[:top], counts[:top]


@njit
def _kth(g: Groups, table: int, k: int) -> int:
    """The k-th highest count of a table; 0 if there are fewer."""
    t = g.tables[table]
    size = 1 << (t[SIZE] - 1) if t[SIZE] > 0 else 0
    if t[USED] < k:
        return 0
    heap = np.zeros(k, np.int64)  # the least on top
    for at in range(t[FIRST], t[FIRST] + size):
        count = np.int64(g.pool[at, 1])
        if count > heap[0]:
            place = 0
            while True:
                child = 2 * place + 1
                if child >= k:
                    break
                if child + 1 < k and heap[child + 1] < heap[child]:
                    child += 1
                if heap[child] >= count:
                    break
                heap[place] = heap[child]
                place = child
            heap[place] = count
    return int(heap[0])


@njit
def shares_of(
    space: int, s: sl.Slots, stack: NDArray[np.uint8], g: Groups, group: int, o: Some
) -> tuple[int, int, int]:
    """Of some objects: (changes of tables, objects in regions, objects near) for a group."""
    targets = np.empty(MOST, np.int64)
    near = inside(o, g.boxes[group, OUTER:])
    changes = held = 0
    for i in near:
        n = _tables_of(space, s, stack, g, group, o, i, targets)
        changes += n
        common = n == 1 and targets[0] == group * (MOST + 1)
        held += g.rows[group, MEMBERS] if common else n
    return changes, held, len(near)
