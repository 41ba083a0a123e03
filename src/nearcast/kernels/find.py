"""Where a short byte string stands in a long one, without the interpreter's lock.

Horspool's search: it looks at one byte in `len(pattern)`. `bytes.find` holds the lock and takes
some three times as long for patterns of this size.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.model.jit import njit

__all__ = ["find", "skips"]

Bytes = NDArray[np.uint8]


def skips(pattern: bytes) -> NDArray[np.int64]:
    """How far the search may go on when a byte stands at the end of where the pattern would."""
    table = np.full(256, len(pattern), np.int64)
    for n, byte in enumerate(pattern[:-1]):
        table[byte] = len(pattern) - 1 - n
    return table


@njit
def find(data: Bytes, start: int, pattern: Bytes, skip: NDArray[np.int64]) -> int:
    """The first place from `start` on where `pattern` stands; -1: nowhere."""
    length = len(pattern)
    last = pattern[length - 1]
    end = start + length - 1
    while end < len(data):
        byte = data[end]
        if byte == last:
            first = end - length + 1
            same = True
            for i in range(length - 1):
                if data[first + i] != pattern[i]:
                    same = False
                    break
            if same:
                return first
        end += skip[byte]
    return -1
