"""Square cells with sides of any power of two, aligned at zero, without bounds."""

from __future__ import annotations

import numpy as np

from nearcast.model.jit import njit

SMALLEST, LARGEST = -30, 40  # exponents of sides
FAR = 2.0**52  # columns: further out, floats do not separate a column from the next
_TINY = 1e-200
_INVERSE = 2.0 ** -np.arange(SMALLEST, LARGEST + 1)


@njit(lean=True)
def exponent_of(width: float, height: float) -> int:
    """The least n with 2^n at least the longer side, between SMALLEST and LARGEST."""
    side = max(width, height)
    n = SMALLEST
    while n < LARGEST and 2.0**n < side:
        n += 1
    return n


@njit(lean=True)
def column_of(exponent: int, v: float) -> int:
    """Number of the column (or row) of `v`; monotone, and `v`'s column at twice the side is half.

    That holds for what lies less than FAR columns from zero; the rest counts to column ±FAR.
    """
    if -_TINY < v < 0.0:
        v = -_TINY  # what is smaller might round to zero, which is another column
    c = np.floor(v * _INVERSE[exponent - SMALLEST])
    return np.int64(min(max(c, -FAR), FAR))
