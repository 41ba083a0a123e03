"""Files that are either whole or not there, and stay so when the machine loses power."""

from __future__ import annotations

import os
from pathlib import Path

from nearcast.model.errors import NearcastError

__all__ = ["make_folder", "sync_file", "sync_folder", "write_atomic"]


def write_atomic(path: Path, data: bytes | memoryview, head: bytes = b"") -> None:
    """Write a file that is either whole or not there, whatever happens meanwhile.

    It holds `head`, then `data`.
    When this returns, the bytes and the name are on the disk: first the file is synced, then
    renamed, then the folder that holds the name is synced.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        make_folder(path.parent)
        with temporary.open("wb") as file:
            file.write(head)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise _cannot_write(path, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def make_folder(path: Path) -> None:
    """Make a folder and those above it; each new name is on the disk when this returns."""
    if path.is_dir():
        return
    make_folder(path.parent)
    path.mkdir(exist_ok=True)
    sync_folder(path.parent)


def sync_file(path: Path) -> None:
    """Have the bytes of a file on the disk that was written without `write_atomic`."""
    _sync(path, os.O_RDONLY)


def sync_folder(path: Path) -> None:
    """Have the names in a folder on the disk: a rename counts only then."""
    _sync(path, os.O_RDONLY | os.O_DIRECTORY)


def _sync(path: Path, how: int) -> None:
    handle = os.open(path, how)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _cannot_write(path: Path, error: OSError) -> NearcastError:
    """A full disk as one clear line: nothing counts until it is written whole."""
    return NearcastError(
        f"cannot write {path}: {error.strerror}; make room and run the same command again, "
        "it goes on where it stopped"
    )
