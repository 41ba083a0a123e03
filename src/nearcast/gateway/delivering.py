"""Delivery to webhooks: one task each, from its own cursor, in order, until it is acknowledged.

Of several gateways one delivers: the one that holds the lock of the folder. A POST that is not
acknowledged is repeated with growing pauses, then kept as a dead letter, and the webhook goes on.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import random
import time

import msgspec

from nearcast.gateway.core import Gateway
from nearcast.gateway.hooks import DeadLetter, DeadLetters, Hooks, HookState
from nearcast.gateway.hub import Note
from nearcast.gateway.posting import MOST, Poster, Refused, as_body
from nearcast.wire.told import Cursor, read_visible

__all__ = ["Delivering", "Patience"]

_logger = logging.getLogger("nearcast.gateway")
_LOOK_S = 0.5
_NOTED_S = 30.0


class Patience(msgspec.Struct, frozen=True):
    """How long a POST is repeated: with full jitter, some 20 minutes in all."""

    tries: int = 12
    first_s: float = 1.0
    longest_s: float = 300.0

    def pause(self, failed: int) -> float:
        """Seconds before the next try, after so many."""
        return random.uniform(0.0, min(self.first_s * 2.0**failed, self.longest_s))


class Delivering:
    """The deliveries of one gateway, while it is the one."""

    def __init__(self, gateway: Gateway, patience: Patience | None = None) -> None:
        self.gateway, self.hooks = gateway, Hooks(gateway.registry)
        self.patience = patience or Patience()
        self._tasks: dict[tuple[str, str], tuple[bytes, asyncio.Task[None]]] = {}
        gateway.beside(self._deliver)

    async def _deliver(self) -> None:
        """Become the one that delivers, and keep a task for each webhook."""
        lock = os.open(self.gateway.service.folder / "webhooks.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except OSError:
                    await asyncio.sleep(_LOOK_S)
            while True:
                self._keep_tasks(await asyncio.to_thread(self.hooks.all))
                await asyncio.sleep(_LOOK_S)
        finally:
            for _, task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*(t for _, t in self._tasks.values()), return_exceptions=True)
            self._tasks.clear()
            os.close(lock)

    def _keep_tasks(self, states: list[HookState]) -> None:
        wanted = {(s.tenant, s.name): (msgspec.msgpack.encode(s.hook), s) for s in states}
        for key, (body, task) in list(self._tasks.items()):
            if key not in wanted or wanted[key][0] != body or task.done():
                task.cancel()
                del self._tasks[key]
        for key, (body, state) in wanted.items():
            if key not in self._tasks:
                self._tasks[key] = body, asyncio.create_task(self._run(state))

    async def _run(self, state: HookState) -> None:
        try:
            await self._follow(state)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # it is begun again at the next look
            _logger.error("webhook %s: %s: %s", state.name, type(error).__name__, error)

    async def _follow(self, state: HookState) -> None:
        hook, gateway = state.hook, self.gateway
        noted, noted_at = Cursor.read(state.cursor), time.monotonic()
        gateway.told.state(state.reader, noted)
        listener = gateway.hub.listen(hook.wanted, noted)
        async with Poster(hook.url, hook.secret, gateway.service.private_webhooks) as poster:
            async for notes in listener.batches(_NOTED_S):
                for n in range(0, len(notes), MOST):
                    await self._post(state, poster, notes[n : n + MOST])
                if listener.cursor > noted and not notes:
                    await asyncio.to_thread(self._move, state, listener.cursor, 0)
                if time.monotonic() - noted_at > _NOTED_S and listener.cursor > noted:
                    noted, noted_at = listener.cursor, time.monotonic()
                    await asyncio.to_thread(gateway.told.state, state.reader, noted)

    def _move(self, state: HookState, cursor: Cursor, failures: int, dead: int = 0) -> None:
        self.hooks.move(state.tenant, state.name, cursor, failures, dead)

    async def _post(self, state: HookState, poster: Poster, notes: list[Note]) -> None:
        """Post some until they are acknowledged, or given up."""
        visible = read_visible(self.gateway.service.folder)
        body = as_body(state.name, visible.run if visible else "", notes)
        counter = self.gateway.metrics.notifications
        before = Cursor(notes[0].cursor.batch, notes[0].cursor.shard, notes[0].cursor.line - 1)
        for failed in range(1, self.patience.tries + 1):
            try:
                await poster.post(body)
            except Refused as error:
                reason = str(error)
                counter.labels("webhook", "failed").inc(len(notes))
                await asyncio.to_thread(self._move, state, before, failed)
                if failed < self.patience.tries:
                    await asyncio.sleep(self.patience.pause(failed - 1))
            else:
                counter.labels("webhook", "delivered").inc(len(notes))
                self.gateway.observe_lag("webhook", notes[-1])
                await asyncio.to_thread(self._move, state, notes[-1].cursor, 0)
                return
        letter = DeadLetter(time.time_ns() // 1_000_000, reason, len(notes), msgspec.Raw(body))
        await asyncio.to_thread(DeadLetters(self.gateway.service.folder, state).add, letter)
        counter.labels("webhook", "dead").inc(len(notes))
        _logger.warning("webhook %s: gave up %d notifications: %s", state.name, len(notes), reason)
        await asyncio.to_thread(
            self._move, state, notes[-1].cursor, self.patience.tries, len(notes)
        )
