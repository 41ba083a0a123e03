"""What checks are made of: hand-made events, and the comparison of two notification logs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any, TypeAlias

from nearcast.kinds import KINDS, Kind
from nearcast.model.space import Space
from nearcast.testing.logs import random_log
from nearcast.testing.oracle import Order, replay
from nearcast.testing.reading import read_time

__all__ = [
    "Notes",
    "all_kinds",
    "assert_same_story",
    "busy_log",
    "names_objects",
    "publish",
    "query_for",
    "subscribe",
    "unsubscribe",
    "wanted",
]

Notes: TypeAlias = list[dict[str, Any]]


def assert_same_story(got: Notes, right: Notes) -> None:
    """The same notifications, and for each subscription in the same order."""
    extra, missing = _counted(got) - _counted(right), _counted(right) - _counted(got)
    assert not extra, f"reported, but should not be: {list(extra.items())[:3]}"
    assert not missing, f"not reported: {list(missing.items())[:3]}"
    assert _by_id(got) == _by_id(right), "reported in another order"


def _counted(reported: Notes) -> Counter[str]:
    return Counter(repr(sorted(n.items())) for n in reported)


def _by_id(reported: Notes) -> dict[str, Notes]:
    stories: dict[str, Notes] = defaultdict(list)
    for n in reported:
        stories[n["id"]].append(n)
    return stories


def all_kinds(kind: Kind) -> Mapping[str, Kind]:
    """The registered kinds and this one, which may be another's."""
    return {**KINDS, kind.name: kind}


def wanted(log: list[Any], kind: Kind, space: Space, order: Order = "time") -> Notes:
    """What the oracle reports to subscriptions of one kind."""
    return replay(log, space, order, kinds=all_kinds(kind)).of(kind.name)


def names_objects(kind: Kind) -> bool:
    """Whether it reports each object that its subscriptions see, and no more.

    Otherwise only the oracle says what it reports.
    """
    return kind.window is None and not any(event.field for event in kind.events)


def query_for(kind: Kind, **fields: Any) -> dict[str, Any]:
    """A query that every object of the hand-made logs satisfies."""
    return {**kind.examples.everything, **fields}


def subscribe(name: str, time: int, query: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A subscription as an event."""
    return {"op": "subscribe", "id": name, "time": time, "query": query, **fields}


def unsubscribe(name: str, time: int) -> dict[str, Any]:
    """Its end as an event."""
    return {"op": "unsubscribe", "id": name, "time": time}


def publish(name: str, time: int, x: float = 0, y: float = 0, *words: str) -> dict[str, Any]:
    """An object as an event. Besides its words it has the keyword `any`."""
    keywords = [*words, "any"]
    return {"op": "publish", "id": name, "time": time, "at": [x, y], "keywords": keywords}


def busy_log(seed: int, space: Space, events: int, late: float, **options: Any) -> Notes:
    """A random log of that many events, some of which are subscriptions that many objects satisfy.

    Without them a short log may hold no result at all, and a check of it would prove nothing.
    """
    kinds: Mapping[str, Kind] = options.get("kinds", KINDS)
    queries = [
        (f"busy {name} {n}", query)
        for name, kind in kinds.items()
        for n, query in enumerate(kind.examples.busy(space))
    ]
    log = random_log(seed, space, events - len(queries), late, **options)
    start = min((read_time(event["time"]) for event in log), default=0) - 100
    return [subscribe(name, start, query) for name, query in queries] + log
