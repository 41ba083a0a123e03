"""A query that goes on: it is started again from its checkpoint when its executors died."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from nearcast.engine.spark.query import RunFailed, explained, lost_executor, stop

RESTARTS = 5  # of a query, without a batch done between them
_logger = logging.getLogger("nearcast.run")


class RestartingQuery:
    """A query that outlives its executors.

    Spark repeats tasks, and stages whose output was on a lost executor, but gives a query up after
    some of these. All that a run needs is in the checkpoint, so a new query goes on from there.
    It is started by those who wait for the query, and by a thread once `watch` was called; and
    only as long as batches get done.
    """

    def __init__(
        self,
        start: Callable[[], StreamingQuery],
        done: Callable[[], int],
        restarts: int = RESTARTS,
    ) -> None:
        """`start` starts the query; `done` counts the batches that are done."""
        self._start, self._count, self._restarts = start, done, restarts
        self._left, self._done = restarts, done()
        self._lock = threading.Lock()
        self._stopped = False
        self.now = start()  # the query that runs now

    def watch(self) -> None:
        """Go on also while nobody waits for the query."""
        if self._restarts:
            threading.Thread(target=self._go_on, name="nearcast-restarts", daemon=True).start()

    def _go_on(self) -> None:
        """Wait for the end of the query; whoever looks at it next learns why it ended."""
        try:
            self.wait()
        except RunFailed as error:
            _logger.error("the run ended: %s", error)

    def finish(self) -> None:
        """Wait until everything that has arrived is processed; what went wrong, in plain words."""
        while True:
            query = self.now
            try:
                query.processAllAvailable()
                error = query.exception()
            except StreamingQueryException as caught:
                error = caught
            if error is None:
                return
            self._restart(query, error)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the query ends for good (True) or so many seconds have passed (False)."""
        end = None if seconds is None else time.monotonic() + seconds
        while True:
            query = self.now
            try:
                if end is None:
                    query.awaitTermination()
                    return True
                left = max(end - time.monotonic(), 0.001)
                return bool(query.awaitTermination(left))  # type: ignore[arg-type]
            except StreamingQueryException as error:
                self._restart(query, error)

    def stop(self) -> None:
        """Stop the query, if it still runs, for good."""
        with self._lock:
            self._stopped = True
            stop(self.now)

    def _restart(self, failed: StreamingQuery, error: StreamingQueryException) -> None:
        """Start the query again after `failed`, or raise what went wrong."""
        with self._lock:
            if self.now is not failed:  # another thread was here first
                return
            if self._stopped or not lost_executor(error):
                raise explained(error) from error
            done = self._count()
            self._left = self._restarts if done > self._done else self._left
            self._done = done
            if self._left == 0:
                raise explained(error) from error
            self._left -= 1
            _logger.warning("executors were lost (%s); the run goes on", explained(error))
            self.now = self._start()
