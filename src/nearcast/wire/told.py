"""The log of notifications as a reader meets it: which batches are visible, and what they hold.

A run writes one file per batch and shard, and gives all of a batch their names together
(`engine.output.commit`). Then it replaces `visible`, a small file beside their folder: every batch
up to the one that it names is whole and never changes. A reader waits for that file to change,
reads on from its cursor, and needs nothing else of the run.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from nearcast.model.errors import Invalid, NearcastError
from nearcast.wire.durable import make_folder, write_atomic
from nearcast.wire.segments import ANSWERS, Piece, pieces
from nearcast.wire.watching import Watch

__all__ = ["ANSWERS", "BEGIN", "VISIBLE", "Cursor", "Told", "Visible", "read_visible", "say"]

VISIBLE = "visible"
READERS = "readers"
_TRIES = 100
_THREE = tuple[int, int, int]
_CURSOR = re.compile(r"(\d{1,12})-(\d{1,4})-(\d{1,12})")


class Cursor(NamedTuple):
    """A line of the log: by batch, shard (`ANSWERS` for answers) and number in that file, from 1.

    Cursors are ordered as the log is. One with line 0 stands before the first line of its file.
    """

    batch: int
    shard: int = 0
    line: int = 0

    def __str__(self) -> str:
        """As clients get it."""
        return f"{self.batch}-{self.shard}-{self.line}"

    @staticmethod
    def read(text: str) -> Cursor:
        """The cursor that `str` wrote; `0` is the beginning of the log."""
        if text == "0":
            return BEGIN
        found = _CURSOR.fullmatch(text)
        if found is None:
            raise Invalid(f"cursor: {text!r} is none that this service gave")
        return Cursor(int(found[1]), int(found[2]), int(found[3]))


BEGIN = Cursor(0)


class Visible(msgspec.Struct):
    """What the file `visible` says."""

    run: str  # the run that writes here (`run` in its checkpoint)
    batch: int  # this one and all before it are whole


def read_visible(out: Path) -> Visible | None:
    """Which batches are visible in a folder of results; None: none are."""
    try:
        return msgspec.json.decode((out / VISIBLE).read_bytes(), type=Visible)
    except (OSError, msgspec.DecodeError):
        return None


def say(out: Path, visible: Visible) -> None:
    """Say that a batch is visible. It is a wake-up: after a loss of power it may be an older one,
    until the next batch is done."""
    make_folder(out)
    temporary = out / f".{VISIBLE}.tmp"
    temporary.write_bytes(msgspec.json.encode(visible))
    temporary.replace(out / VISIBLE)


class Told:
    """Reads the notifications of a folder of results, JSON lines, in the order of the log."""

    def __init__(self, out: Path) -> None:
        self.out, self.folder = out, out / "notifications"
        self._watch: Watch | None = None

    def last(self) -> int:
        """The latest batch that is visible; -1: none is."""
        visible = read_visible(self.out)
        return -1 if visible is None else visible.batch

    def wait(self, batch: int, seconds: float) -> int:
        """Wait until a batch after `batch` is visible, at most so long; the latest that is."""
        if self._watch is None:
            self._watch = Watch([self.out])
        end = time.monotonic() + seconds
        while (last := self.last()) <= batch and time.monotonic() < end:
            self._watch.wait(min(end - time.monotonic(), 1.0))
        return last

    def read(
        self, after: Cursor = BEGIN, until: int | None = None
    ) -> Iterator[tuple[Cursor, bytes]]:
        """Every line behind a cursor, up to the batch `until` (None: all that are visible)."""
        last = self.last()
        last = last if until is None else min(last, until)
        at = after
        for _ in range(_TRIES):
            try:
                for piece in pieces(self.folder, at.batch, last):
                    for cursor, line in _lines(piece, at):
                        at = cursor
                        yield cursor, line
                return
            except FileNotFoundError:  # it was rolled meanwhile: go on in the segment
                continue
        raise NearcastError(f"{self.folder}: files vanish while they are read; is this a run's?")

    def state(self, name: str, cursor: Cursor) -> None:
        """Have the run keep what is behind a cursor for the reader of that name.

        It counts for what is cut off from then on (`keep` of a sink of type files).
        """
        write_atomic(self._reader(name), msgspec.json.encode(cursor))

    def stated(self) -> dict[str, Cursor]:
        """The cursors that readers have stated, by name."""
        paths = sorted((self.out / READERS).glob("[!.]*.json"))
        return {p.stem: Cursor(*msgspec.json.decode(p.read_bytes(), type=_THREE)) for p in paths}

    def leave(self, name: str) -> None:
        """Have the run keep nothing more for that reader."""
        self._reader(name).unlink(missing_ok=True)

    def _reader(self, name: str) -> Path:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", name):
            raise Invalid(f"reader: {name!r} is no name of letters, digits, - and _")
        return self.out / READERS / f"{name}.json"

    def close(self) -> None:
        """Wait no more."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None


def _lines(piece: Piece, after: Cursor) -> Iterator[tuple[Cursor, bytes]]:
    """The lines of a piece behind a cursor."""
    if piece[:2] < after[:2]:
        return
    skip = after.line if piece[:2] == after[:2] else 0
    with piece.path.open("rb") as file:
        file.seek(piece.start)
        left = piece.length
        for n, line in enumerate(file if left < 0 else _first(file, left), 1):
            if n > skip:
                yield Cursor(piece.batch, piece.shard, n), line


def _first(file: BinaryIO, length: int) -> Iterator[bytes]:
    """The lines of the next `length` bytes."""
    while length > 0 and (line := file.readline()):
        length -= len(line)
        yield line
