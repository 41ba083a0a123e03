"""The format of the files of a checkpoint: each carries its number, and another one is refused.

One number stands for all of them. A change of any file's layout or meaning must change it.
Binary files begin with a line (`head`), JSON files hold a field `checkpoint_format`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from nearcast.model.errors import NearcastError
from nearcast.wire.durable import write_atomic

FORMAT = 3  # 1: files without a number
FIELD = "checkpoint_format"  # of JSON files
_HEAD = re.compile(rb"nearcast ([a-z]+) (\d+)\n")


def head(what: str) -> bytes:
    """How a binary file begins."""
    return f"nearcast {what} {FORMAT}\n".encode()


def write_binary(path: Path, what: str, data: bytes | memoryview) -> None:
    """Write a file that `read_binary` reads."""
    write_atomic(path, data, head(what))


def read_binary(path: Path, what: str) -> memoryview:
    """What `write_binary` wrote, if it is of this format."""
    return body(path, what, path.read_bytes())


def body(path: Path, what: str, data: Any) -> memoryview:
    """What stands behind the head; `data` is the whole file."""
    found = _HEAD.match(data)
    if found is None or found[1] != what.encode():
        raise refused(path, 1)
    if int(found[2]) != FORMAT:
        raise refused(path, int(found[2]))
    return memoryview(data)[found.end() :]


def check_format(path: Path, values: Any) -> None:
    """Refuse what was read from a JSON file of another format."""
    there = values.get(FIELD, 1) if isinstance(values, dict) else 1
    if there != FORMAT:
        raise refused(path, there)


def refused(path: Path, there: object) -> NearcastError:
    """Why a file of format `there` is not read, and what to do."""
    return NearcastError(
        f"{path}: has format {there}, and this nearcast reads format {FORMAT}; go on with the "
        "nearcast that made this checkpoint, or start with a new one"
    )
