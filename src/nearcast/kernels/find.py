"""Where a short byte string stands in a long one, without the interpreter's lock.

Block by block: whether the first and the last three bytes of the pattern stand in a block is a loop
that the compiler makes 16 or 32 bytes wide. Only blocks where they do are looked at again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.model.jit import njit

__all__ = ["find"]

Bytes = NDArray[np.uint8]
_BLOCK = 4096


@njit
def _may_hold(x: Bytes, y: Bytes, z: Bytes, u: Bytes, v: Bytes, w: Bytes, p: Bytes) -> bool:
    """Whether the ends of `p` stand at one place: each of the slices is shifted as its byte is."""
    a, b, c = p[0], p[1], p[2]
    d, e, f = p[len(p) - 3], p[len(p) - 2], p[len(p) - 1]
    different = np.uint8(255)
    for i in range(len(x)):
        first = (x[i] ^ a) | (y[i] ^ b) | (z[i] ^ c)
        different = min(different, first | (u[i] ^ d) | (v[i] ^ e) | (w[i] ^ f))
    return bool(different == 0)


@njit
def find(data: Bytes, start: int, pattern: Bytes) -> int:
    """The first place from `start` on where `pattern` (three bytes or more) stands; -1: nowhere."""
    places = len(data) - len(pattern) + 1
    back = len(pattern) - 3
    while start < places:
        stop = min(start + _BLOCK, places)
        if _may_hold(
            data[start:stop],
            data[start + 1 : stop + 1],
            data[start + 2 : stop + 2],
            data[start + back : stop + back],
            data[start + back + 1 : stop + back + 1],
            data[start + back + 2 : stop + back + 2],
            pattern,
        ):
            for first in range(start, stop):
                same = True
                for i in range(len(pattern)):
                    if data[first + i] != pattern[i]:
                        same = False
                        break
                if same:
                    return first
        start = stop
    return -1
