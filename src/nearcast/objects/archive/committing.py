"""What the driver does: take in the files of a batch, all at once, and merge small ones."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from nearcast.model.errors import NearcastError
from nearcast.model.space import Space
from nearcast.objects.archive.manifest import NAME, TEMPORARY, File, Manifest, Part, load, save
from nearcast.objects.archive.merging import choose, joined
from nearcast.objects.archive.writing import put_file
from nearcast.wire.durable import make_folder, sync_folder
from nearcast.wire.explained import explained

__all__ = ["Archive"]

_OWN = re.compile(r"(b\d{8,}-s\d{4,}-\d{3,}|c\d{8,})\.parquet")


class Archive:
    """The archive of a run, on its driver. One at a time; readers need none."""

    def __init__(self, folder: Path, space: Space, run: str) -> None:
        """Begin an archive, or go on with it; call it while no batch runs.

        `run` is the same whenever the run goes on, and no other run has it: batches are numbered
        within a run, and a second run would take its batches for repeats.
        """
        self.folder = folder
        manifest = load(folder)
        if manifest is None:
            if any(folder.glob("date=*/*.parquet")):
                raise NearcastError(
                    f"{folder} holds Parquet files, and no _manifest.json says which of them "
                    "count; choose an empty folder for the archive, or restore the manifest"
                )
            manifest = Manifest(space, run)
            with explained(folder, "the archive"):
                make_folder(folder)
                save(folder, manifest)
        if manifest.run != run:
            raise NearcastError(
                f"{folder} is the archive of another run; choose an empty folder for this one"
            )
        if manifest.space is not space:
            raise NearcastError(f"{folder} is an archive of {manifest.space.value} space")
        self.manifest = manifest
        with explained(folder, "the archive"):
            self._forget_leftovers()

    def commit(self, batch: int, parts: Iterable[Part]) -> None:
        """Take in all that shards wrote in a batch. Again is the same as once.

        Batches come in order. First files get their names, then the manifest names them.
        """
        parts = list(parts)
        with explained(self.folder, "the archive"):
            if batch <= self.manifest.batch:  # a repeat; its objects may be merged already
                for part in parts:
                    Path(part.temporary).unlink(missing_ok=True)
                return
            self._take_in(parts)
            files = [*self.manifest.files, *(part.file for part in parts)]
            self._save(batch=batch, files=files)

    def merge(self) -> bool:
        """Merge the files of one day that are due; whether there were any.

        One call writes at most about `merging.TARGET_ROWS` objects. Call it after each commit, or
        as often as there is time.
        """
        chosen = choose(self.manifest.files, self.manifest.batch)
        if not chosen:
            return False
        old = {file.name for file in chosen}
        with explained(self.folder, "the archive"):
            name = f"{chosen[0].date}/c{self.manifest.merged:08d}.parquet"
            part = put_file(
                self.folder,
                self.manifest.space,
                name,
                max(file.batch for file in chosen),
                joined(self.folder, chosen),
            )
            self._take_in([part])
            files = [file for file in self.manifest.files if file.name not in old]
            self._save(merged=self.manifest.merged + 1, files=[*files, part.file])
            for gone in sorted(old):
                (self.folder / gone).unlink(missing_ok=True)
        return True

    def _take_in(self, parts: Sequence[Part]) -> None:
        """Give files their names; nobody reads them before the manifest names them."""
        folders = {self.folder / part.file.date for part in parts}
        for folder in folders:
            make_folder(folder)
        for part in parts:
            temporary, final = Path(part.temporary), self.folder / part.file.name
            if temporary.exists() or not final.exists():  # else an attempt before got so far
                temporary.replace(final)
        for folder in folders:
            sync_folder(folder)

    def _save(self, files: list[File], **changes: int) -> None:
        """Replace the manifest; what this object knows changes only when that is done."""
        following = msgspec.structs.replace(self.manifest, files=files, **changes)
        save(self.folder, following)
        self.manifest = following

    def _forget_leftovers(self) -> None:
        """Remove what a run that was killed left, and no manifest names."""
        # Workers of a driver that was killed may still write there for a moment.
        shutil.rmtree(self.folder / TEMPORARY, ignore_errors=True)
        for left in self.folder.glob(f".{NAME}.*.tmp"):  # of `write_atomic`
            left.unlink()
        known = {file.name for file in self.manifest.files}
        for path in self.folder.glob("date=*/*.parquet"):
            name = path.relative_to(self.folder).as_posix()
            if name not in known and _OWN.fullmatch(path.name):
                path.unlink()
