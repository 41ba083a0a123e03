"""64-bit hashes of words, ids and cells.

A keyword travels as a hash: 62 bits of it, the two lowest bits being the tag of a `where` program
(`kernels.program`). With n distinct words in a run the odds that any two of them share a hash are
about n²/2⁶³: one in 92,000 at ten million words. No text is compared afterwards; ids are compared.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.model.jit import njit

WORD_MASK = np.uint64(0xFFFFFFFFFFFFFFFC)
HASH_START = np.uint64(0xCBF29CE484222325)
_FNV_PRIME = np.uint64(0x100000001B3)
_M1 = np.uint64(0xFF51AFD7ED558CCD)
_M2 = np.uint64(0xC4CEB9FE1A85EC53)
_S33 = np.uint64(33)


@njit(lean=True)
def mix64(h: np.uint64) -> np.uint64:
    """The finaliser of MurmurHash3: every bit of the input moves every bit of the output."""
    h = np.uint64(h)
    h ^= h >> _S33
    h *= _M1
    h ^= h >> _S33
    h *= _M2
    h ^= h >> _S33
    return h


@njit
def hash_step(h: np.uint64, byte: np.uint8) -> np.uint64:
    """One step of FNV-1a, from `HASH_START` over the bytes of a string."""
    return (h ^ np.uint64(byte)) * _FNV_PRIME


@njit
def hash_bytes(data: NDArray[np.uint8], start: int, stop: int) -> np.uint64:
    """Hash of `data[start:stop]`: FNV-1a, then mixed, so that short words spread."""
    h = HASH_START
    for i in range(start, stop):
        h = hash_step(h, data[i])
    return mix64(h)


@njit
def word_of(h: np.uint64) -> np.uint64:
    """The word hash that FNV state `h` ends in: never 0, the two tag bits clear."""
    word = mix64(h) & WORD_MASK
    return word if word != np.uint64(0) else np.uint64(4)


@njit
def hash_word(data: NDArray[np.uint8], start: int, stop: int) -> np.uint64:
    """Hash of a normalised keyword in UTF-8."""
    h = HASH_START
    for i in range(start, stop):
        h = hash_step(h, data[i])
    return word_of(h)


@njit
def hash_ids(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Hash of each string of a column; never 0, which marks an empty place in a table."""
    n = len(offsets) - 1
    out = np.empty(n, np.uint64)
    for i in range(n):
        h = hash_bytes(data, offsets[i], offsets[i + 1])
        out[i] = h if h != np.uint64(0) else np.uint64(1)
    return out


def word_hash(keyword: str) -> int:
    """Hash of one normalised keyword, as used in `where` programs and object columns."""
    data = np.frombuffer(keyword.encode("utf-8", "surrogatepass"), np.uint8)
    return int(hash_word(data, 0, len(data)))


@njit
def hash_word_column(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.uint64]:
    """`hash_word` of each string of a column."""
    n = len(offsets) - 1
    out = np.empty(n, np.uint64)
    for i in range(n):
        out[i] = hash_word(data, offsets[i], offsets[i + 1])
    return out


@njit
def mix64_array(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """`mix64` of each value."""
    out = np.empty_like(values)
    for i in range(len(values)):
        out[i] = mix64(values[i])
    return out
