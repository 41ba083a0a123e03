"""A live run in this process: a folder that grows, the tailer, the steps and the sink. No Spark.

For what takes Spark days: many batches, crashes at chosen points, restarts. A restart forgets all
that is in memory, and goes on from what the checkpoint has.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from nearcast.engine.feed.source import Feed
from nearcast.engine.feed.tailer import Tailer
from nearcast.engine.feed.topics import Topics, TopicsOf
from nearcast.engine.files import run_id
from nearcast.engine.options.settings import Settings
from nearcast.engine.output.sinks import OfRun, SinkOf
from nearcast.engine.shard.state import Manifest
from nearcast.testing.one_process import OneProcess, Worked
from nearcast.wire.read_split import read_split

__all__ = ["LiveRun"]


class LiveRun:
    """A run in a folder: `write` events, then `step` until there is nothing left to do."""

    def __init__(
        self,
        settings: Settings,
        folder: Path,
        batch_events: int = 1000,
        splits: int = 1,
        sinks: Sequence[SinkOf] = (),
        topics: Sequence[TopicsOf] = (),
    ) -> None:
        """`settings` must say `arrival`, and where the arenas are."""
        self._sinks, self._topics = sinks, topics
        self._connections = {topic: of.settings for of in topics for topic in of.topics}
        self.settings, self.folder, self.run = settings, folder, OneProcess(settings, folder)
        self.inbox = folder / "in"
        self.inbox.mkdir(parents=True, exist_ok=True)
        self._batch_events, self._splits = batch_events, splits
        self._files = 0
        # What Spark's own state remembers: before each batch, the last few of them.
        self._states: dict[int, list[Manifest]] = {}
        self._tailer: Tailer | None = None
        self.restart()

    def restart(self) -> None:
        """Forget all but what is on the disk, and begin again."""
        if self._tailer is not None:
            self._tailer.stop()
        for sink in self.run.others:
            sink.close()
        of = OfRun(self.settings, self.run.checkpoint, run_id(self.run.checkpoint))
        self.run = replace(self.run, others=[sink.open(of) for sink in self._sinks])
        kinds = self.settings.kinds_to_find
        self._tailer = Tailer(
            [self.inbox], self.run.checkpoint, self._batch_events, self._splits,
            kinds=kinds, topics=[Topics(of, self.run.checkpoint) for of in self._topics],
        )  # fmt: skip
        # Spark's own log: a batch whose sink did not return comes again.
        noted = self.folder / "committed"
        self.next = int(noted.read_text()) if noted.exists() else 0

    @property
    def tailer(self) -> Tailer:
        """What watches the folder."""
        assert self._tailer is not None
        return self._tailer

    @property
    def arenas(self) -> Path:
        """The folder of its indexes."""
        return self.settings.arena_root() / "run"

    def write(self, events: Iterable[dict[str, Any] | str]) -> None:
        """Append lines to the latest file of the folder."""
        lines = [e if isinstance(e, str) else json.dumps(e) for e in events]
        with (self.inbox / f"{self._files:09d}.jsonl").open("a") as file:
            file.writelines(f"{line}\n" for line in lines)

    def turn(self, keep: int) -> None:
        """Begin another file, and remove all but the latest `keep`, which must be read by now."""
        self._files += 1
        for path in sorted(self.inbox.iterdir())[:-keep]:
            path.unlink()

    def step(self) -> Worked | None:
        """Look once, and run the next batch, if there is one."""
        if not self.tailer.behind():
            self.tailer.poll()
        feed = Feed(self.run.checkpoint)
        if not feed.has(self.next):
            return None
        planned = feed.read(self.next)
        chosen = self.settings
        splits = [
            (
                read_split(split, chosen.space, chosen.kinds, n, chosen.stored, self._connections),
                split.final,
            )
            for n, split in enumerate(planned)
        ]
        before = self._states[self.next] if self.next else [Manifest()] * chosen.shards
        done = self.run.batch(self.next, splits, before, planned[0].kinds)
        self.next += 1
        self._states[self.next] = done.states
        self._states.pop(self.next - 5, None)
        (self.folder / "committed").write_text(str(self.next))
        return done

    def lose_arenas(self) -> None:
        """As if the machine had been replaced."""
        shutil.rmtree(self.arenas, ignore_errors=True)

    def files(self) -> dict[str, tuple[int, int]]:
        """How many files each part of it has, and how many bytes."""
        found: dict[str, tuple[int, int]] = {}
        for top in (self.run.checkpoint, self.run.out, self.arenas):
            for path in top.rglob("*") if top.is_dir() else ():
                if path.is_file():
                    part = f"{top.name}/{path.relative_to(top).parts[0]}"
                    files, size = found.get(part, (0, 0))
                    found[part] = files + 1, size + path.stat().st_size
        return found
