"""What checks are made of: hand-made events, and the comparison of two notification logs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any, TypeAlias

from nearcast.model.space import Space
from nearcast.testing.logs import random_log
from nearcast.testing.oracle import Order, replay

__all__ = [
    "Told",
    "assert_same_story",
    "busy_log",
    "of_kind",
    "publish",
    "query_for",
    "subscribe",
    "unsubscribe",
    "wanted",
]

Told: TypeAlias = list[dict[str, Any]]


def of_kind(told: Iterable[dict[str, Any]], kind: str) -> Told:
    """The notifications that subscriptions of one kind got."""
    return [n for n in told if (n["event"] == "match") == (kind == "range")]


def assert_same_story(got: Told, right: Told) -> None:
    """The same notifications, and for each subscription in the same order."""
    extra, missing = _counted(got) - _counted(right), _counted(right) - _counted(got)
    assert not extra, f"told, but should not be: {list(extra.items())[:3]}"
    assert not missing, f"not told: {list(missing.items())[:3]}"
    assert _by_id(got) == _by_id(right), "told in another order"


def _counted(told: Told) -> Counter[str]:
    return Counter(repr(sorted(n.items())) for n in told)


def _by_id(told: Told) -> dict[str, Told]:
    stories: dict[str, Told] = defaultdict(list)
    for n in told:
        stories[n["id"]].append(n)
    return stories


def wanted(log: list[Any], kind: str, space: Space, order: Order = "time") -> Told:
    """What the oracle says that subscriptions of one kind are told."""
    return of_kind(replay(log, space, order).notifications, kind)


def query_for(kind: str, **fields: Any) -> dict[str, Any]:
    """A query that every object of the hand-made logs satisfies."""
    if kind == "range":
        return {"kind": "range", "region": {"bbox": [-8, -8, 8, 8]}, **fields}
    return {"kind": "knn", "at": [0, 0], "k": 1000, **fields}


def subscribe(name: str, time: int, query: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A subscription as an event."""
    return {"op": "subscribe", "id": name, "time": time, "query": query, **fields}


def unsubscribe(name: str, time: int) -> dict[str, Any]:
    """Its end as an event."""
    return {"op": "unsubscribe", "id": name, "time": time}


def publish(name: str, time: int, x: float = 0, y: float = 0, *words: str) -> dict[str, Any]:
    """An object as an event."""
    return {"op": "publish", "id": name, "time": time, "at": [x, y], "keywords": list(words)}


def busy_log(seed: int, space: Space, events: int, late: float, **options: Any) -> Told:
    """A random log of that many events, some of which are subscriptions that many objects satisfy.

    Without them a short log may hold no result at all, and a check of it would prove nothing.
    """
    world: dict[str, Any] = {"bbox": [-180, -90, 180, 90]}
    giant: dict[str, Any] = {"bbox": [-1e300, -1e300, 1e300, 1e300]}
    region = world if space is Space.GEOGRAPHIC else giant
    nearest = {"kind": "knn", "at": [1, 1], "k": 2}
    first = [
        subscribe("all", -100, {"kind": "range", "region": region}),
        subscribe("many", -100, {"kind": "range", "region": region, "where": "a OR NOT b"}),
        subscribe("nearest", -100, nearest),
        subscribe("young", -100, {**nearest, "window": 12}),
        subscribe("some", -100, {**nearest, "window": 30, "where": "a OR NOT b"}),
    ]
    return first + random_log(seed, space, events - len(first), late, **options)
