"""Names of files in a checkpoint, and the name of its run."""

from __future__ import annotations

import uuid
from pathlib import Path

from nearcast.wire.durable import write_atomic


def inside(checkpoint: Path, path: Path) -> str:
    """The name of a file in a checkpoint as files of the checkpoint write it: it may be moved."""
    return path.relative_to(checkpoint).as_posix()


def run_id(checkpoint: Path) -> str:
    """The name of the run of a checkpoint, which no other has; made when it begins."""
    path = checkpoint / "run"
    if not path.exists() or not path.read_text().strip():
        write_atomic(path, uuid.uuid4().hex.encode())
    return path.read_text().strip()
