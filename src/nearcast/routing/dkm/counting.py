"""How many objects of O_init with a word lie in a rectangle: |O_{R,lambda}| of DkM-SKS."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.model.jit import njit
from nearcast.routing.dkm.places import FEW, Box, Places

_ONE = np.uint64(1)
_SIX = np.int64(6)


@njit(inline="always")
def _ones(bits: np.uint64) -> int:
    """How many bits are set (LLVM turns this into one instruction where there is one)."""
    bits = bits - ((bits >> _ONE) & np.uint64(0x5555555555555555))
    bits = (bits & np.uint64(0x3333333333333333)) + (
        (bits >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    bits = (bits + (bits >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((bits * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit(inline="always")
def _zeros_before(blocks: NDArray[np.uint64], base: int, i: int) -> int:
    """How many of the first `i` bits of the level that starts at `base` are 0."""
    row = base + (i >> _SIX)
    inside = i & 63
    mask = (_ONE << np.uint64(inside)) - _ONE
    return np.int64(blocks[row, 1]) + inside - _ones(blocks[row, 0] & mask)


@njit(inline="always")
def _below(p: Places, word: int, i: int, j: int, rank: int) -> int:
    """How many of the objects `i:j` (in the order of x) of `word` have a y of a lower rank."""
    n = p.offsets[word + 1] - p.offsets[word]
    if rank >= n:
        return j - i
    stride = n // 64 + 1
    base = p.block_offsets[word]
    levels = (p.block_offsets[word + 1] - base) // stride
    found = 0
    for level in range(levels):
        if i == j:
            break
        zeros = _zeros_before(p.blocks, base, n)
        i0 = _zeros_before(p.blocks, base, i)
        j0 = _zeros_before(p.blocks, base, j)
        if (rank >> (levels - 1 - level)) & 1:
            found += j0 - i0
            i, j = zeros + i - i0, zeros + j - j0
        else:
            i, j = i0, j0
        base += stride
    return found


@njit(inline="always")
def first_from(values: NDArray[np.float64], lo: int, hi: int, bound: float) -> int:
    """The first place in the ascending `values[lo:hi]` with a value of at least `bound`."""
    while lo < hi:
        mid = (lo + hi) >> 1
        if values[mid] < bound:
            lo = mid + 1
        else:
            hi = mid
    return lo


@njit(inline="always")
def _first_after(values: NDArray[np.float64], lo: int, hi: int, bound: float) -> int:
    """The first place in the ascending `values[lo:hi]` with a value beyond `bound`."""
    while lo < hi:
        mid = (lo + hi) >> 1
        if values[mid] <= bound:
            lo = mid + 1
        else:
            hi = mid
    return lo


@njit
def count_inside(p: Places, word: int, box: Box) -> int:
    """How many objects with `word` lie in `box`, its border included: |O_{R,lambda}|."""
    first, last = p.offsets[word], p.offsets[word + 1]
    b = p.bounds
    if box[0] <= b[0] and box[1] <= b[1] and box[2] >= b[2] and box[3] >= b[3]:
        return last - first
    i = first_from(p.x, first, last, box[0])
    j = _first_after(p.x, i, last, box[2])
    if j - i <= FEW:
        found = 0
        for t in range(i, j):
            found += box[1] <= p.y[t] <= box[3]
        return found
    lo = first_from(p.sorted_y, first, last, box[1])
    hi = _first_after(p.sorted_y, lo, last, box[3])
    if j - i == last - first:
        return hi - lo
    i, j, lo, hi = i - first, j - first, lo - first, hi - first
    return _below(p, word, i, j, hi) - _below(p, word, i, j, lo)
