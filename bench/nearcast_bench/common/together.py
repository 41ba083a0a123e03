"""Workers of an experiment as processes that all take the same step at once."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any


class Together:
    """Workers that answer through a pipe each, in their order."""

    def __init__(self, work: Callable[..., None], workers: int, args: Sequence[Any]) -> None:
        """Start `work(*args, worker, pipe)` for each worker, in a process of its own."""
        context = multiprocessing.get_context("spawn")
        self._pipes: list[Connection] = []
        self._processes = []
        for worker in range(workers):
            ours, theirs = context.Pipe()
            process = context.Process(target=work, args=(*args, worker, theirs), daemon=True)
            process.start()
            theirs.close()
            self._pipes.append(ours)
            self._processes.append(process)

    def answers(self) -> list[Any]:
        """What each sends next."""
        return [pipe.recv() for pipe in self._pipes]

    def step(self) -> tuple[float, list[Any]]:
        """Let all of them take the next step: (wall-clock seconds, what each answers)."""
        started = time.perf_counter()
        for pipe in self._pipes:
            pipe.send("go")
        answers = self.answers()
        return time.perf_counter() - started, answers

    def join(self) -> None:
        """Wait until they have ended."""
        for process in self._processes:
            process.join()
