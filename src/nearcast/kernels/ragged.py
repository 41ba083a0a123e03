"""Rows of different length, gathered and copied."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.prefetch import prefetch
from nearcast.model.jit import njit

_AHEAD = 16  # runs from prefetching memory to reading it


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A contiguous, read-only view (or copy) of `array`.

    Numba compiles a kernel anew for each mixture of writable, read-only and strided arguments:
    arrays that come from Arrow or from an arena are brought to one form first.
    """
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def gather(
    values: NDArray[Any], starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Copy the runs `values[starts[i]:starts[i]+lengths[i]]`; (offsets int64[n+1], values)."""
    return _gather(frozen(values), frozen(starts), frozen(lengths))


def places(
    starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The numbers of what `gather` copies; (offsets, numbers)."""
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return offsets, np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])


@njit
def _gather(
    values: NDArray[Any], starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    n = len(starts)
    offsets = np.empty(n + 1, np.int64)
    offsets[0] = 0
    for i in range(n):
        offsets[i + 1] = offsets[i] + lengths[i]
    out = np.empty(offsets[n], values.dtype)
    for i in range(n):
        if i + _AHEAD < n:
            prefetch(values, starts[i + _AHEAD])
        first = starts[i]
        at = offsets[i]
        for j in range(lengths[i]):
            out[at + j] = values[first + j]
    return offsets, out
