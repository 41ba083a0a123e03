"""The paced writer: appends the city's events to a log while it is being tailed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from nearcast.demo.city import City
from nearcast.demo.talk import question, watchers

_TICK_S = 0.5
_MOST_AT_ONCE_S = 2.0
_LINES = msgspec.json.Encoder()


class Writer:
    """Writes `rate` posts for every second that passes, and `churn` comings and goings.

    It keeps at most two pieces of the log before the reader: one in work, one waiting. On a
    machine that cannot keep up the city falls silent for a moment instead of the screen showing
    the past. `processed` says how many events the reader has worked off.
    """

    def __init__(
        self, city: City, path: Path, processed: Callable[[], int], *, rate: int, churn: int
    ) -> None:
        self.city, self.path = city, path
        self.rate, self.churn = rate, churn
        self.written = 0
        self.error: BaseException | None = None
        self._processed = processed
        self._ends: list[int] = []  # events written up to the end of each piece that waits
        self._now_ms = self._began_ms = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._keep_writing, daemon=True)

    def open(self, now_ms: int, subscriptions: int) -> None:
        """Write the subscriptions that stand before the first post, and those to districts."""
        self._now_ms = now_ms
        self._began_ms = now_ms
        self._append([*self.city.opening(now_ms, subscriptions), *watchers(now_ms)])

    def tick(self, now_ms: int) -> int:
        """Write what happened since the last time; how many events that was, 0 if none may be."""
        done = self._processed()
        self._ends = [end for end in self._ends if end > done]
        span_ms = now_ms - self._now_ms
        if len(self._ends) > 1 or span_ms <= 0:
            return 0
        seconds = min(span_ms / 1000.0, _MOST_AT_ONCE_S)
        after_ms = now_ms - int(seconds * 1000)
        posts, churn = round(self.rate * seconds), round(self.churn * seconds)
        events = self.city.moment(after_ms, now_ms, posts, churn)
        self._now_ms = now_ms
        self._append(events)
        return len(events)

    def start(self) -> None:
        """Begin to post, from now on."""
        self._began = time.monotonic()
        # Waiting for the first batch took a while in which nobody posted.
        self._now_ms = max(self._now_ms, int(time.time() * 1000))
        self._thread.start()

    def ask(self) -> None:
        """Write the question about the past, when nothing else will be written."""
        self._append([question(self._now_ms, self._began_ms)])

    def stop(self) -> None:
        """Stop; when this returns, nothing more is written."""
        self._done.set()
        if self._thread.is_alive():
            self._thread.join()

    def _keep_writing(self) -> None:
        try:
            # Wall time at the start, then a clock that cannot be set back.
            start_ms = self._now_ms
            while not self._done.wait(_TICK_S):
                self.tick(start_ms + int((time.monotonic() - self._began) * 1000))
        except Exception as error:  # raised by whoever waits for the writer
            self.error = error

    def _append(self, events: list[dict[str, object]]) -> None:
        if not events:
            return
        # In one call, so that the reader rarely sees half a piece.
        with self.path.open("ab", buffering=0) as file:
            file.write(_LINES.encode_lines(events))
        self.written += len(events)
        self._ends.append(self.written)
