"""Where the files of a checkpoint are when it was copied or moved elsewhere.

Files inside a checkpoint are named relative to it. Logs have absolute paths. A log that is no
longer there is looked for at the same place relative to the checkpoint: a folder that holds both
may be moved as a whole.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from pathlib import Path

import msgspec

from nearcast.wire.durable import write_atomic
from nearcast.wire.split import Split


def to_name(checkpoint: Path, path: str) -> str:
    """How a file of the checkpoint (a resolved path) writes a path."""
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 -- the user's own links stay
    if absolute.is_relative_to(checkpoint):
        return absolute.relative_to(checkpoint).as_posix()
    if Path(path).resolve().is_relative_to(checkpoint):
        return Path(path).resolve().relative_to(checkpoint).as_posix()
    return str(absolute)


def moved_along(checkpoint: Path, then: Path, path: Path) -> Path:
    """The place of `path` now, if it was moved together with the checkpoint that was at `then`."""
    return Path(os.path.normpath(checkpoint / os.path.relpath(path, then)))


def found(checkpoint: Path, then: Path, name: str, watched: Collection[Path] = ()) -> str:
    """The path of what `to_name` wrote when the checkpoint was at `then`.

    What was moved along counts if the file itself is gone, or if it is in a `watched` folder.
    """
    path = Path(name)
    if not path.is_absolute():
        return str(checkpoint / name)
    if then != checkpoint and path.parent not in watched:
        now = moved_along(checkpoint, then, path)
        if now.exists() and (now.parent in watched or not path.exists()):
            return str(now)
    return name


def written(checkpoint: Path, split: Split) -> Split:
    """A split as a file of the checkpoint holds it."""
    if not split.path:  # a reject: it has a name only
        return split
    lines = to_name(checkpoint, split.lines) if split.lines else ""
    return msgspec.structs.replace(split, path=to_name(checkpoint, split.path), lines=lines)


def read(checkpoint: Path, then: Path, split: Split, watched: Collection[Path] = ()) -> Split:
    """The split that `written` made. One that is called by its path is called by the new one."""

    def now(name: str) -> str:
        return found(checkpoint, then, name, watched) if name else ""

    name = split.name
    if Path(name).is_absolute() and (not split.path or name == str(then / split.path)):
        name = now(name)
    return msgspec.structs.replace(split, path=now(split.path), name=name, lines=now(split.lines))


def correct_spark_paths(checkpoint: Path) -> None:
    """Correct the absolute paths that Spark wrote into its own part of the checkpoint."""
    for path in checkpoint.glob("spark/state/*/_metadata/v2/*"):
        if path.name.startswith("."):
            continue
        state = path.parent.parent.parent
        version, _, text = path.read_text().partition("\n")
        values = json.loads(text)
        for store in values["stateStoreInfo"]:
            store["stateSchemaFilePaths"] = [
                (state / "_stateSchema" / Path(old).parent.name / Path(old).name).resolve().as_uri()
                for old in store["stateSchemaFilePaths"]
            ]
        if values != json.loads(text):
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
            write_atomic(path, f"{version}\n{json.dumps(values)}".encode())
