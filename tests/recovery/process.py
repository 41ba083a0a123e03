"""Processes that a test starts, watches and kills, with all their children."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

PATIENCE_SECONDS = 240
_QUIET = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
DRIVER = Path(__file__).with_name("driver.py")


class Session:
    """A process and its children: they share a session, whatever groups they make in it."""

    def __init__(self, command: list[str], log: Path, env: dict[str, str] | None = None) -> None:
        self.log = log
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                env={**os.environ, **(env or {})},
            )

    def members(self) -> list[int]:
        """All live processes of the session."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    state, _, _, session = (
                        (entry / "stat").read_text().rpartition(") ")[2].split()[:4]
                    )
                except OSError:  # it has ended meanwhile
                    continue
                if int(session) == self.process.pid and state != "Z":
                    found.append(int(entry.name))
        return found

    def kill(self) -> None:
        """-9 to the process first, then to whatever it leaves; returns when none is left."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while members := self.members():
            assert time.monotonic() < deadline, "processes that cannot be killed"
            for pid in sorted(members, key=lambda p: p != self.process.pid):
                _signal(pid)
            time.sleep(0.05)
        self.process.wait()

    def said(self) -> list[str]:
        return self.log.read_text(errors="replace").splitlines()

    def wait_for(self, line: str) -> None:
        """Until the process has said this line."""
        self._until(line, lambda: line in self.said())

    def wait_for_text(self, text: str) -> None:
        """Until the process has said this, somewhere in a line."""
        self._until(text, lambda: any(text in line for line in self.said()))

    def _until(self, what: str, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not holds():
            last = "\n".join(self.said()[-40:])
            assert self.process.poll() is None, f"ended before {what!r}: {last}"
            assert time.monotonic() < deadline, f"no {what!r}: {last}"
            time.sleep(0.02)

    def wait(self) -> int:
        """How it ended."""
        return self.process.wait(PATIENCE_SECONDS)


def _signal(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


class Replay:
    """The same replay, started as often as need be."""

    def __init__(
        self,
        folder: Path,
        log: Path,
        batch_events: int,
        engine: dict[str, Any],
        master: str = "local[2]",
        spark: dict[str, str] | None = None,
    ) -> None:
        self.folder, self.out, self.faults = folder, folder / "out", folder / "faults"
        self.faults.mkdir(parents=True)
        self.starts = 0
        checkpoint = str(folder / "checkpoint")
        replay = {"logs": [str(log)], "out": str(self.out), "checkpoint": checkpoint}
        options = {
            "master": master,
            "spark": {**_QUIET, **(spark or {})},
            "engine": {"arena": str(folder / "arena"), **engine},
            "replay": {**replay, "batch_events": batch_events},
        }
        self._options = folder / "options.json"
        self._options.write_text(json.dumps(options))

    def start(self) -> Session:
        self.starts += 1
        log = self.folder / f"driver-{self.starts}.log"
        env = {"NEARCAST_FAULTS": str(self.faults)}
        return Session([sys.executable, str(DRIVER), str(self._options)], log, env)

    def finish(self) -> dict[str, Any]:
        """Start it and let it end; the summary."""
        session = self.start()
        try:
            code = session.wait()
        finally:
            session.kill()
        said = session.said()
        assert code == 0, "\n".join(said[-40:])
        done = next(line for line in said if line.startswith("done "))
        summary: dict[str, Any] = json.loads(done.removeprefix("done "))
        return summary
