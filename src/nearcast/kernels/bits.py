"""One bit per slot, in 64-bit words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.prefetch import prefetch
from nearcast.model.jit import njit

_ONE = np.uint64(1)
_SIX = np.int64(6)
_LOW = np.int64(63)


def words_for(slots: int) -> int:
    """Words with a bit for each of so many slots."""
    return slots // 64 + 1


@njit(lean=True, forceinline=True)
def is_set(bits: NDArray[np.uint64], slot: int) -> bool:
    """The bit of a slot."""
    return bits[slot >> _SIX] >> np.uint64(slot & _LOW) & _ONE != np.uint64(0)


@njit(lean=True, forceinline=True)
def fetch_bit(bits: NDArray[np.uint64], slot: int) -> None:
    """Prefetch what `is_set` will read."""
    prefetch(bits, slot >> _SIX)


@njit(lean=True)
def set_bit(bits: NDArray[np.uint64], slot: int) -> None:
    """Set the bit of a slot."""
    bits[slot >> _SIX] |= _ONE << np.uint64(slot & _LOW)
