"""Examples of `knn` queries: for tests of everything that takes this kind, and the warm-up."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from nearcast.kinds.base import Examples, Places, Story
from nearcast.model.space import Space

__all__ = ["EXAMPLES"]

Json = dict[str, Any]
# Steps of the clock of random logs and sums of a few, so that ends fall on times of objects; and
# no end at all.
_WINDOWS = (1, 2, 3, 4, 5, 10, 11, 13, 20, 40, 2**60)


def _knn(at: list[float], k: int, **fields: Any) -> Json:
    return {"kind": "knn", "at": at, "k": k, **fields}


def _draw(rng: Random, places: Places) -> Json:
    query = _knn(places.at(rng), rng.choice((1, 1, 2, 3, 10, 2**40)))
    if rng.random() < 0.6:
        query["window"] = rng.choice(_WINDOWS)
    return query


def _busy(_: Space) -> list[Json]:
    nearest = _knn([1, 1], 2)
    return [
        nearest,
        {**nearest, "window": 12},
        {**nearest, "window": 30, "where": "a OR NOT b"},
    ]


def _publish(name: str, time: int, x: float, y: float) -> Json:
    return {"op": "publish", "id": name, "time": time, "at": [x, y]}


def _subscribe(name: str, k: int, **fields: Any) -> Json:
    window = {"window": fields.pop("window")} if "window" in fields else {}
    return {"op": "subscribe", "id": name, "time": 0, "query": _knn([0, 0], k, **window), **fields}


def _first_stays(seed: int) -> Iterator[Story]:
    """A tie changes nothing; something nearer enters before the last of the result leaves."""
    places = [(3, 4), (4, 3), (-5, 0), (0, 5)]
    Random(seed).shuffle(places)
    log = [_subscribe("s", 2)]
    log += [_publish(f"o{n}", n, *at) for n, at in enumerate(places)]
    log += [_publish("near", 9, 1, 1)]
    reported = [
        ("s", "enter", "o0", 0),
        ("s", "enter", "o1", 1),
        ("s", "enter", "near", 9),
        ("s", "leave", "o1", 9),
    ]
    yield Story("first stays at equal distance", log, reported, cuts=((), range(len(log))))


def _windows_let_go(seed: int) -> Iterator[Story]:
    """At `time + window` an object leaves and the next moves up, before what is published then."""
    objects = [
        _publish("near", 0, 1, 0),
        _publish("far", 4, 2, seed % 7),
        _publish("at the moment", 10, 0, 0),
        _publish("later", 30, 5, 5),
    ]
    reported = [
        ("s", "enter", "near", 0),
        ("s", "leave", "near", 10),
        ("s", "enter", "far", 10),
        ("s", "enter", "at the moment", 10),
        ("s", "leave", "far", 10),
        ("s", "leave", "at the moment", 20),
        ("s", "enter", "later", 30),
    ]
    log = [_subscribe("s", 1, window=10), *objects]
    cuts = ((), (4,), range(len(log)))
    yield Story("windows let go at their moment", log, reported, cuts=cuts)
    ended = [_subscribe("ends", 1, window=10, expires=10), *objects]
    yield Story("nothing leaves after the end", ended, [("ends", "enter", "near", 0)], cuts=cuts)


def _moments_pass(seed: int) -> Iterator[Story]:
    """Any event moves time on, and so does the end of the log."""
    log = [
        _subscribe("s", 1, window=5),
        _publish("o", 0, seed % 7, 0),
        {"op": "unsubscribe", "id": "unknown", "time": 5},
    ]
    reported = [("s", "enter", "o", 0), ("s", "leave", "o", 5)]
    yield Story("moments pass without objects", log, reported, cuts=((), (1,), (2,)))


def _stories(seed: int) -> Iterator[Story]:
    yield from _first_stays(seed)
    yield from _windows_let_go(seed)
    yield from _moments_pass(seed)


_ONE = _knn([0, 0], 1)
_ALL = _knn([0, 0], 1000)
EXAMPLES = Examples(
    everything=_ALL,
    draw=_draw,
    warm=({**_ONE, "window": 5, "where": "a"},),
    busy=_busy,
    bad=(
        (_ONE, "at", [None, [0], [0, "1"]]),
        (_ONE, "k", [None, 0, -1, 1.0, True, "1", 2**61]),
        (_ONE, "window", [0, -5, 1.5, False, "1s"]),
    ),
    fresh={"k": 1},
    many=tuple(_knn([0, 0], 40, window=5 + n) for n in range(20)),
    stories=_stories,
)
