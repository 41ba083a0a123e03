"""Parquet's encodings of codes and strings, on flat arrays.

Codes: the RLE / bit-packing hybrid (github.com/apache/parquet-format, Encodings.md). A run of eight
or more equal codes is written once, the rest is packed, eight at a time, lowest bit first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.ragged import frozen
from nearcast.model.jit import njit

_GROUP = 8
_BYTE = np.uint64(0xFF)
_WORD = np.uint64(32)


def pack(codes: NDArray[np.int32], width: int) -> NDArray[np.uint8]:
    """The hybrid of `codes`, each of at most `width` bits."""
    groups = -(-len(codes) // _GROUP)
    # Between two runs lies at least one packed group, and each has a head of at most five bytes.
    out = np.empty(groups * (width + 10 + (width + 7) // 8) + 16, np.uint8)
    return out[: _pack(frozen(codes), width, out)]


@njit(lean=True)
def _run(codes: NDArray[np.int32], start: int) -> int:
    """Where the run of equal codes that begins at `start` ends."""
    stop = start + 1
    while stop < len(codes) and codes[stop] == codes[start]:
        stop += 1
    return stop


@njit(lean=True)
def _head(out: NDArray[np.uint8], at: int, number: int) -> int:
    """Write a number, seven bits per byte; where it ends."""
    left = np.uint64(number)
    while left > np.uint64(0x7F):
        out[at] = np.uint8(left & np.uint64(0x7F) | np.uint64(0x80))
        left >>= np.uint64(7)
        at += 1
    out[at] = np.uint8(left)
    return at + 1


@njit(lean=True)
def _literals(codes: NDArray[np.int32], start: int) -> int:
    """Where a run of a group or more begins, in groups from `start` on; or beyond the end."""
    at = start
    while at < len(codes):
        if at + _GROUP <= len(codes) and codes[at] == codes[at + 1]:
            same = 2
            while same < _GROUP and codes[at + same] == codes[at]:
                same += 1
            if same == _GROUP:
                break
        at += _GROUP
    return at


@njit(lean=True)
def _pack(codes: NDArray[np.int32], width: int, out: NDArray[np.uint8]) -> int:
    at = start = 0
    while start < len(codes):
        stop = _run(codes, start)
        if stop - start >= _GROUP:
            at = _head(out, at, (stop - start) << 1)
            for byte in range((width + 7) // 8):
                out[at] = np.uint8(np.uint64(codes[start]) >> np.uint64(8 * byte) & _BYTE)
                at += 1
            start = stop
            continue
        stop = _literals(codes, start)
        at = _head(out, at, (stop - start) // _GROUP << 1 | 1)
        held = bits = np.uint64(0)
        for i in range(start, min(stop, len(codes))):
            held |= np.uint64(codes[i]) << bits
            bits += np.uint64(width)
            if bits >= _WORD:
                out[at] = np.uint8(held & _BYTE)
                out[at + 1] = np.uint8(held >> np.uint64(8) & _BYTE)
                out[at + 2] = np.uint8(held >> np.uint64(16) & _BYTE)
                out[at + 3] = np.uint8(held >> np.uint64(24) & _BYTE)
                at += 4
                held >>= _WORD
                bits -= _WORD
        bits += np.uint64(max(stop - len(codes), 0) * width)
        while bits > np.uint64(0):
            out[at] = np.uint8(held & _BYTE)
            at += 1
            held >>= np.uint64(8)
            bits -= min(bits, np.uint64(8))
        start = stop
    return at


def plain_strings(offsets: NDArray[np.int64], data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Strings as Parquet writes them plainly: each behind its length, four bytes."""
    return _plain_strings(frozen(offsets), frozen(data))


@njit
def _plain_strings(offsets: NDArray[np.int64], data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    n = len(offsets) - 1
    out = np.empty(offsets[n] - offsets[0] + 4 * n, np.uint8)
    at = 0
    for i in range(n):
        length = offsets[i + 1] - offsets[i]
        for byte in range(4):
            out[at + byte] = np.uint8(length >> (8 * byte) & 0xFF)
        at += 4
        for j in range(offsets[i], offsets[i + 1]):
            out[at] = data[j]
            at += 1
    return out
