"""The list of files that make an archive, in one JSON file that is replaced in one step."""

from __future__ import annotations

from pathlib import Path

import msgspec

from nearcast.model.errors import NearcastError
from nearcast.model.space import Space
from nearcast.wire.durable import write_atomic

__all__ = [
    "FORMAT",
    "NAME",
    "TEMPORARY",
    "Box",
    "File",
    "Manifest",
    "Part",
    "file_paths",
    "load",
    "save",
]

FORMAT = 1
NAME = "_manifest.json"  # as TEMPORARY
TEMPORARY = "_tmp"  # tools that read folders of Parquet leave out names that begin so

Box = tuple[float, float, float, float]  # minx, miny, maxx, maxy


class File(msgspec.Struct, frozen=True):
    """One file, and limits of all of its objects, by which readers leave it out."""

    name: str  # date=YYYY-MM-DD/….parquet
    rows: int
    bytes: int
    times: tuple[int, int]  # least and largest
    ranks: tuple[int, int]
    box: Box
    batch: int  # the last batch with objects in it

    @property
    def date(self) -> str:
        """The folder."""
        return self.name.partition("/")[0]


class Part(msgspec.Struct, frozen=True):
    """A file that a shard wrote, not yet in the archive."""

    file: File
    temporary: str  # its path


class Manifest(msgspec.Struct):
    """What an archive holds."""

    space: Space
    run: str  # whose batches these are
    batch: int = -1  # the last one that is in the archive
    merged: int = 0  # merged files so far: the number of the next one
    files: list[File] = []
    format: int = FORMAT


def load(folder: Path) -> Manifest | None:
    """The manifest of an archive, if there is one."""
    path = folder / NAME
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise NearcastError(f"cannot read {path}: {error.strerror}") from error
    try:
        there = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        if bytes(there.get("format", msgspec.Raw(b"0"))) == str(FORMAT).encode():
            return msgspec.json.decode(data, type=Manifest)
    except msgspec.MsgspecError as error:
        raise NearcastError(
            f"{path} is not the manifest of an archive; choose another folder, or restore it"
        ) from error
    raise NearcastError(
        f"{path} has another format than this nearcast reads ({FORMAT}); go on with the nearcast "
        "that wrote it, or choose another folder"
    )


def save(folder: Path, manifest: Manifest) -> None:
    """Make this what the archive holds, from one moment to the next."""
    write_atomic(folder / NAME, msgspec.json.encode(manifest))


def file_paths(folder: Path) -> list[Path]:
    """The files that hold all objects of an archive, each once."""
    return [folder / file.name for file in existing(folder).files]


def existing(folder: Path) -> Manifest:
    """The manifest of an archive that must be there."""
    manifest = load(folder)
    if manifest is None:
        raise NearcastError(f"{folder}: no archive here; name the folder given to --archive")
    return manifest
