"""Examples of `terms` queries: for tests of everything that takes this kind, and the warm-up."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from nearcast.kinds.base import Examples, Places, Story
from nearcast.model.space import Space

__all__ = ["EXAMPLES"]

Json = dict[str, Any]
# Steps of the clock of random logs and sums of a few, so that moments fall on times of events.
_WINDOWS = (1, 2, 3, 4, 10, 13, 40, 2**60)
_STEPS = (1, 2, 3, 5, 10, 13, 40, 2**60)
_WORDS = ("a", " B ", "Ａ", "hot dog", "straße", "9", "", "unknown")
_HERE = {"bbox": [-8.0, -8.0, 8.0, 8.0]}


def _terms(region: Json, k: int, window: int, every: int, **fields: Any) -> Json:
    return {
        "kind": "terms", "region": region, "k": k, "window": window, "every": every, **fields,
    }  # fmt: skip


def _draw(rng: Random, places: Places) -> Json:
    query = _terms(
        places.region(rng),
        rng.choice((1, 1, 2, 3, 10, 2**40)),
        rng.choice(_WINDOWS),
        rng.choice(_STEPS),
    )
    if rng.random() < 0.4:
        query["exclude"] = [rng.choice(_WORDS) for _ in range(rng.randint(0, 3))]
    return query


def _busy(space: Space) -> list[Json]:
    world = [-180.0, -90.0, 180.0, 90.0]
    if space is Space.PLANAR:
        world = [-1e300, -1e300, 1e300, 1e300]
    region: Json = {"bbox": world}
    return [
        _terms(region, 2, 12, 5),
        _terms(region, 100, 2**60, 30, where="a OR NOT b"),
        _terms(region, 3, 40, 10, exclude=["a"]),
    ]


def _publish(name: str, time: int, *words: str, at: tuple[float, float] = (0, 0)) -> Json:
    return {"op": "publish", "id": name, "time": time, "at": list(at), "keywords": list(words)}


def _subscribe(name: str, time: int, query: Json, **fields: Any) -> Json:
    return {"op": "subscribe", "id": name, "time": time, "query": query, **fields}


def _after_the_objects_of_its_time(seed: int) -> Iterator[Story]:
    """A moment counts the objects of its time, and those that are too old no more."""
    log = [
        _subscribe("s", 0, _terms(_HERE, 2, 10, 10)),
        _publish("o0", 0, "old"),
        _publish("o1", 10, "b", "a"),
        _publish("o2", 10, "b"),
        _publish("far", 10, "b", at=(9 + seed % 5, 0)),
        _publish("o3", 11, "c"),
        _publish("o4", 20, "C ", "c"),
    ]
    reported = [("s", "terms", [["b", 2], ["a", 1]], 10), ("s", "terms", [["c", 2]], 20)]
    yield Story("after the objects of its time", log, reported, cuts=((), (3,), range(len(log))))


def _silence(seed: int) -> Iterator[Story]:
    """Moments come also where nothing was published, while time goes on, and with empty lists."""
    log = [
        _subscribe("s", 0, _terms(_HERE, 3, 4, 2, exclude=["X", ""])),
        _publish("o", 1, "x", "y"),
        {"op": "unsubscribe", "id": "unknown", "time": 8},
    ]
    reported: list[tuple[str, str, Any, int]] = [
        ("s", "terms", [["y", 1]], 2),
        ("s", "terms", [["y", 1]], 4),
        ("s", "terms", [], 6),
        ("s", "terms", [], 8),
    ]
    yield Story("silence is reported", log, reported, cuts=((), (1,), (2,), range(3)))
    ended = [
        *log[:2],
        {"op": "unsubscribe", "id": "s", "time": 4 + seed % 3},
        _publish("later", 99, "z"),
    ]
    last = 1 + (seed % 3 > 0)  # a moment at the end is none, one just before it is
    yield Story("no moment at the end", ended, reported[:last], cuts=((), (2,), range(4)))


def _ties(seed: int) -> Iterator[Story]:
    """Words of one count stand in the order of their code points, and k cuts them there."""
    words = ["b", "b2", "ä", "\U0001f35c", "\ufa0e", "a b", 'quo"ted\\', "10", "9"]
    first = [[word, 1] for word in sorted(words)[:8]]
    Random(seed).shuffle(words)
    log = [_subscribe("s", 0, _terms(_HERE, 8, 10, 10))]
    log += [_publish(f"o{n}", 1 + n // 3, word) for n, word in enumerate(words)]
    log += [_publish("later", 20)]
    reported = [("s", "terms", first, 10), ("s", "terms", [], 20)]
    yield Story("ties by code points", log, reported, cuts=((), (4,)))


def _stories(seed: int) -> Iterator[Story]:
    yield from _after_the_objects_of_its_time(seed)
    yield from _silence(seed)
    yield from _ties(seed)


_ONE = _terms(_HERE, 3, 10, 1)
EXAMPLES = Examples(
    everything=_terms(_HERE, 1000, 1000, 1),
    draw=_draw,
    warm=(
        _terms(_HERE, 2, 5, 2, where="a"),
        _terms({"bbox": [0, 0, 1, 1]}, 2, 5, 2, where="a OR NOT b", exclude=["c"]),
    ),
    busy=_busy,
    bad=(
        (_ONE, "region", [None, {}, [], {"bbox": [0, 1, 1, 0]}, {"bbox": [0, 0, 1]}]),
        (_ONE, "k", [None, 0, -1, 1.0, True, "1", 2**61]),
        (_ONE, "window", [None, 0, -5, 1.5, False, "1h", 2**61]),
        (_ONE, "every", [None, 0, -5, 1.5, False, "5m", 2**61]),
        (_ONE, "exclude", ["the", [1], [None], {"the": 1}]),
        (_ONE, "where", ["a AND", "OR", "()", 7]),
    ),
    stories=_stories,
)
