"""New notifications, handed to who listens: read once, dealt by subscription and owner.

A listener has a bounded queue. When it is full, the listener goes on from the log by itself, from
its cursor, until it has caught up; so nobody waits for anybody, and nobody misses a line.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from nearcast.gateway.metrics import Metrics
from nearcast.wire.told import Cursor, Told

__all__ = ["ASKED", "Hub", "Listener", "Note", "Wanted"]

ASKED = "nearcast:ask:"
"""Ids of asks that a gateway puts into the log begin with this; their answers are its own."""
_QUEUE = 1000  # notifications that wait for a client, at most
_PIECE = 2000  # lines that are handed over at a time
_FOUND = 500  # notifications that a listener takes from the log at a time
_LOOKED = 100_000  # lines that it looks at for them, at most
_WAIT_S = 0.25


class _Named(msgspec.Struct):
    id: str
    owner: str | None = None


_NAMED = msgspec.json.Decoder(_Named)


class Note(NamedTuple):
    """A line of the notification log."""

    cursor: Cursor
    line: bytes  # without the end of the line
    id: str
    owner: str | None


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a listener gets."""

    ids: frozenset[str] | None = None  # of subscriptions; None: all
    owner: str | None = None  # None: of all owners

    def __contains__(self, note: object) -> bool:
        """Whether it is among it."""
        assert isinstance(note, Note)
        if self.ids is not None and note.id not in self.ids:
            return False
        return self.owner is None or note.owner == self.owner


def _note(cursor: Cursor, line: bytes) -> Note:
    named = _NAMED.decode(line)
    return Note(cursor, line.rstrip(b"\n"), named.id, named.owner)


class Listener:
    """One client's view of the log: what it wants, and where it is."""

    def __init__(self, hub: Hub, wanted: Wanted, after: Cursor) -> None:
        self.hub, self.wanted, self.cursor = hub, wanted, after
        self.queue: deque[Note] = deque()
        self.attached = False
        self.woken = asyncio.Event()
        self.behind = 0  # how often its queue was full

    def offer(self, note: Note) -> None:
        """A new notification, from the hub."""
        if len(self.queue) >= _QUEUE:
            self.hub.detach(self)
            self.queue.clear()
            self.behind += 1
            self.hub.metrics.dropped.inc()
        else:
            self.queue.append(note)
        self.woken.set()

    async def batches(self, beat_s: float) -> AsyncIterator[list[Note]]:
        """What comes, some at a time; an empty list when nothing came for so many seconds.

        `cursor` is behind what was given.
        """
        self.hub.enter(self)
        try:
            while not self.hub.closed:
                if not self.attached:
                    notes, through = await asyncio.to_thread(
                        self.hub.look, self.cursor, self.wanted
                    )
                    self.cursor = through
                    if through.batch > self.hub.position and not self.hub.dealing:
                        self.hub.attach(self)
                    if notes:
                        yield notes
                elif self.queue:
                    notes = list(self.queue)
                    self.queue.clear()
                    self.cursor = notes[-1].cursor
                    yield notes
                else:
                    self.woken.clear()
                    try:
                        async with asyncio.timeout(beat_s):
                            await self.woken.wait()
                    except TimeoutError:
                        if not self.woken.is_set() and not self.hub.dealing:
                            self.cursor = max(self.cursor, self.hub.end)
                        yield []
        finally:
            self.hub.leave(self)


