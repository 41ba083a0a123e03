"""A plan as a file: named arrays behind a header that describes them, read by mapping it."""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.ragged import frozen
from nearcast.model.errors import NearcastError

Arrays = dict[str, NDArray[Any]]

FOLDER: ContextVar[Path] = ContextVar("FOLDER", default=Path())
"""The folder that names of plans are relative to: a checkpoint, which may be moved elsewhere."""

_MAGIC = b"nearcast plan 1\n"
_ALIGN = 64  # bytes: arrays begin on a cache line


def pack(arrays: Arrays) -> bytes:
    """Arrays as bytes: magic, length of the header, header, arrays."""
    header, at = {}, 0
    for name, array in arrays.items():
        header[name] = [array.dtype.str, list(array.shape), at]
        at += -(-array.nbytes // _ALIGN) * _ALIGN
    head = msgspec.msgpack.encode(header)
    start = _MAGIC + len(head).to_bytes(8, "little") + head
    parts: list[Any] = [start.ljust(_start(len(head)), b"\0")]
    for array in arrays.values():
        parts.append(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
        parts.append(b"\0" * (-array.nbytes % _ALIGN))
    return b"".join(parts)


def _start(head: int) -> int:
    """Where arrays begin behind a header of `head` bytes."""
    return -(-(len(_MAGIC) + 8 + head) // _ALIGN) * _ALIGN


def unpack(data: bytes | mmap.mmap, what: str = "a plan of this checkpoint") -> Arrays:
    """The arrays of `pack`, read-only, in the memory of `data`; `what` has them."""
    if data[: len(_MAGIC)] != _MAGIC:
        raise NearcastError(
            f"{what} is of another version of nearcast; go on with that one, or start with a new "
            "checkpoint"
        )
    size = int.from_bytes(data[len(_MAGIC) : len(_MAGIC) + 8], "little")
    begin = len(_MAGIC) + 8
    header = msgspec.msgpack.decode(data[begin : begin + size])
    arrays = {}
    for name, (dtype, shape, at) in header.items():
        count = int(np.prod(shape))
        first = _start(size) + at
        array = np.frombuffer(data, dtype, count, first) if count else np.empty(0, dtype)
        array = array.reshape(shape).view()
        array.flags.writeable = False
        arrays[name] = array
    return arrays


def typed(arrays: Arrays, types: Mapping[str, type[np.generic]], what: str) -> Arrays:
    """Arrays of the types and the form that kernels are compiled for; `what` has them.

    Words that are not uint64 are refused: where NumPy joins them with signed numbers it makes
    float64 of both, and the low bits of every hash are lost.
    """
    made = {}
    for name, array in arrays.items():
        wanted = np.dtype(types[name])
        if not np.can_cast(array.dtype, wanted, "safe" if wanted == np.uint64 else "same_kind"):
            raise TypeError(f"{name} of {what} must be {wanted}, not {array.dtype}")
        made[name] = frozen(np.asarray(array, wanted))
    return made


_FILE = b"file:"


def reference(name: str) -> bytes:
    """What stands for packed arrays that are a file in `FOLDER`: envelopes carry it."""
    return _FILE + name.encode()


def read(data: bytes) -> Arrays:
    """The arrays of `pack`, or of the file that `reference` named."""
    return load(data[len(_FILE) :].decode()) if data.startswith(_FILE) else unpack(data)


def load(name: str) -> Arrays:
    """The arrays of a file in `FOLDER`, mapped; a plan's file never changes."""
    path = FOLDER.get() / name
    there = path.stat()
    # A run that begins anew in the same folder has other files of the same names.
    return _load(path, (there.st_ino, there.st_size, there.st_mtime_ns))


@lru_cache(maxsize=4)
def _load(path: Path, written: tuple[int, int, int]) -> Arrays:
    del written  # it tells files of one name apart
    with path.open("rb") as file:
        return unpack(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), str(path))
