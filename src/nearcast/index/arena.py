"""Where an index keeps its arrays: memory-mapped files that any process of the machine attaches.

An `Arena` is a folder with one file per array, a token that says which batch wrote it last, and a
mark while it is being written. It is a cache: a task that finds another token, a mark, or nothing
at all, builds it anew from the checkpoint. `Memory` is the same in plain memory.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.model.errors import NearcastError

_LARGE = 1 << 23  # bytes
_AHEAD = 4
_MADV_COLLAPSE = 25  # of Linux; Python has no name for it yet
_LAYOUT = "12"  # of the arrays; a change of any kernel's layout must change it


class Storage(ABC):
    """Named, growing arrays of rows."""

    @abstractmethod
    def array(self, name: str, dtype: Any, width: int = 1, rows: int = 0) -> NDArray[Any]:
        """The array `name`, [at least `rows`, width] ([rows] for width 1), zeros where new."""

    @abstractmethod
    def clear(self) -> None:
        """Forget every array."""

    @property
    @abstractmethod
    def bytes(self) -> int:
        """Bytes held."""

    def table(self, name: str, width: int, rows: int) -> NDArray[np.uint64]:
        """A fresh, empty array of exactly `rows` rows, in place of any of that name."""
        self.discard(name)
        return self.array(name, np.uint64, width, rows)

    @abstractmethod
    def discard(self, name: str) -> None:
        """Forget one array."""


def _grown(rows: int, needed: int) -> int:
    """Rows to have when `needed` are: a sixteenth more than there were, so growing stays rare.

    Growing is cheap (nothing is copied), and rows that are not used yet are memory wasted.
    """
    return max(needed, rows + rows // 16)


def _zeros(rows: int, width: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """At least so many zeros; many of them in huge pages, because indexes read at random places.

    These have room for _AHEAD times as many: untouched pages cost nothing, and an array that grows
    need not be copied.
    """
    size = rows * width * dtype.itemsize
    if size < _LARGE:
        flat = np.zeros(rows * width, dtype)
    else:
        pages = _pages(_AHEAD * size, size)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            with suppress(OSError):  # a kernel without them
                pages.madvise(mmap.MADV_HUGEPAGE)
        flat = np.frombuffer(pages, dtype)
    return flat.reshape(-1, width) if width > 1 else flat


def _pages(wanted: int, needed: int) -> mmap.mmap:
    for size in (wanted, needed):
        with suppress(OSError):  # a kernel that promises no more than it has
            return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    raise NearcastError(f"no memory left for the index ({needed:,} bytes were needed)")


class Memory(Storage):
    """Arrays in this process."""

    def __init__(self) -> None:
        self._arrays: dict[str, NDArray[Any]] = {}
        self._rooms: dict[str, NDArray[Any]] = {}  # what each array is the beginning of

    def array(self, name: str, dtype: Any, width: int = 1, rows: int = 0) -> NDArray[Any]:
        old = self._arrays.get(name)
        if old is None or len(old) < rows:
            size = rows if old is None else _grown(len(old), rows)
            if old is None or len(self._rooms[name]) < size:
                self._rooms[name] = _zeros(size, width, np.dtype(dtype))
                if old is not None:
                    self._rooms[name][: len(old)] = old
            self._arrays[name] = self._rooms[name][:size]
        return self._arrays[name]

    def settle(self) -> None:
        """Have the OS map used memory with huge pages again; call it when loading is done.

        The OS may have split memory that was not touched for a while into small pages, to find
        something to page out.
        """
        for name, array in self._arrays.items():
            pages = self._rooms[name].base
            while isinstance(pages, np.ndarray):
                pages = pages.base
            if isinstance(pages, memoryview) and isinstance(pages.obj, mmap.mmap):
                with suppress(OSError):  # a kernel before 6.1
                    pages.obj.madvise(_MADV_COLLAPSE, 0, array.nbytes)

    def discard(self, name: str) -> None:
        self._arrays.pop(name, None)
        self._rooms.pop(name, None)

    def clear(self) -> None:
        self._arrays.clear()
        self._rooms.clear()

    @property
    def bytes(self) -> int:
        return sum(a.nbytes for a in self._arrays.values())


class _Mappings:
    """What this process has mapped, kept so that the next batch finds its pages mapped already.

    Only mappings of the latest run are kept, so that the disk space of deleted files becomes free.
    """

    def __init__(self) -> None:
        self._run: Path | None = None
        self._kept: dict[Path, tuple[int, mmap.mmap]] = {}  # by file: its inode

    def of(self, path: Path, handle: int) -> mmap.mmap:
        """The whole of an open file."""
        if self._run != path.parent.parent:
            self._run = path.parent.parent
            self._kept.clear()
        state = os.fstat(handle)
        inode, kept = self._kept.get(path, (0, None))
        if kept is None or inode != state.st_ino or len(kept) != state.st_size:
            kept = mmap.mmap(handle, 0)
            self._kept[path] = (state.st_ino, kept)
        return kept

    def forget(self, folder: Path) -> None:
        """Its files are gone."""
        self._kept = {path: kept for path, kept in self._kept.items() if path.parent != folder}

    def forget_missing(self, folder: Path) -> None:
        """Files that another process deleted: their space is free when nobody maps them."""
        names = {path.name for path in folder.glob("*.bin")}
        for path in [p for p in self._kept if p.parent == folder and p.name not in names]:
            del self._kept[path]

    def forget_file(self, path: Path) -> None:
        """This file is gone."""
        self._kept.pop(path, None)


_MAPPINGS = _Mappings()


class Arena(Storage):
    """Arrays in files of one folder. Use it within `lock`; one process writes at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._maps: dict[str, mmap.mmap] = {}

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Wait until no other process uses the arena (a killed one releases it by itself)."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with self.folder.with_suffix(".lock").open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    def attach(self, token: str) -> bool:
        """Whether the arena holds exactly what the batch of `token` left."""
        _MAPPINGS.forget_missing(self.folder)
        try:
            return (self.folder / "token").read_text() == self._mark(token)
        except (OSError, ValueError):  # ValueError: what it holds is no text
            return False

    def _sizes(self) -> str:
        """Names and lengths of all files: kernels must never read one that was cut short."""
        files = sorted(self.folder.glob("*.bin"))
        return " ".join(f"{f.name}:{f.stat().st_size}" for f in files)

    def _mark(self, token: str) -> str:
        """`token` with what makes the files unreadable: a reboot (lost pages), another layout."""
        try:
            boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        except OSError:
            boot = "?"
        return f"{token} {boot} {_LAYOUT} {self._sizes()}"

    def begin(self) -> None:
        """From here until `commit`, a crash leaves an arena that no process attaches."""
        (self.folder / "token").unlink(missing_ok=True)

    def commit(self, token: str) -> None:
        """The arrays are whole again, as of `token`."""
        (self.folder / "token").write_text(self._mark(token))

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.bin"

    def array(self, name: str, dtype: Any, width: int = 1, rows: int = 0) -> NDArray[Any]:
        size = np.dtype(dtype).itemsize * width
        mapped = self._maps.get(name)
        if mapped is None or len(mapped) < rows * size:
            mapped = self._map(name, rows, size)
        flat = np.frombuffer(mapped, dtype)
        flat = flat[: len(flat) // width * width]
        return flat.reshape(-1, width) if width > 1 else flat

    def _map(self, name: str, rows: int, size: int) -> mmap.mmap:
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._path(name).open("a+b") as file:
            held = file.seek(0, os.SEEK_END)
            want = max(rows, 1) * size
            if held < want:
                want = want if held == 0 else _grown(held // size, rows) * size
                self._allocate(file.fileno(), held, want)
            self._maps[name] = _MAPPINGS.of(self._path(name), file.fileno())
        return self._maps[name]

    def _allocate(self, handle: int, held: int, want: int) -> None:
        """Take the space now: a file with holes would kill the process when the disk fills up."""
        try:
            os.posix_fallocate(handle, held, want - held)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            raise NearcastError(
                f"no space left for the index in {self.folder} ({want - held:,} bytes more were "
                "needed): free some, or choose another folder with the setting `arena`"
            ) from error

    def discard(self, name: str) -> None:
        self._maps.pop(name, None)
        _MAPPINGS.forget_file(self._path(name))
        self._path(name).unlink(missing_ok=True)

    def clear(self) -> None:
        self._maps.clear()
        _MAPPINGS.forget(self.folder)
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def bytes(self) -> int:
        return sum(f.stat().st_size for f in self.folder.glob("*.bin"))


class Part(Storage):
    """The arrays of one index in a storage that several share."""

    def __init__(self, whole: Storage, prefix: str) -> None:
        self._whole = whole
        self._prefix = prefix
        self._names: set[str] = set()

    def array(self, name: str, dtype: Any, width: int = 1, rows: int = 0) -> NDArray[Any]:
        self._names.add(name)
        return self._whole.array(f"{self._prefix}.{name}", dtype, width, rows)

    def discard(self, name: str) -> None:
        self._whole.discard(f"{self._prefix}.{name}")

    def clear(self) -> None:
        for name in self._names:
            self.discard(name)

    @property
    def bytes(self) -> int:
        return self._whole.bytes