class Hub:
    """Reads the log as it grows, from a thread, and deals its lines in the event loop."""

    def __init__(self, told: Told, metrics: Metrics) -> None:
        self.told, self.metrics = told, metrics
        self.position = told.last()  # batches up to this one are dealt
        self.dealing = False  # lines of a later one are
        self.changed_at = time.time()
        self._all: set[Listener] = set()
        self._by_id: dict[str, set[Listener]] = {}
        self._by_owner: dict[str, set[Listener]] = {}
        self._asks: dict[str, Callable[[Note], None]] = {}
        self._listening: set[Listener] = set()
        self._stopped = self.closed = False
        self._thread = threading.Thread(target=self._follow, name="hub", daemon=True)
        self._dealt = threading.Semaphore(4)  # pieces that wait for the loop

    @property
    def end(self) -> Cursor:
        """The cursor behind everything that was dealt."""
        return Cursor(self.position + 1)

    def start(self) -> None:
        """Begin, from within the loop."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def stop(self) -> None:
        """Read no more."""
        self._stopped = True
        self._thread.join()

    def close(self) -> None:
        """End all streams, from within the loop; their clients come back to another gateway."""
        self.closed = True
        for listener in self._listening:
            listener.woken.set()

    def listen(self, wanted: Wanted, after: Cursor | None) -> Listener:
        """A listener from a cursor on; None: from now on."""
        found = Listener(self, wanted, self.end if after is None else after)
        if after is None and not self.dealing:
            self.attach(found)
        return found

    def expect(self, id_: str, then: Callable[[Note], None]) -> None:
        """Hand the answer of an ask of ours to someone."""
        self._asks[id_] = then

    def forget(self, id_: str) -> None:
        """Nobody waits for it any more."""
        self._asks.pop(id_, None)

    def enter(self, listener: Listener) -> None:
        """It is listened to."""
        self._listening.add(listener)

    def leave(self, listener: Listener) -> None:
        """It is no more."""
        self._listening.discard(listener)
        self.detach(listener)

    def attach(self, listener: Listener) -> None:
        """Deal to it what comes from now on."""
        listener.attached = True
        for among in self._places(listener):
            among.add(listener)

    def detach(self, listener: Listener) -> None:
        """Deal to it no more."""
        if listener.attached:
            listener.attached = False
            for among in self._places(listener):
                among.discard(listener)
            for id_ in listener.wanted.ids or ():
                if not self._by_id[id_]:
                    del self._by_id[id_]

    def _places(self, listener: Listener) -> Iterable[set[Listener]]:
        wanted = listener.wanted
        if wanted.ids is not None:
            return [self._by_id.setdefault(i, set()) for i in wanted.ids]
        if wanted.owner is not None:
            return [self._by_owner.setdefault(wanted.owner, set())]
        return [self._all]

    def look(self, after: Cursor, wanted: Wanted) -> tuple[list[Note], Cursor]:
        """Some of what someone wants behind a cursor, and up to where that was looked for."""
        found: list[Note] = []
        last = self.told.last()
        for n, (cursor, line) in enumerate(self.told.read(after, last), 1):
            note = _note(cursor, line)
            if note in wanted and not note.id.startswith(ASKED):
                found.append(note)
            if len(found) == _FOUND or n == _LOOKED:
                return found, cursor
        return found, max(after, Cursor(last + 1))

    def _follow(self) -> None:
        at = self.position
        while not self._stopped:
            last = self.told.wait(at, _WAIT_S)
            if last <= at:
                continue
            piece: list[Note] = []
            for cursor, line in self.told.read(Cursor(at + 1), last):
                piece.append(_note(cursor, line))
                if len(piece) == _PIECE:
                    self._hand_over(piece, None)
                    piece = []
            self._hand_over(piece, last)
            at = last

    def _hand_over(self, piece: list[Note], through: int | None) -> None:
        while not self._dealt.acquire(timeout=1.0):
            if self._stopped:
                return
        self._loop.call_soon_threadsafe(self._deal, piece, through)

    def _deal(self, piece: list[Note], through: int | None) -> None:
        self.dealing = through is None
        for note in piece:
            if note.id.startswith(ASKED):
                if note.id in self._asks:
                    self._asks.pop(note.id)(note)
                continue
            for among in (
                self._all,
                self._by_id.get(note.id, ()),
                self._by_owner.get(note.owner, ()) if note.owner is not None else (),
            ):
                for listener in list(among):
                    if listener.wanted.owner in (None, note.owner):
                        listener.offer(note)
        if through is not None:
            self.position = through
            self.changed_at = time.time()
        self._dealt.release()
