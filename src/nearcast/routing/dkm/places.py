"""Where the objects of O_init with each word are.

Algorithm 2 needs |O_{R,lambda}| hundreds of millions of times. Each word therefore keeps its
objects in the order of x, with a wavelet matrix (Claude, Navarro, Ordóñez 2015) over the ranks of
y: `counting` then needs O(log n) for a rectangle, however many objects it holds, at two bits per
object and level. "Any object" is one more word, so |O_R| is counted the same way.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.ragged import frozen
from nearcast.model.jit import njit
from nearcast.routing.base import Sample
from nearcast.routing.dkm.vocabulary import Vocabulary, numbers_of

Box = NDArray[np.float64]  # minx, miny, maxx, maxy

FEW = 1024  # objects that are looked at one by one: faster than a matrix up to about here
_ONE = np.uint64(1)
_SIX = np.int64(6)


class Places(NamedTuple):
    """Objects of each word; those of word w are `offsets[w]:offsets[w + 1]`."""

    bounds: NDArray[np.float64]  # the box around all objects
    offsets: NDArray[np.int64]  # [v + 2]; the last word is "any object"
    x: NDArray[np.float64]  # ascending within a word
    y: NDArray[np.float64]  # in the order of x
    items: NDArray[np.int32]  # the object, in the order of x
    sorted_y: NDArray[np.float64]  # ascending within a word
    block_offsets: NDArray[np.int64]  # [v + 2]: rows of `blocks`; words with few objects have none
    blocks: NDArray[np.uint64]  # [*, 2]: 64 bits of a level; zeros of the level before them


def places_of(sample: Sample, v: Vocabulary) -> Places:
    """Lay out O_init; O(n log n) once."""
    n = len(sample.x)
    x, y = frozen(sample.x), frozen(sample.y)
    bounds = np.array([np.inf, np.inf, -np.inf, -np.inf])
    if n:
        bounds[:] = x.min(), y.min(), x.max(), y.max()
    offsets = np.append(0, np.cumsum(v.frequency))
    words = numbers_of(v, frozen(sample.words))
    by_x, by_y = np.argsort(x, kind="stable"), np.argsort(y, kind="stable")
    items, sorted_y, ranks = _lay_out(offsets, frozen(sample.word_offsets), words, by_x, by_y, y)
    counts = np.diff(offsets)
    blocks_of = np.where(counts > FEW, _levels_of(counts) * (counts // 64 + 1), 0)
    block_offsets = np.append(0, np.cumsum(blocks_of))
    blocks = np.zeros((block_offsets[-1], 2), np.uint64)
    _build(offsets, block_offsets, ranks, blocks)
    parts = (bounds, offsets, x[items], y[items], items, sorted_y, block_offsets, blocks)
    return Places(*(frozen(part) for part in parts))


def _levels_of(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many bits the ranks of so many objects have."""
    exponents = np.frexp(np.maximum(counts - 1, 0).astype(np.float64))[1]
    return exponents.astype(np.int64)


@njit
def _lay_out(
    offsets: NDArray[np.int64],
    word_offsets: NDArray[np.int64],
    words: NDArray[np.int32],
    by_x: NDArray[np.int64],
    by_y: NDArray[np.int64],
    y: NDArray[np.float64],
) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.int32]]:
    """(objects by word and x, ys by word and y, rank of y in the word of each of the objects).

    Two passes over the objects, one sorted by x and one by y, each filling the words in turn.
    """
    n, total = len(by_x), offsets[-1]
    items = np.empty(total, np.int32)
    sorted_y = np.empty(total)
    ranks = np.empty(total, np.int32)
    place = np.empty(total, np.int64)  # of the j-th word of object o, at word_offsets[o] + o + j
    top = offsets[:-1].copy()
    for o in by_x:
        first, last = word_offsets[o], word_offsets[o + 1]
        for t in range(first, last + 1):
            word = words[t] if t < last else len(top) - 1
            items[top[word]] = o
            place[t + o] = top[word]
            top[word] += 1
    top[:] = offsets[:-1]
    for i in range(n):
        o = by_y[i]
        first, last = word_offsets[o], word_offsets[o + 1]
        for t in range(first, last + 1):
            word = words[t] if t < last else len(top) - 1
            sorted_y[top[word]] = y[o]
            ranks[place[t + o]] = top[word] - offsets[word]
            top[word] += 1
    return items, sorted_y, ranks


@njit
def _build(
    offsets: NDArray[np.int64],
    block_offsets: NDArray[np.int64],
    ranks: NDArray[np.int32],
    blocks: NDArray[np.uint64],
) -> None:
    """Fill the wavelet matrix of every word that has one."""
    scratch = np.empty_like(ranks)
    for word in range(len(offsets) - 1):
        n = offsets[word + 1] - offsets[word]
        stride = n // 64 + 1
        levels = (block_offsets[word + 1] - block_offsets[word]) // stride
        mine = ranks[offsets[word] : offsets[word + 1]]
        for level in range(levels):
            base = block_offsets[word] + level * stride
            _build_level(mine, scratch, levels - 1 - level, blocks[base : base + stride])


@njit
def _build_level(
    ranks: NDArray[np.int32], scratch: NDArray[np.int32], bit: int, blocks: NDArray[np.uint64]
) -> None:
    """Write one bit of every rank, then put ranks with a 0 before those with a 1."""
    zeros, ones = 0, 0
    for i in range(len(ranks)):
        if i & 63 == 0:
            blocks[i >> _SIX, 1] = zeros
        rank = ranks[i]
        if (rank >> bit) & 1:
            blocks[i >> _SIX, 0] |= _ONE << np.uint64(i & 63)
            scratch[ones] = rank
            ones += 1
        else:
            ranks[zeros] = rank
            zeros += 1
    if len(ranks) & 63 == 0:
        blocks[len(ranks) >> _SIX, 1] = zeros
    ranks[zeros:] = scratch[:ones]
