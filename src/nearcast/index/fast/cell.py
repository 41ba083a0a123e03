"""Posting one entry in one cell of FAST's structure: on a list, in the trie, or further down."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.index.fast import nodes as nd
from nearcast.index.fast.nodes import CHILD, FREQUENT, PARENT, PATH, THRESHOLD, Fast
from nearcast.index.posting import Index
from nearcast.kernels import postings as pl
from nearcast.kernels import shared_lists as ls
from nearcast.kernels.cells import key_in
from nearcast.kernels.squares import FAR, column_of
from nearcast.model.jit import njit

# columns of a task
KIND, SLOT, UNDER, DEPTH, COLUMN, ROW, CURSOR, LIST = 0, 1, 2, 3, 4, 5, 6, 7
# kinds: all cells of `DEPTH` below the cell (COLUMN, ROW) of the depth above it; or that one cell
BELOW, INSIDE = 0, 1


class Tasks(NamedTuple):
    """The stack, and scratch."""

    rows: NDArray[np.int64]  # [*, 8]
    boxes: NDArray[np.float32]  # [*, 4]
    top: NDArray[np.int64]  # [1]
    words: NDArray[np.uint64]  # [PATH]: of the entry in hand
    others: NDArray[np.uint64]  # [PATH]: of another one
    box: NDArray[np.float32]  # [4]: of the entry in hand
    area: NDArray[np.float64]  # of entries where a path ends
    chosen: NDArray[np.bool_]


def make_tasks(room: int, old: Tasks | None = None) -> Tasks:
    """A stack with room for so many tasks, with those of `old` on it."""
    tasks = Tasks(
        np.zeros((room, 8), np.int64),
        np.zeros((room, 4), np.float32),
        np.zeros(1, np.int64),
        np.zeros(PATH, np.uint64),
        np.zeros(PATH, np.uint64),
        np.zeros(4, np.float32),
        np.zeros(nd.CROWDED + 1),
        np.zeros(nd.CROWDED + 1, np.bool_),
    )
    if old is not None:
        n = int(old.top[0])
        tasks.rows[:n], tasks.boxes[:n], tasks.top[0] = old.rows[:n], old.boxes[:n], n
    return tasks


@njit(lean=True)
def push(
    t: Tasks,
    kind: int,
    slot: int,
    under: np.uint64,
    depth: int,
    column: int,
    row: int,
    box: NDArray[np.float32],
) -> None:
    """Put a task on the stack; there must be room."""
    n = t.top[0]
    t.top[0] = n + 1
    t.rows[n, KIND] = kind
    t.rows[n, SLOT] = slot
    t.rows[n, UNDER] = np.int64(under)
    t.rows[n, DEPTH] = depth
    t.rows[n, COLUMN] = column
    t.rows[n, ROW] = row
    t.rows[n, CURSOR] = 0
    t.rows[n, LIST] = 0
    for c in range(4):
        t.boxes[n, c] = box[c]


@njit(lean=True)
def _is_final(f: Fast, depth: int, box: NDArray[np.float32]) -> bool:
    """Whether an entry stays at `depth`: it is longer than half a cell, or at the end of space."""
    if depth == nd.DEPTHS:
        return True
    exponent = f.meta[nd.SIDE] - depth
    a, b, c, d = np.float64(box[0]), np.float64(box[1]), np.float64(box[2]), np.float64(box[3])
    if max(c - a, d - b) > 2.0 ** (exponent - 1):
        return True
    return bool(max(max(-a, c), max(-b, d)) * 2.0 ** (1 - exponent) >= FAR - 1.0)


@njit(lean=True)
def _touches(
    f: Fast, depth: int, column: int, row: int, boxes: NDArray[np.float32], e: int
) -> bool:
    """Whether the box of entry `e` reaches into a cell."""
    if depth == 0:
        return True
    side = f.meta[nd.SIDE] - depth
    return bool(
        column_of(side, boxes[e, 1]) <= column <= column_of(side, boxes[e, 3])
        and column_of(side, boxes[e, 2]) <= row <= column_of(side, boxes[e, 4])
    )


@njit(lean=True)
def _dissolve(
    ix: Index, f: Fast, t: Tasks, node: int, word: np.uint64, depth: int, column: int, row: int
) -> None:
    """Make the keyword of a node frequent; the entries of its list become tasks, to post anew."""
    s = f.lists
    number = nd.list_of(f, node)
    on_path = f.nodes[node, nd.INFO] & CHILD != np.uint64(0)
    if number >= 0:
        first = np.int64(s.heads[number, ls.FIRST])
        for e in range(first, first + s.heads[number, ls.COUNT]):
            slot = np.int64(s.pool[e, 0])
            under = np.uint64(0) if nd.is_conjunction(ix, slot) else word
            if on_path:
                n = nd.words_of(ix, slot, under, t.others)
                nd.count_uses(f, f.nodes[node, nd.CELL], t.others, n, False)
            if _touches(f, depth, column, row, s.boxes, e):
                push(t, INSIDE, slot, under, depth, column, row, s.boxes[e, 1:])
        ls.release(s, number)
        nd.set_list(f, node, -1)
    f.nodes[node, nd.INFO] |= FREQUENT
    f.meta[nd.SPLITS] += not on_path


@njit(lean=True)
def _go_down(
    ix: Index, f: Fast, t: Tasks, number: int, word: np.uint64, depth: int, column: int, row: int
) -> None:
    """Send the half of a list that overlaps the cell least a level down."""
    s = f.lists
    first, count = np.int64(s.heads[number, ls.FIRST]), np.int64(s.heads[number, ls.COUNT])
    side = 2.0 ** (f.meta[nd.SIDE] - depth)
    for i in range(count):
        a, b = np.float64(s.boxes[first + i, 1]), np.float64(s.boxes[first + i, 2])
        c, d = np.float64(s.boxes[first + i, 3]), np.float64(s.boxes[first + i, 4])
        if depth > 0:
            a, b = max(a, column * side), max(b, row * side)
            c, d = min(c, (column + 1) * side), min(d, (row + 1) * side)
        t.area[i] = (c - a) * (d - b)
        t.chosen[i] = False
    for _ in range(count - 1 - count // 2):
        least = -1
        for i in range(count):
            if not t.chosen[i] and (least < 0 or t.area[i] < t.area[least]):
                least = i
        t.chosen[least] = True
    for i in range(count - 1, -1, -1):
        if t.chosen[i]:
            slot = np.int64(s.pool[first + i, 0])
            under = np.uint64(0) if nd.is_conjunction(ix, slot) else word
            push(t, BELOW, slot, under, depth + 1, column, row, s.boxes[first + i, 1:])
            ls.remove(s, number, i)
            f.meta[nd.PUSHED] += 1
    f.meta[nd.DEEPEST] = max(f.meta[nd.DEEPEST], depth + 1)


@njit(lean=True)
def _end_here(
    ix: Index, f: Fast, t: Tasks, node: int, slot: int, depth: int, column: int, row: int
) -> bool:
    """Post the entry in hand where its path ends; False if the pool is too short."""
    s = f.lists
    final = _is_final(f, depth, t.box)
    number = nd.finals_of(f, node) if final else nd.list_of(f, node)
    if number < 0:
        number = ls.make(s)
        if final:
            f.nodes[node, nd.MORE] += np.uint64(number + 1)
        else:
            nd.set_list(f, node, number)
    elif not ls.fits(s, number):
        return False
    ls.append(s, number, slot, t.box)
    if not final and s.heads[number, ls.COUNT] > nd.CROWDED:
        _go_down(ix, f, t, number, t.words[0], depth, column, row)
    return True


@njit(lean=True)
def _in_trie(
    ix: Index,
    f: Fast,
    t: Tasks,
    n: int,
    slot: int,
    under: np.uint64,
    cell: np.uint64,
    depth: int,
    column: int,
    row: int,
) -> bool:
    """Post the entry in hand on the path of its n keywords; False if the pool is too short."""
    s = f.lists
    node = pl.find(f.nodes, key_in(cell, t.words[0]))
    for j in range(1, n):
        key = key_in(f.nodes[node, nd.KEY], t.words[j])
        f.nodes[node, nd.INFO] |= PARENT
        node = nd.node_at(f, key, cell)
        f.nodes[node, nd.INFO] |= CHILD
        if nd.is_frequent(f, node):
            continue
        number = nd.list_of(f, node)
        if number < 0:
            number = ls.make(s)
            nd.set_list(f, node, number)
        elif s.heads[number, ls.COUNT] >= THRESHOLD:
            _dissolve(ix, f, t, node, np.uint64(0), depth, column, row)
            push(t, INSIDE, slot, under, depth, column, row, t.box)
            return True
        ls.append(s, number, slot, t.box)
        nd.count_uses(f, cell, t.words, n, True)
        return True
    if not _end_here(ix, f, t, node, slot, depth, column, row):
        return False
    nd.count_uses(f, cell, t.words, n, True)
    return True


@njit(lean=True)
def post_in_cell(
    ix: Index,
    f: Fast,
    t: Tasks,
    slot: int,
    under: np.uint64,
    depth: int,
    column: int,
    row: int,
    shared: int,
) -> int:
    """Post the entry in hand in one cell; 1 + the list that neighbours may share, 0, or -1: short.

    `shared` is 1 + such a list, of the cell before.
    """
    n = nd.words_of(ix, slot, under, t.words)
    cell = nd.cell_of(depth, column, row)
    word = nd.rarest(ix, t.words, n)
    if shared > 0 and nd.share(f, cell, word, shared - 1):
        return shared
    number = nd.in_list(f, cell, word, slot, t.box)
    if number >= 0:
        return number + 1
    other = nd.shortest(f, cell, t.words, n)
    if other >= 0 and nd.in_list(f, cell, t.words[other], slot, t.box) >= 0:
        return 0
    dissolved = False
    for i in range(n):
        node = pl.find(f.nodes, key_in(cell, t.words[i]))
        if not nd.is_frequent(f, node):
            _dissolve(ix, f, t, node, t.words[i], depth, column, row)
            dissolved = True
    if dissolved:
        push(t, INSIDE, slot, under, depth, column, row, t.box)
        return 0
    return 0 if _in_trie(ix, f, t, n, slot, under, cell, depth, column, row) else -1
