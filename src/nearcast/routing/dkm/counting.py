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
def _step(i: int, i0: int, zeros: int, bit: int) -> int:
    """Where position `i`, with `i0` zeros before it, goes in the next level."""
    return zeros + i - i0 if bit else i0


@njit
def _between(
    blocks: NDArray[np.uint64], base: int, levels: int, n: int, i: int, j: int, lo: int, hi: int
) -> int:
    """How many of the ranks `i:j` of a matrix of `n` ranks are in `lo:hi`, `hi` below `n`.

    Ranks below `hi` less ranks below `lo`, walked down side by side: positions a:b and i:j.
    """
    a, b, found = i, j, 0
    stride = n // 64 + 1
    for level in range(levels - 1, -1, -1):
        zeros = _zeros_before(blocks, base, n)
        i0, j0 = _zeros_before(blocks, base, i), _zeros_before(blocks, base, j)
        a0, b0 = _zeros_before(blocks, base, a), _zeros_before(blocks, base, b)
        low, high = (lo >> level) & 1, (hi >> level) & 1
        found += high * (j0 - i0) - low * (b0 - a0)
        i, j = _step(i, i0, zeros, high), _step(j, j0, zeros, high)
        a, b = _step(a, a0, zeros, low), _step(b, b0, zeros, low)
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


@njit(inline="always")
def count_inside(p: Places, word: int, box: Box) -> int:
    """How many objects with `word` lie in `box`, its border included: |O_{R,lambda}|."""
    first, last = p.offsets[word], p.offsets[word + 1]
    b = p.bounds
    if box[0] <= b[0] and box[1] <= b[1] and box[2] >= b[2] and box[3] >= b[3]:
        return last - first
    i = first_from(p.x, first, last, box[0])
    j = _first_after(p.x, i, last, box[2])
    if j - i <= FEW:
        found, low, high = 0, box[1], box[3]
        for t in range(i, j):
            found += (low <= p.y[t]) & (p.y[t] <= high)  # `and` would keep it from vectors
        return found
    lo = first_from(p.sorted_y, first, last, box[1])
    hi = _first_after(p.sorted_y, lo, last, box[3])
    if lo == hi or j - i == last - first:
        return hi - lo
    n, base = last - first, p.block_offsets[word]
    levels = (p.block_offsets[word + 1] - base) // (n // 64 + 1)
    i, j, lo, hi = i - first, j - first, lo - first, hi - first
    if hi == n:  # one rank more than there are may not fit the bits: count what is below instead
        return j - i - _between(p.blocks, base, levels, n, i, j, 0, lo)
    return _between(p.blocks, base, levels, n, i, j, lo, hi)
