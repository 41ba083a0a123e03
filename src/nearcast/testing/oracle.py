"""What an event log means: SPEC sections 1 to 6 in plain Python, for reading beside them.

No hashes, no arrays, no batches: keywords are text, one event is handled after the other, and a
result is a list. Slow, and meant to be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from nearcast.kinds import KINDS, Kind
from nearcast.model.errors import Invalid
from nearcast.model.events import Ask, Event, Publish, Subscribe, order_class
from nearcast.model.frame import Frame, Window
from nearcast.model.space import Space
from nearcast.model.standing import FOREVER, Change, Seen, Standing
from nearcast.testing.reading import read_event

__all__ = ["Order", "Outcome", "replay"]

Order: TypeAlias = Literal["time", "arrival"]
"""A replayed log is handled by time, a live stream as it arrives (SPEC section 3)."""

_NEVER = -(2**62)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The notification log, and which positions of the event log were refused, and why."""

    notifications: list[dict[str, Any]]
    rejected: list[tuple[int, str]]
    kinds: list[str]
    """The kind of the subscription of each notification."""

    def of(self, kind: str) -> list[dict[str, Any]]:
        """What is reported to subscriptions of one kind."""
        return [n for n, k in zip(self.notifications, self.kinds, strict=True) if k == kind]


@dataclass(slots=True)
class _Subscription:
    """A subscription, what it holds (`model.standing`), and when it ends."""

    event: Subscribe
    kind: Kind
    standing: Standing
    end: int

    def sees(self, time: int, until: int) -> bool:
        if self.kind.window is not None:  # of the run: what came before counts too
            return self.event.time < self.end and until < self.end
        return self.event.time <= time and until < self.end

    def lives_at(self, moment: int) -> bool:
        return self.event.time <= moment < self.end

    def next_moment(self) -> int:
        """Of a kind whose moments come after objects: only while it lives."""
        moment = self.standing.next_moment()
        return FOREVER if self.kind.after_objects and moment >= self.end else moment


def replay(
    events: Iterable[dict[str, Any] | str],
    space: Space | str,
    order: Order = "time",
    lateness: int = FOREVER,
    kinds: Mapping[str, Kind] = KINDS,
    retain: int = FOREVER,
    frame: Frame | None = None,
) -> Outcome:
    """The notifications and rejects of a log of raw events (objects, or lines of JSON).

    `lateness` is how long an ended subscription waits for late objects of a live stream, `retain`
    how far back asks and `last` may reach, `frame` what the run says to its kinds (None: they are
    as they are).
    """
    space = Space(space)
    if frame is not None:
        kinds = {name: kind.of_run(frame) for name, kind in kinds.items()}
    valid: list[tuple[int, Event]] = []
    rejected: list[tuple[int, str]] = []
    for position, raw in enumerate(events):
        try:
            event = read_event(raw, space, kinds)
        except Invalid as error:
            rejected.append((position, str(error)))
            continue
        if event is not None:
            valid.append((position, event))
    if order == "time":
        valid.sort(key=lambda entry: (entry[1].time, order_class(entry[1]), entry[0]))
    run = _Run(order, lateness, retain)
    for position, event in valid:
        try:
            run.handle(event)
        except Invalid as error:
            rejected.append((position, str(error)))
    run.end()
    return Outcome(run.reported, sorted(rejected), run.kinds)


