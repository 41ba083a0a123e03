"""Reads the notifications of a live run as they become visible, and notes when."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

from nearcast.wire.told import Cursor, Told
from nearcast_bench.live.events import PROBE

_MINE = b'"id":"%s"' % PROBE.encode()


class Watcher:
    """From a thread: when each post reached the probe, which all posts match."""

    def __init__(self, out: Path) -> None:
        self._told = Told(out)
        self.seen: dict[str, float] = {}
        """By post: seconds of the monotonic clock."""
        self.batches = 0
        self.notifications = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        at, last = Cursor(0), -1
        while not self._done.is_set():
            visible = self._told.wait(last, 0.2)
            now = time.monotonic()  # before they are read: a reader of one subscription reads less
            if visible <= last:
                continue
            for cursor, line in self._told.read(at, visible):
                at = cursor
                self.notifications += 1
                if _MINE in line:
                    self.seen.setdefault(json.loads(line)["object"], now)
            self.batches += visible - last
            last = visible

    def wait_for(self, name: str, seconds: float) -> bool:
        """Wait until a post is there, at most so long; whether it is."""
        end = time.monotonic() + seconds
        while name not in self.seen and time.monotonic() < end:
            time.sleep(0.01)
        return name in self.seen

    def close(self) -> None:
        """Watch no more."""
        self._done.set()
        self._thread.join()
        self._told.close()
