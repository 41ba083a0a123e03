"""The demo's folder: replaced if an earlier demo made it, refused if it holds anything else."""

from __future__ import annotations

import shutil
from pathlib import Path

from nearcast.model.errors import NearcastError

DEFAULT = "nearcast-demo"
_MARK = ".nearcast-demo"
_OURS = {
    _MARK, "events", "notifications", "rejected", "summary.json", "map.html", "spark.log",
    "_checkpoint", "_arena", "_tmp",
}  # fmt: skip


class DemoFolder:
    """Where everything of one demo is."""

    def __init__(self, out: str | Path | None) -> None:
        self.path = Path(DEFAULT if out is None else out)
        self.events = self.path / "events"
        self.log = self.events / "city.jsonl"
        self.notifications = self.path / "notifications"
        self.map = self.path / "map.html"
        self.spark_log = self.path / "spark.log"
        self.checkpoint = self.path / "_checkpoint"
        self.arena = self.path / "_arena"

    def prepare(self) -> None:
        """Make it, or empty it. Nothing is removed that a demo did not make."""
        try:
            self._clear()
            self.events.mkdir(parents=True)
            (self.path / _MARK).write_text("Made by `nearcast demo`; the next one replaces it.\n")
            self.log.touch()
        except OSError as error:
            raise NearcastError(f"{self.path}: cannot be written ({error.strerror})") from error

    def _clear(self) -> None:
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise NearcastError(f"{self.path}: is a file; --out needs a folder")
        entries = sorted(self.path.iterdir())
        known = _OURS if (self.path / _MARK).exists() else set()
        foreign = [p.name for p in entries if p.name not in known]
        if foreign:
            raise NearcastError(
                f"{self.path}: holds files that no demo made ({', '.join(foreign[:3])}"
                f"{', …' if len(foreign) > 3 else ''}); choose another --out"
            )
        for entry in entries:
            _remove(entry)

    def tidy(self) -> None:
        """Remove what only a running demo needs."""
        for path in (self.checkpoint, self.arena, self.path / "_tmp"):
            _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