class _Run:
    """The state of a replay."""

    def __init__(self, order: Order, lateness: int, retain: int) -> None:
        self.lateness, self.retain = lateness, retain
        self.past: list[tuple[Seen, Publish]] = []
        self.order = order
        self.now = _NEVER
        self.published = 0
        self.subscriptions: list[_Subscription] = []
        self.latest_of_id: dict[str, _Subscription] = {}  # of all kinds: they share their ids
        self.reported: list[dict[str, Any]] = []
        self.kinds: list[str] = []

    def handle(self, event: Event) -> None:
        self.now = max(self.now, event.time)
        if isinstance(event, Ask):
            self.pass_time(self.now if self.order == "arrival" else self.now - 1)
            self._answer(event)
            return
        if isinstance(event, Publish):
            self.pass_time(self.now)
            self._publish(event)
            return
        if isinstance(event, Subscribe) and event.last is not None:
            self._check_reach(event.time - event.last)
        old = self.latest_of_id.get(event.id)
        if old is not None:
            old.end = min(old.end, event.time)
        if isinstance(event, Subscribe):
            self.pass_time(self.now - 1)
            self._subscribe(event)
        # By time, a further unsubscribe of this very instant may still come, and end what would
        # change at it. As they arrive, an instant has come when any event says so.
        self.pass_time(self.now if self.order == "arrival" else self.now - 1)

    def _subscribe(self, event: Subscribe) -> None:
        kind, standing = event.query
        standing.starts(event.time)
        end = FOREVER if event.expires is None else event.expires
        new = _Subscription(event, kind, standing, end)
        self.subscriptions.append(new)
        self.latest_of_id[event.id] = new
        if end <= event.time:
            return
        if kind.window is not None:
            seen = [o for o, _ in self.past if self._in_window(o, kind.window) and o.time < end]
        elif event.last is not None:
            seen = [o for o, _ in self.past if event.time - event.last < o.time < end]
        else:
            return
        for change in standing.begin([o for o in seen if standing.matches(o)], event.time):
            self._report(new, change)

    def _in_window(self, o: Seen, window: Window) -> bool:
        return window.holds(o.time, o.rank, self.now, self.published)

    def _check_reach(self, after: int) -> None:
        """Refuse what looks back further than objects are retained (SPEC section 5)."""
        if after < self.now - self.retain:
            raise Invalid(f"last: reaches back further than {self.retain} ms")

    def _publish(self, o: Publish) -> None:
        seen = Seen(o.id, o.time, o.x, o.y, o.keywords, self.now, self.published)
        self.published += 1
        self.past.append((seen, o))
        until = max(o.time, self.now - self.lateness)
        for subscription in self.subscriptions:
            if subscription.kind.window is not None:
                for change in list(subscription.standing.push(seen)):
                    if subscription.sees(o.time, until):
                        self._report(subscription, change)
            if subscription.sees(o.time, until) and subscription.standing.matches(seen):
                for change in subscription.standing.offer(seen):
                    self._report(subscription, change)

    def _answer(self, ask: Ask) -> None:
        """SPEC section 5."""
        kind, standing = ask.query
        after = ask.time - ask.last
        self._check_reach(after)
        seen = [o for o, _ in self.past if after < o.time <= ask.time and standing.matches(o)]
        published = {id(o): event for o, event in self.past}
        field = kind.answers.field if kind.answers is not None else ""
        found: Any = []
        if field != "objects":
            found = standing.summary(seen, ask.limit)
        else:
            for o, value in standing.answer(seen, ask.limit):
                entry = {"id": o.name} if value is None else {"id": o.name, kind.value: value}
                shown = published[id(o)].fields
                found.append(entry | {n: shown[n] for n in ask.fields if n in shown})
        self.reported.append({"id": ask.id, "event": "answer", "time": ask.time, field: found})
        self.kinds.append(kind.name)

    def pass_time(self, until: int, ended: bool = False) -> None:
        """Everything that time alone changes up to `until`, moment by moment.

        Moments that come after the objects of their time have passed when time is greater, or when
        a replay has `ended`.
        """
        while True:
            due = [
                (moment, s.kind.after_objects, n)
                for n, s in enumerate(self.subscriptions)
                if (moment := s.next_moment()) <= self._passed(s, until, ended)
            ]
            if not due:
                return
            moment, _, n = min(due)
            first = self.subscriptions[n]
            for change in list(first.standing.pass_moment(moment)):
                if first.lives_at(moment):
                    self._report(first, change)

    def _passed(self, subscription: _Subscription, until: int, ended: bool) -> int:
        return self.now - (not ended) if subscription.kind.after_objects else until

    def end(self) -> None:
        """The log is over; a live stream never is."""
        self.pass_time(self.now, ended=self.order == "time")

    def _report(self, subscription: _Subscription, change: Change) -> None:
        event = subscription.event
        fields = {e.name: e.field for e in subscription.kind.events}
        notification = {
            "id": event.id,
            "event": change.event,
            fields[change.event] or "object": change.object,
            "time": change.time,
        }
        if change.value is not None:
            notification[subscription.kind.value] = change.value
        if event.owner is not None:
            notification["owner"] = event.owner
        if event.meta is not None:
            notification["meta"] = event.meta
        self.reported.append(notification)
        self.kinds.append(subscription.kind.name)
