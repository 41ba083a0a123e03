"""Several arrays in one array of a storage: a slice is two files, not twenty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.index.arena import Storage
from nearcast.kernels.ragged import frozen

__all__ = ["Part", "attached", "laid_out", "written"]

_LINE = 64  # bytes; arrays begin at cache lines


class Part(NamedTuple):
    """An array of a blob: its type and its columns."""

    dtype: Any
    width: int = 1


def _ends(parts: Sequence[Part], rows: Sequence[int]) -> list[tuple[int, int]]:
    """First and last byte of each array, behind the numbers of their rows."""
    at = _line(8 * len(parts))
    found = []
    for part, n in zip(parts, rows, strict=True):
        size = np.dtype(part.dtype).itemsize * part.width * n
        found.append((at, at + size))
        at = _line(at + size)
    return found


def _line(at: int) -> int:
    return -(-at // _LINE) * _LINE


def laid_out(
    storage: Storage, name: str, parts: Sequence[Part], rows: Sequence[int]
) -> list[NDArray[Any]]:
    """Arrays of so many rows under a name that is not in use, to be filled."""
    ends = _ends(parts, rows)
    storage.discard(name)
    blob = storage.array(name, np.uint8, 1, max(_line(ends[-1][1]), _LINE))
    blob[: 8 * len(rows)].view(np.int64)[:] = rows
    return _typed(blob, parts, ends)


def _typed(
    blob: NDArray[np.uint8], parts: Sequence[Part], ends: Sequence[tuple[int, int]]
) -> list[NDArray[Any]]:
    found = []
    for part, (first, last) in zip(parts, ends, strict=True):
        typed: NDArray[Any] = blob[first:last].view(part.dtype)
        found.append(typed.reshape(-1, part.width) if part.width > 1 else typed)
    return found


def written(
    storage: Storage, name: str, parts: Sequence[Part], arrays: Sequence[NDArray[Any]]
) -> None:
    """Write arrays under a name that is not in use."""
    outs = laid_out(storage, name, parts, [len(a) for a in arrays])
    for out, array in zip(outs, arrays, strict=True):
        out[:] = array


def size_of(storage: Storage, name: str, parts: Sequence[Part]) -> int:
    """How many bytes the arrays under a name take."""
    blob = storage.array(name, np.uint8)
    rows = blob[: 8 * len(parts)].view(np.int64).tolist()
    return _line(_ends(parts, rows)[-1][1])


def attached(storage: Storage, name: str, parts: Sequence[Part]) -> list[NDArray[Any]]:
    """The arrays that were put there, sharing the memory of the storage."""
    blob = storage.array(name, np.uint8)
    rows = blob[: 8 * len(parts)].view(np.int64).tolist()
    return [frozen(a) for a in _typed(blob, parts, _ends(parts, rows))]
