"""What one token may do at most: events per second, subscriptions, open streams."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from nearcast.gateway.problems import Problem
from nearcast.gateway.registry import Registry
from nearcast.gateway.tokens import Client

__all__ = ["Allowances"]

_BURST_S = 2.0
_SURE_S = 5.0


class Allowances:
    """What each client has used."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self._open: Counter[str] = Counter()
        self._left: dict[str, tuple[float, float]] = {}  # events, as of when
        self._owned: dict[str | None, tuple[int, float]] = {}

    def events(self, client: Client, count: int) -> None:
        """Take so many events off what a client may send; raises 429."""
        rate = client.limits.events_per_second
        if not rate:
            return
        now = time.monotonic()
        left, then = self._left.get(client.name, (rate * _BURST_S, now))
        left = min(left + (now - then) * rate, rate * _BURST_S)
        if left <= 0:
            wait = max(-left / rate, 1.0)
            raise Problem(
                429,
                f"more than {rate} events per second; repeat in {wait:.0f} s",
                {"Retry-After": f"{wait:.0f}"},
            )
        # A large request is taken as a whole, and waited for afterwards.
        self._left[client.name] = left - count, now

    def subscriptions(self, client: Client, more: int) -> None:
        """Note that a client subscribes to `more`; raises 429 beyond its limit."""
        now = time.monotonic()
        count, then = self._owned.get(client.owner, (0, -_SURE_S))
        if now - then >= _SURE_S:
            count, then = self.registry.owned(client.owner), now
        if count + more > client.limits.subscriptions:
            raise Problem(
                429,
                f"no more than {client.limits.subscriptions:,} subscriptions; remove some first",
            )
        self._owned[client.owner] = count + more, then

    def room(self, client: Client) -> None:
        """Refuse another open stream of a client beyond its limit, with 429."""
        if self._open[client.name] >= client.limits.connections:
            most = client.limits.connections
            raise Problem(429, f"no more than {most:,} open streams; close some first")

    @contextmanager
    def connection(self, client: Client) -> Iterator[None]:
        """An open stream of a client."""
        self._open[client.name] += 1
        try:
            yield
        finally:
            self._open[client.name] -= 1
