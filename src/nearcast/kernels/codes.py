"""Numbers that repeat, as codes: each different one once, and which of them stands where."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.prefetch import prefetch
from nearcast.kernels.ragged import frozen
from nearcast.model.jit import njit

_AHEAD = 16


def encode(
    values: NDArray[np.int64], scratch: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """(the different values, in the order of their first place; the code of each value).

    `scratch` is zero, has a place for every value, and is zero again afterwards.
    """
    return _encode(frozen(values), scratch)


@njit
def _encode(
    values: NDArray[np.int64], scratch: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    n = len(values)
    codes = np.empty(n, np.int32)
    found = np.empty(n, np.int64)
    different = 0
    for i in range(n):
        if i + _AHEAD < n:
            prefetch(scratch, values[i + _AHEAD])
        code = scratch[values[i]]
        if code == 0:
            found[different] = values[i]
            different += 1
            code = np.int32(different)
            scratch[values[i]] = code
        codes[i] = code - 1
    for i in range(different):
        scratch[found[i]] = 0
    return found[:different].copy(), codes
