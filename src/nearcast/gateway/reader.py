"""A reader of the objects that a run retains: asks answered beside the run, from its files.

What the run holds after a batch are immutable files (`wire.held`). The reader takes in what is new
of them, by rank, into a store of its own, so it always has the objects of all batches up to one,
and no others. An ask is then answered as the run would answer it right after that batch.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from nearcast.gateway.settings import Service
from nearcast.index.arena import Memory
from nearcast.model.errors import NearcastError
from nearcast.objects import DEFAULT, STORES
from nearcast.objects.base import STORED
from nearcast.objects.tables import read_table
from nearcast.wire.asks import AskBuilder
from nearcast.wire.formats import read_binary
from nearcast.wire.held import Held, read_held
from nearcast.wire.shapes import AskShape
from nearcast.wire.tables import from_bytes, join, numbers
from nearcast.wire.watching import Watch

__all__ = ["Answered", "Reader"]

_logger = logging.getLogger("nearcast.gateway")
_LOOK_S = 0.25
_TRIES = 20


class Answered(msgspec.Struct):
    """An answer, and of what it is one."""

    batch: int
    time: int
    body: bytes  # members of JSON: `"objects":[…]`, or the field of the kind


class Reader:
    """The objects of a run, as of its latest batch or a little before."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.kinds, self.space = service.of_kinds(), service.of_space()
        self.held: Held | None = None  # what the store has
        self._read: set[str] = set()  # files of it
        self._lock = threading.Lock()
        self._begin()
        self._stopped = False
        self._watch = Watch([service.folder])
        self._thread = threading.Thread(target=self._follow, name="reader", daemon=True)

    def _begin(self) -> None:
        self._store = STORES[DEFAULT](self.space, Memory())
        self.held, self._read = None, set()

    def start(self) -> None:
        """Begin to follow the run."""
        self._thread.start()

    def stop(self) -> None:
        """Follow no more."""
        self._stopped = True
        self._watch.wake()
        self._thread.join()
        self._watch.close()

    # -- following ---------------------------------------------------------------------------

    def _follow(self) -> None:
        while not self._stopped:
            try:
                self.catch_up()
            except (NearcastError, OSError) as error:
                _logger.error("objects cannot be read: %s", error)
                time.sleep(1.0)
            self._watch.wait(_LOOK_S)

    def catch_up(self) -> None:
        """Take in what the run has said since."""
        for _ in range(_TRIES):
            said = read_held(self.service.folder)
            known = self.held
            if said is None or (known and (said.run, said.batch) == (known.run, known.batch)):
                return
            if known and (said.run != known.run or said.batch < known.batch):
                with self._lock:  # another run, or one that was put back
                    self._begin()
            try:
                new = self._new_rows(said)
            except FileNotFoundError:  # a later batch has replaced it: see what that says
                continue
            with self._lock:
                self._take(said, new)
            return
        raise NearcastError(f"{self.service.folder}: files vanish while they are read")

    def _new_rows(self, said: Held) -> pa.RecordBatch:
        """The rows that the store has not, by rank."""
        after = self.held.ranked if self.held else 0
        tables = []
        for name in said.files:
            if name in self._read:
                continue
            path = self.service.folder / "checkpoint" / name
            table = from_bytes(read_binary(path, "objects"), STORED)
            rank = numbers(table["rank"])
            # Files are also written anew, of what older ones held.
            fresh = np.flatnonzero((rank >= after) & (rank < said.ranked))
            if len(fresh):
                tables.append(table if len(fresh) == len(rank) else table.take(pa.array(fresh)))
        new = join(tables, STORED)
        rank = numbers(new["rank"])
        if len(rank) > 1 and (np.diff(rank) < 0).any():
            new = new.take(pa.array(np.argsort(rank, kind="stable")))
        return new

    def _take(self, said: Held, new: pa.RecordBatch) -> None:
        if new.num_rows:
            self._store.add(*read_table(new))
        self._store.seal(said.now)
        self._store.expire(said.floor)
        self.held, self._read = said, set(said.files)

    # -- answering ---------------------------------------------------------------------------

    def answer(self, ask: AskShape[Any]) -> Answered | None:
        """Answer an ask as of the latest batch; None: it reaches back beyond what is held."""
        builder = AskBuilder(self.space, self.kinds, "")
        builder.add(ask, 0, 1, 0)
        ((name, table),) = builder.tables().items()
        answers = self.kinds[name].answers
        assert answers is not None
        with self._lock:
            held = self.held
            if held is None:
                return None
            after = int(numbers(table["end"])[0])
            if after < max(max(int(ask.time), held.now) - self.service.retain_ms, held.floor):
                return None
            before = np.array([held.ranked], np.int64)
            parts = answers.search(self._store, table, before, shards=1)
        body = answers.merge(table.to_pylist()[0], parts)
        return Answered(held.batch, int(ask.time), body)

    def beyond(self, ask: AskShape[Any]) -> str:
        """Why an ask cannot be answered, if it reaches back too far."""
        held = self.held
        first = held.floor + 1 if held else 0
        return (
            f"last: reaches back {ask.last:,} ms, and this service holds objects of the last "
            f"{self.service.retain_ms:,} ms, from {first} on (epoch milliseconds)"
        )
