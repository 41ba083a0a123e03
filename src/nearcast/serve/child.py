"""A process that is kept alive: started again when it dies, with a growing pause in between."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

__all__ = ["Child"]

_FIRST_S, _LONGEST_S = 1.0, 30.0
_STEADY_S = 60.0  # after which a death counts as the first again
_PR_SET_PDEATHSIG = 1


class Child:
    """One process of a service."""

    def __init__(
        self,
        name: str,
        arguments: Sequence[str],
        changed: Callable[[str, int], None] | None = None,
        stop_s: float = 60.0,
    ) -> None:
        """`changed` is called with `starting`, `down` or `stopped`, and the restarts so far."""
        self.name, self.arguments, self._changed = name, arguments, changed
        self.stop_s = stop_s
        self.restarts = 0
        self.process: subprocess.Popen[bytes] | None = None
        self.status: int | None = None  # of the latest death
        self._pause = _FIRST_S
        self._began = 0.0
        self._next = 0.0

    def _say(self, state: str) -> None:
        if self._changed is not None:
            self._changed(state, self.restarts)

    def start(self) -> None:
        """Start it."""
        self._say("starting")
        self._began = time.monotonic()
        # A session of its own: Ctrl-C on the terminal reaches the parent alone, which ends it.
        self.process = subprocess.Popen(
            [sys.executable, "-m", *self.arguments],
            start_new_session=True,
            preexec_fn=_die_with_parent,
        )

    def look(self) -> bool:
        """Start it again if it is due; whether it has died since the last look."""
        if self.process is None:
            if time.monotonic() >= self._next:
                self.restarts += 1
                self.start()
            return False
        self.status = self.process.poll()
        if self.status is None:
            return False
        self.process = None
        if time.monotonic() - self._began > _STEADY_S:
            self._pause = _FIRST_S
        self._next = time.monotonic() + self._pause
        self._pause = min(self._pause * 2, _LONGEST_S)
        self._say("down")
        print(
            f"nearcast: the {self.name} ended with status {self.status}; it starts again in "
            f"{self._next - time.monotonic():.0f} s",
            file=sys.stderr,
            flush=True,
        )
        return True

    def ask_to_stop(self) -> None:
        """Have it end in good order."""
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)

    def join(self) -> None:
        """Wait for its end; after a while it is killed."""
        if self.process is None:
            return
        try:
            self.process.wait(self.stop_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None
        self._say("stopped")


def _die_with_parent() -> None:
    """In the new process: be told to end when the parent dies, however it does."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
