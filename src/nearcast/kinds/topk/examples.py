"""Examples of `topk` queries: for tests of everything that takes this kind, and the warm-up."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from nearcast.kinds.base import Examples, Places, Story
from nearcast.model.space import Space

__all__ = ["EXAMPLES"]

Json = dict[str, Any]
_WORDS = ("a", "b", "c", "A", " b ", "hot dog", "straße", "ﬁ", "e", "9", "never")


def _topk(at: list[float], k: int, keywords: list[str], **fields: Any) -> Json:
    usual = {"alpha": 0.5, "maxdist": 10}
    return {"kind": "topk", "at": at, "k": k, "keywords": keywords, **usual, **fields}


def _draw(rng: Random, places: Places) -> Json:
    keywords = ["a", "b"] if rng.random() < 0.5 else rng.sample(_WORDS, rng.randint(1, 5))
    query = _topk(
        places.at(rng),
        rng.choice((1, 1, 2, 3, 10, 2**40)),
        [*keywords, *keywords[: rng.randint(0, 1)]],
        alpha=rng.choice((0, 0, 1, 0.5, 0.3, 0.999)),
        maxdist=rng.choice((1e-3, 2, 3e6, 1e8)),
    )
    if places.space is Space.GEOGRAPHIC and rng.random() < 0.3:
        del query["maxdist"]
    return query


def _busy(space: Space) -> list[Json]:
    far = 1e7 if space is Space.GEOGRAPHIC else 1e3
    return [
        _topk([1, 1], 2, ["a", "b", "c", "d"], maxdist=far),
        _topk([0, 0], 3, ["b", "a"], alpha=0, where="a OR NOT c"),
        _topk([0, 0], 1, ["a"], alpha=1, maxdist=far),
    ]


def _publish(name: str, time: int, x: float, *keywords: str) -> Json:
    return {"op": "publish", "id": name, "time": time, "at": [x, 0], "keywords": list(keywords)}


def _subscribe(name: str, time: int, query: Json, **fields: Any) -> Json:
    return {"op": "subscribe", "id": name, "time": time, "query": query, **fields}


def _begins_with_the_window(seed: int) -> Iterator[Story]:
    """The first result is reported best first, with the time of the subscription."""
    far = 3 + seed % 3
    log = [
        _publish("far", 1, far, "a"),
        _publish("near", 2, 1, "a", "x"),
        _publish("other", 3, 0, "b"),
        _subscribe("s", 5, _topk([0, 0], 2, ["a"], alpha=1)),
        _publish("nearer", 6, 0, "x", "a"),
    ]
    reported = [
        ("s", "enter", "near", 5),
        ("s", "enter", "far", 5),
        ("s", "enter", "nearer", 6),
        ("s", "leave", "far", 6),
    ]
    yield Story("it begins with the window", log, reported, cuts=((), (3,), range(len(log))))


def _newer_wins(seed: int) -> Iterator[Story]:
    """Of equal scores the newer object wins, in a first result too."""
    places = [1, -1, 1, -1]
    Random(seed).shuffle(places)
    log = [_subscribe("s", 0, _topk([0, 0], 1, ["a"], alpha=1))]
    log += [_publish(f"o{n}", n, x, "a") for n, x in enumerate(places)]
    log += [_subscribe("t", 9, _topk([0, 0], 2, ["a", "b"]))]
    reported = [("s", "enter", "o0", 0)]
    for n in range(1, 4):
        reported += [("s", "enter", f"o{n}", n), ("s", "leave", f"o{n - 1}", n)]
    reported += [("t", "enter", "o3", 9), ("t", "enter", "o2", 9)]
    yield Story("the newer of equals wins", log, reported, cuts=((), range(len(log))))


def _words_and_places_weigh(seed: int) -> Iterator[Story]:
    """With alpha 0 only words count, and how often an object holds them; with 1 only places."""
    del seed
    objects = [
        _publish("once", 1, 0, "a", "b", "c"),
        _publish("twice", 2, 9, "a", "a", "b"),
        _publish("alone", 3, 5, "a"),
    ]
    log = [
        *objects,
        _subscribe("words", 4, _topk([0, 0], 3, ["a", " A "], alpha=0)),
        _subscribe("places", 4, _topk([0, 0], 3, ["a"], alpha=1)),
        _subscribe("both", 4, _topk([0, 0], 3, ["a"], where="b AND NOT c")),
    ]
    reported = [("words", "enter", name, 4) for name in ("alone", "twice", "once")]
    reported += [("places", "enter", name, 4) for name in ("once", "alone", "twice")]
    reported += [("both", "enter", "twice", 4)]
    yield Story("words and places weigh", log, reported, cuts=((), (3,)), in_order=False)


def _stories(seed: int) -> Iterator[Story]:
    yield from _begins_with_the_window(seed)
    yield from _newer_wins(seed)
    yield from _words_and_places_weigh(seed)


_ALL = _topk([0, 0], 1000, ["any"])
_ONE = _topk([0, 0], 1, ["a"])
EXAMPLES = Examples(
    everything=_ALL,
    draw=_draw,
    warm=(
        _topk([0, 0], 2, ["a", "b"], maxdist=1e6),
        _topk([0, 0], 1, ["a"], alpha=1, maxdist=1e6, where="a AND NOT zzz"),
    ),
    busy=_busy,
    bad=(
        (_ONE, "at", [None, [0], [0, "1"]]),
        (_ONE, "k", [None, 0, -1, 1.0, True, "1", 2**61]),
        (_ONE, "keywords", [None, [], "a", [1], ["", " "], [None], {"a": 1}]),
        (_ONE, "alpha", [None, -0.1, 1.1, True, "0.5"]),
        (_ONE, "maxdist", [0, -1, True, "1", 10**400]),
    ),
    fresh={"k": 1},
    many=tuple(_topk([0, 0], 40, ["all", f"w{n}"], alpha=n / 20) for n in range(20)),
    stories=_stories,
)
