"""Counting by words: how many objects of a sample reach a part of a cell, and two parts from one.

The paper does not say how text-partitioning divides a cell in two. We follow its rule for merging
nodes into partitions (section IV-B): the least increase of load, within a balance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.index.posting import UNIVERSAL
from nearcast.model.jit import njit
from nearcast.routing.grid.table import GridTable, find_word, owner_in
from nearcast.routing.ps2stream.adjust.stats import CellObjects, Costs, Numbers, Words


class Holders(NamedTuple):
    """Which of the sampled objects of a cell hold each of its words."""

    offsets: Numbers  # [words + 1]
    objects: Numbers  # from 0, the first of the cell
    all: int  # how many there are


@njit
def holders(words: Words, sample: CellObjects, cell: int) -> Holders:
    """For each of the ascending `words` of a cell; `UNIVERSAL`: all objects."""
    first = np.searchsorted(sample.cells, cell)
    stop = np.searchsorted(sample.cells, cell + 1)
    offsets = np.zeros(len(words) + 1, np.int64)
    for fill in range(2):
        objects = np.empty(offsets[-1] if fill else 0, np.int64)
        top = offsets.copy()
        for o in range(first, stop):
            for at in range(sample.word_offsets[o], sample.word_offsets[o + 1] + 1):
                last = at == sample.word_offsets[o + 1]
                w = find_word(words, 0, len(words), UNIVERSAL if last else sample.words[at])
                if w >= 0:
                    if fill:
                        objects[top[w]] = o - first
                    top[w] += 1
        if not fill:
            counts = top
            for w in range(len(words)):
                offsets[w + 1] = offsets[w] + counts[w]
    return Holders(offsets, objects, stop - first)


@njit
def divide(
    words_held: Numbers, found: Holders, c: Costs, each: float, per: float, sigma: float
) -> Numbers:
    """g_1 and g_2: part 0 or 1 of each word, both with at least one if there are two words.

    Words of the most load first, each to the part whose load grows less by it, so long as the
    loads of both stay within `sigma`; otherwise, and while a part is empty, to the part of less
    load. Ties: the part of less load, then of fewer words, then part 0; words in their order. A
    sampled object stands for `per` objects; a subscription costs `each` without being matched.
    """
    reached = np.zeros((2, found.all), np.bool_)
    objects, held, loads, grown = np.zeros(2), np.zeros(2), np.zeros(2), np.zeros(2)
    count = np.diff(found.offsets) * per
    alone = c.c1 * (count * words_held) + c.c2 * count + each * words_held
    parts = np.zeros(len(words_held), np.int64)
    sizes = np.zeros(2, np.int64)
    for w in np.argsort(-alone, kind="mergesort"):
        mine = found.objects[found.offsets[w] : found.offsets[w + 1]]
        for part in range(2):
            o = objects[part] + per * _new(reached[part], mine)
            q = held[part] + words_held[w]
            grown[part] = c.c1 * (o * q) + c.c2 * o + each * q
        part = _part(loads, grown, sizes, sigma)
        objects[part] += per * _new(reached[part], mine)
        held[part] += words_held[w]
        loads[part] = grown[part]
        sizes[part] += 1
        parts[w] = part
        for o in mine:
            reached[part, o] = True
    return parts


@njit(lean=True)
def _new(reached: NDArray[np.bool_], objects: Numbers) -> int:
    """How many of the objects are not reached yet; none is named twice."""
    count = 0
    for o in objects:
        count += not reached[o]
    return count


@njit(lean=True)
def _part(
    loads: NDArray[np.float64], grown: NDArray[np.float64], sizes: Numbers, sigma: float
) -> int:
    """The part that a word goes to, by the loads of both and what they would grow to."""
    less = 1 if loads[1] < loads[0] or (loads[1] == loads[0] and sizes[1] < sizes[0]) else 0
    more = 1 - less
    if sizes[less] == 0 or grown[more] > sigma * loads[less]:
        return less
    return more if grown[more] - loads[more] < grown[less] - loads[less] else less


@njit
def count_owners(
    t: GridTable,
    held: int,
    sample: CellObjects,
    cell: int,
    shards: Numbers,
    used: Words,
    discard: bool,
) -> Numbers:
    """How many sampled objects of a cell go to each of `shards`, where the grid holds `held`.

    With `discard`, only the ascending words `used` send an object anywhere (H2 of the paper).
    """
    counts = np.zeros(len(shards), np.int64)
    last = np.full(len(shards), -1)
    for o in range(np.searchsorted(sample.cells, cell), np.searchsorted(sample.cells, cell + 1)):
        for at in range(sample.word_offsets[o], sample.word_offsets[o + 1] + 1):
            word = UNIVERSAL if at == sample.word_offsets[o + 1] else sample.words[at]
            if discard and find_word(used, 0, len(used), word) < 0:
                continue
            shard = owner_in(t, held, word)
            for i in range(len(shards)):
                if shard == shards[i] and last[i] != o:
                    last[i] = o
                    counts[i] += 1
    return counts
