"""Segments: the files of many batches rolled into one, with an index of what is where in it.

`NAME.jsonl` (or `.parquet`) holds what the files of batches FIRST to LAST held, one after the
other; `_NAME.json` beside it is its index. A segment counts when both are there. Segments never
change. While a segment takes the place of smaller files, both are there for a moment: the one that
covers more batches counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

__all__ = ["ANSWERS", "Index", "Piece", "Segment", "covered", "loose", "pieces", "segments", "tidy"]

ANSWERS = 9999
"""The shard of a piece with the answers of a batch, which come after the lines of all shards."""

_LOOSE = re.compile(r"b(\d{8,})-(?:s(\d{4})|(answers))\.(jsonl|parquet)")
_SEGMENT = re.compile(r"segment-(\d{12})-(\d{12})(?:-(answers))?\.(jsonl|parquet)")


class Index(msgspec.Struct):
    """What the index of a segment says."""

    run: str  # whose notifications these are
    since_ms: int  # when its first and last file were written (epoch milliseconds)
    until_ms: int
    # Of each file: batch, shard, where it begins and how much it is: bytes, or row groups.
    pieces: list[tuple[int, int, int, int]]
    merged: bool = False  # of smaller segments


class Segment(NamedTuple):
    """The file of a segment."""

    first: int  # batch
    last: int
    path: Path

    @property
    def index_path(self) -> Path:
        """The index beside it."""
        return self.path.with_name(f"_{self.path.stem}.json")

    def contents(self) -> Index:
        """What is where in it."""
        return msgspec.json.decode(self.index_path.read_bytes(), type=Index)

    @staticmethod
    def of(folder: Path, first: int, last: int, format_: str, answers: bool = False) -> Segment:
        """One that is to be written. Answers as rows have columns of their own, so also a file."""
        end = "-answers" if answers else ""
        return Segment(first, last, folder / f"segment-{first:012d}-{last:012d}{end}.{format_}")


class Piece(NamedTuple):
    """What a batch has of one shard, by itself or in a segment."""

    batch: int
    shard: int
    path: Path
    start: int = 0
    length: int = -1  # -1: the whole file


def segments(folder: Path, format_: str = "jsonl", answers: bool = False) -> list[Segment]:
    """The segments of a folder that count, in order."""
    found = []
    for path in _paths(folder):
        parts = _SEGMENT.fullmatch(path.name)
        if parts and parts[4] == format_ and bool(parts[3]) == answers:
            segment = Segment(int(parts[1]), int(parts[2]), path)
            if segment.index_path.exists():
                found.append(segment)
    found.sort(key=lambda s: (s.first, -s.last))
    counting: list[Segment] = []
    for segment in found:
        if not counting or segment.last > counting[-1].last:
            counting.append(segment)
    return counting


def tidy(folder: Path, format_: str, answers: bool) -> None:
    """Remove what crashes left of segments that do not count. Only who writes them may call it."""
    counting = {segment.path for segment in segments(folder, format_, answers)}
    for path in _paths(folder):
        parts = _SEGMENT.fullmatch(path.name)
        ours = parts and parts[4] == format_ and bool(parts[3]) == answers
        if ours and path not in counting:
            path.with_name(f"_{path.stem}.json").unlink(missing_ok=True)
            path.unlink(missing_ok=True)


def pieces(folder: Path, first: int, last: int, format_: str = "jsonl") -> Iterator[Piece]:
    """What batches `first` to `last` left, in the order of the log."""
    rolled = segments(folder, format_)
    found = [p for p in loose(folder, format_) if not covered(rolled, p.batch)]
    for segment in rolled:
        if segment.first <= last and segment.last >= first:
            for batch, shard, start, length in segment.contents().pieces:
                found.append(Piece(batch, shard, segment.path, start, length))
    yield from sorted(p for p in found if first <= p.batch <= last)


def loose(folder: Path, format_: str = "jsonl", answers: bool | None = None) -> Iterator[Piece]:
    """The files of single batches; `answers`: only those that are, or are not."""
    for path in _paths(folder):
        parts = _LOOSE.fullmatch(path.name)
        if parts and parts[4] == format_ and answers in (None, bool(parts[3])):
            yield Piece(int(parts[1]), ANSWERS if parts[3] else int(parts[2]), path)


def covered(rolled: Iterable[Segment], batch: int) -> bool:
    """Whether one of the segments holds a batch."""
    return any(s.first <= batch <= s.last for s in rolled)


def _paths(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []
