"""What an event log means: SPEC sections 1 to 4 and 6 in plain Python, for reading beside them.

No hashes, no arrays, no batches: keywords are text, one event is handled after the other, and a
result is a list. Slow, and meant to be.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from nearcast.model.errors import Invalid
from nearcast.model.events import Publish, Subscribe, Unsubscribe, order_class
from nearcast.model.predicate import matches
from nearcast.model.query import KnnQuery, RangeQuery
from nearcast.model.space import Space, distance
from nearcast.testing.reading import read_event

__all__ = ["Order", "Outcome", "replay"]

Order: TypeAlias = Literal["time", "arrival"]
"""A replayed log is handled by time, a live stream as it arrives (SPEC section 3)."""

_FOREVER = 2**62
_NEVER = -(2**62)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The notification log, and which positions of the event log were refused, and why."""

    notifications: list[dict[str, Any]]
    rejected: list[tuple[int, str]]


@dataclass(frozen=True, slots=True)
class _Held:
    """An object in a knn result, or next in line for one."""

    object: str
    time: int
    distance: float


@dataclass(slots=True)
class _Standing:
    """A subscription and what it holds."""

    event: Subscribe
    end: int
    held: list[_Held] = field(default_factory=list)
    """knn: by (distance, order of arrival), so that the first k are the result. With a window, all
    that are young enough; without, the first k only, because nothing behind them can move up."""

    def sees(self, time: int, until: int) -> bool:
        return self.event.time <= time and until < self.end

    def lives_at(self, moment: int) -> bool:
        return self.event.time <= moment < self.end

    @property
    def next_moment(self) -> int:
        """When the oldest object it holds is no longer younger than the window."""
        query = self.event.query
        if not isinstance(query, KnnQuery) or query.window is None or not self.held:
            return _FOREVER
        return min(held.time for held in self.held) + query.window


def replay(
    events: Iterable[dict[str, Any] | str],
    space: Space | str,
    order: Order = "time",
    lateness: int = _FOREVER,
) -> Outcome:
    """The notifications and rejects of a log of raw events (objects, or lines of JSON).

    `lateness` is how long an ended subscription waits for late objects of a live stream.
    """
    space = Space(space)
    valid: list[tuple[int, Publish | Subscribe | Unsubscribe]] = []
    rejected: list[tuple[int, str]] = []
    for position, raw in enumerate(events):
        try:
            event = read_event(raw, space)
        except Invalid as error:
            rejected.append((position, str(error)))
            continue
        if event is not None:
            valid.append((position, event))
    if order == "time":
        valid.sort(key=lambda entry: (entry[1].time, order_class(entry[1]), entry[0]))
    run = _Run(space, order, lateness)
    for _, event in valid:
        run.handle(event)
    run.pass_time(run.now)
    return Outcome(run.told, rejected)


class _Run:
    """The state of a replay."""

    def __init__(self, space: Space, order: Order, lateness: int) -> None:
        self.space = space
        self.lateness = lateness
        self.order = order
        self.now = _NEVER
        self.standing: list[_Standing] = []
        self.latest_of_id: dict[str, _Standing] = {}  # of all kinds: they share their ids
        self.told: list[dict[str, Any]] = []

    def handle(self, event: Publish | Subscribe | Unsubscribe) -> None:
        self.now = max(self.now, event.time)
        if isinstance(event, Publish):
            self.pass_time(self.now)
            for standing in self.standing:
                self._publish(standing, event)
            return
        old = self.latest_of_id.get(event.id)
        if old is not None:
            old.end = min(old.end, event.time)
        if isinstance(event, Subscribe):
            new = _Standing(event, _FOREVER if event.expires is None else event.expires)
            self.standing.append(new)
            self.latest_of_id[event.id] = new
        # By time, a further unsubscribe of this very instant may still come, and end what would
        # change at it. As they arrive, an instant has come when any event says so.
        self.pass_time(self.now if self.order == "arrival" else self.now - 1)

    # -- objects -----------------------------------------------------------------------------

    def _publish(self, standing: _Standing, o: Publish) -> None:
        query = standing.event.query
        assert isinstance(query, RangeQuery | KnnQuery)
        until = max(o.time, self.now - self.lateness)
        if not standing.sees(o.time, until) or not matches(self.space, query, o.x, o.y, o.keywords):
            return
        if isinstance(query, RangeQuery):
            self._tell(standing, "match", o.id, o.time)
        elif query.window is None or self.now - o.time < query.window:
            away = float(distance(self.space.code, query.x, query.y, o.x, o.y))
            self._offer(standing, query, _Held(o.id, o.time, away))

    def _offer(self, standing: _Standing, query: KnnQuery, new: _Held) -> None:
        held = standing.held
        rank = sum(other.distance <= new.distance for other in held)
        held.insert(rank, new)
        if rank < query.k:
            self._tell(standing, "enter", new.object, new.time, new.distance)
            if len(held) > query.k:
                self._tell(standing, "leave", held[query.k].object, new.time)
        if query.window is None:
            del held[query.k :]

    # -- the passing of time -----------------------------------------------------------------

    def pass_time(self, until: int) -> None:
        """Everything that the windows let go up to `until`, moment by moment."""
        while True:
            first = min(self.standing, key=lambda s: s.next_moment, default=None)
            if first is None or first.next_moment > until:
                return
            self._slide(first, first.next_moment)

    def _slide(self, standing: _Standing, moment: int) -> None:
        query = standing.event.query
        assert isinstance(query, KnnQuery)
        assert query.window is not None
        before = standing.held[: query.k]
        standing.held = [h for h in standing.held if moment - h.time < query.window]
        after = standing.held[: query.k]
        if not standing.lives_at(moment):
            return
        for held in before:
            if not any(held is other for other in after):
                self._tell(standing, "leave", held.object, moment)
        for held in after:
            if not any(held is other for other in before):
                self._tell(standing, "enter", held.object, moment, held.distance)

    def _tell(
        self, standing: _Standing, event: str, name: str, time: int, away: float | None = None
    ) -> None:
        told = {"id": standing.event.id, "event": event, "object": name, "time": time}
        if away is not None:
            told["distance"] = away
        if standing.event.owner is not None:
            told["owner"] = standing.event.owner
        if standing.event.meta is not None:
            told["meta"] = standing.event.meta
        self.told.append(told)
