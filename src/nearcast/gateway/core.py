"""A gateway: the event log, the registry, the hub and who may do what, put together.

`start` and `stop` are the life of it; requests find everything here.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from nearcast.gateway.audit import Audit
from nearcast.gateway.hub import Hub, Note
from nearcast.gateway.inbox import Entry, Full, Inbox, Place
from nearcast.gateway.limits import Allowances
from nearcast.gateway.metrics import Metrics
from nearcast.gateway.problems import Problem
from nearcast.gateway.reader import Reader
from nearcast.gateway.registering import Registering
from nearcast.gateway.registry import Registry
from nearcast.gateway.results import Results
from nearcast.gateway.settings import Service
from nearcast.gateway.tokens import ANYONE, Client, Tokens
from nearcast.wire.arriving import Arrival
from nearcast.wire.told import Cursor, Told

__all__ = ["ENGINE", "EngineState", "Gateway", "now_ms"]

ENGINE = "engine.json"
_logger = logging.getLogger("nearcast.gateway")
_PRUNE_S = 60.0
_LOOK_S = 1.0
_SHORT_S = 0.25  # how long the end may have to wait for a look


class _Time(msgspec.Struct):
    time: int


_TIME = msgspec.json.Decoder(_Time)


class EngineState(msgspec.Struct, frozen=True):
    """What the file `engine.json` says, which whoever runs the engine writes."""

    state: str = "unknown"  # starting, running, down
    since: int = 0  # epoch milliseconds
    restarts: int = 0


def now_ms() -> int:
    """The time by which events arrive."""
    return time.time_ns() // 1_000_000


class Gateway:
    """One gateway of a data folder."""

    def __init__(self, service: Service) -> None:
        self.service = service
        folder = service.folder
        self.kinds = service.of_kinds()
        self.arrival = Arrival(service.of_space(), self.kinds)
        self.metrics = Metrics()
        self.told = Told(folder)
        self.registry = Registry(folder)
        self.registering = Registering(self.registry, service.inbox)
        self.results = Results(self.registry, self.registering, Told(folder), self.kinds)
        # By a fitted table only the run itself can score.
        self.reader = Reader(service) if service.retain_ms and not service.fitted else None
        self.tokens = Tokens(Path(service.tokens), service.limits) if service.tokens else None
        self._anyone = msgspec.structs.replace(ANYONE, limits=service.limits)
        self.allowances = Allowances(self.registry)
        self.audit = Audit(folder / "audit")
        self.secret = _secret(folder / "gateway.secret")
        self.engine = EngineState()
        self.oldest_waiting = 0.0  # since when an event waits for a batch; 0: none does
        self._newest_waiting = 0.0
        self._tasks: list[asyncio.Task[None]] = []
        self._more: list[Callable[[], Awaitable[None]]] = []
        self.stopping = asyncio.Event()

    def beside(self, work: Callable[[], Awaitable[None]]) -> None:
        """Have something run as long as the gateway does."""
        self._more.append(work)

    async def start(self) -> None:
        """Begin to write, read and deliver."""
        service = self.service
        await asyncio.to_thread(self.registering.catch_up)
        self.inbox = Inbox(service.inbox, service.name, self._written, service.segment_bytes)
        self.hub = Hub(self.told, self.metrics)
        self.hub.start()
        if self.reader is not None:
            self.reader.start()
        for work in (self._look, self._fold, self._prune, *self._more):
            self._tasks.append(asyncio.create_task(self._for_ever(work)))

    async def stop(self) -> None:
        """Write what waits, and stop."""
        self.stopping.set()
        self.hub.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self.hub.stop)
        if self.reader is not None:
            await asyncio.to_thread(self.reader.stop)
        await asyncio.to_thread(self.inbox.stop)
        self.registry.close()
        self.audit.close()

    async def _for_ever(self, work: Callable[[], Awaitable[None]]) -> None:
        while not self.stopping.is_set():
            try:
                await work()
            except asyncio.CancelledError:
                raise
            except Exception as error:
                _logger.error("%s: %s", type(error).__name__, error)
                await asyncio.sleep(1.0)

    # -- who ---------------------------------------------------------------------------------

    def client(self, authorization: str | None) -> Client:
        """Who makes a request."""
        if self.tokens is None:
            return self._anyone
        return self.tokens.client(authorization)

    # -- what goes into the log --------------------------------------------------------------

    def _written(self, group: Sequence[Entry], place: Place) -> None:
        self.registering.note(group, place)

    async def append(self, entry: Entry) -> Place:
        """Have whole lines in the event log, on the disk; raises a problem if that fails."""
        try:
            place = await asyncio.wrap_future(self.inbox.append(entry))
        except Full as error:
            if error.for_good:
                raise Problem(507, f"nothing was taken: {error}; make room, then repeat") from None
            wait = {"Retry-After": "1"}
            raise Problem(503, f"nothing was taken: {error}; repeat later", wait) from None
        self._newest_waiting = time.time()
        self.oldest_waiting = self.oldest_waiting or self._newest_waiting
        return place

    # -- what goes on ------------------------------------------------------------------------

    @property
    def waiting_s(self) -> float:
        """For how long the oldest event waits that no batch has brought to light."""
        changed = self.hub.changed_at
        if self.oldest_waiting and self.oldest_waiting < changed:
            later = self._newest_waiting > changed
            self.oldest_waiting = changed if later else 0.0
        return time.time() - self.oldest_waiting if self.oldest_waiting else 0.0

    def as_of(self) -> dict[str, Any]:
        """The state of the log that answers are made from."""
        return {
            "batch": self.hub.position,
            "time": int(self.hub.changed_at * 1000),
            "engine": self.engine.state,
        }

    def observe_lag(self, channel: str, note: Note) -> None:
        """Note how long a notification took from its time to its delivery."""
        lag = time.time() - _TIME.decode(note.line).time / 1000
        self.metrics.lag.labels(channel).observe(max(lag, 0.0))

    async def _look(self) -> None:
        """Keep the figures and the state of the engine up to date."""
        try:
            data = (self.service.folder / ENGINE).read_bytes()
            self.engine = msgspec.json.decode(data, type=EngineState)
        except (OSError, msgspec.DecodeError):
            self.engine = EngineState()
        self.metrics.batch.set(self.hub.position)
        self.metrics.waiting.set(self.waiting_s)
        self.metrics.engine.set(self.engine.state in ("running", "unknown"))
        await asyncio.sleep(_LOOK_S)

    async def _fold(self) -> None:
        """Keep present results up to date."""
        through: Cursor = await asyncio.to_thread(self.results.fold)
        await asyncio.to_thread(self.results.told.wait, through.batch - 1, _SHORT_S)

    async def _prune(self) -> None:
        """Remove what nobody needs any more."""
        await asyncio.sleep(_PRUNE_S)
        await asyncio.to_thread(self.registering.prune, self.service.folder, self.inbox.current)
        await asyncio.to_thread(self.registering.sweep, now_ms())


def _secret(path: Path) -> bytes:
    """The secret of a data folder, made when it is first needed; all its gateways share it."""
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(file, secrets.token_bytes(32))
        os.close(file)
    except FileExistsError:
        pass
    for _ in range(100):
        if len(found := path.read_bytes()) == 32:
            return found
        time.sleep(0.01)  # another gateway is making it
    raise Problem(500, f"{path}: is no secret; remove it and start again")
