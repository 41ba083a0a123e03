"""Files that are either whole or not there."""

from __future__ import annotations

import os
from pathlib import Path

from nearcast.model.errors import NearcastError


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file that is either whole or not there, whatever happens meanwhile."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise _cannot_write(path, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def _cannot_write(path: Path, error: OSError) -> NearcastError:
    """A full disk as one clear line: nothing counts until it is written whole."""
    return NearcastError(
        f"cannot write {path}: {error.strerror}; make room and run the same command again, "
        "it goes on where it stopped"
    )
