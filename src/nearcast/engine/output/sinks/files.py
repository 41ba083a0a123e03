"""Another folder of results, in its own format, with the same names of files and cursors."""

from __future__ import annotations

import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from nearcast.engine.options.run_options import checked
from nearcast.engine.options.spans import keep_ms
from nearcast.engine.output.batch_files import TEMPORARY, commit, forget_temporary
from nearcast.engine.output.rolling import Roller, check_run
from nearcast.engine.output.sinks.base import Delivery, OfRun, Shown
from nearcast.model.errors import NearcastError
from nearcast.wire import told
from nearcast.wire.durable import make_folder, sync_file
from nearcast.wire.explained import explained
from nearcast.wire.line_rows import write_table

__all__ = ["EVERY", "FilesOf", "is_told"]

EVERY = 64
"""Batches from one upkeep of a folder to the next."""
_REPEATED = 100  # batches that Spark may repeat; further back, someone restored an old checkpoint


def is_told(out: Path, run: str, batch: int) -> bool:
    """Whether a batch of a run is visible in a folder of results already."""
    seen = told.read_visible(out)
    return seen is not None and seen.run == run and batch <= seen.batch < batch + _REPEATED


@dataclass(frozen=True, slots=True)
class FilesOf:
    """A sink of type files."""

    promise: ClassVar[str] = "exactly once"
    lines: ClassVar[bool] = True  # what it copies or makes rows of

    path: str
    format: str = "jsonl"  # jsonl, parquet
    keep: str = ""  # how long segments are kept; empty: there are none

    def __post_init__(self) -> None:
        """Refuse nonsense."""
        checked("format", self.format)
        checked("keep", self.keep)

    def __str__(self) -> str:
        return self.path

    def open(self, of: OfRun) -> Delivery:
        """Make the folder."""
        return _Files(self, of)


class _Files(Delivery):
    def __init__(self, sink: FilesOf, of: OfRun) -> None:
        self.out, self.format, self._of = Path(sink.path), sink.format, of
        if self.out.exists() and not self.out.is_dir():
            raise NearcastError(f"{self.out}: is a file; a sink of type files needs a folder")
        with explained(self.out):
            for name in ("notifications", "rejected", TEMPORARY):
                make_folder(self.out / name)
        forget_temporary(self.out)
        self._roller = None
        if sink.keep:
            check_run(self.out, of.run)
            self._roller = Roller(self.out, sink.format, keep_ms(sink.keep), of.run)

    def deliver(self, shown: Shown) -> None:
        if is_told(self.out, self._of.run, shown.batch):
            return
        with explained(self.out):
            made = dict(self._made(shown, name) for name in shown.notifications)
            made |= {name: self._copy(shown.out / name) for name in shown.rejected}
            commit(self.out, made)
            told.say(self.out, told.Visible(self._of.run, shown.batch))

    def after(self, batch: int) -> None:
        if self._roller is not None and (batch + 1) % EVERY == 0:
            self._roller.roll(batch)

    def _temporary(self) -> Path:
        folder = self.out / TEMPORARY
        folder.mkdir(exist_ok=True)
        return folder / uuid.uuid4().hex

    def _made(self, shown: Shown, name: str) -> tuple[str, str]:
        """The name of a file here, and the file as it is made, under a temporary name."""
        path = shown.out / name
        if path.suffix == f".{self.format}":
            return name, self._copy(path)
        answers = path.stem.endswith("-answers")
        temporary = self._temporary()
        write_table(path.read_bytes(), self._of.settings.kinds, answers, temporary)
        sync_file(temporary)
        return f"{name.removesuffix(path.suffix)}.{self.format}", str(temporary)

    def _copy(self, path: Path) -> str:
        temporary = self._temporary()
        shutil.copyfile(path, temporary)
        sync_file(temporary)
        return str(temporary)
