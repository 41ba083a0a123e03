"""The events of `bench live`: subscriptions of every kind around a city, and posts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

_CORNER = (139.0, 35.0)  # of a square, a degree long
_WORDS = 50_000
_RADIUS = 5_000  # metres; about one match a post for a million subscriptions of one word
PROBE = "probe"


def _at(rng: Random) -> list[float]:
    return [round(_CORNER[0] + rng.random(), 6), round(_CORNER[1] + rng.random(), 6)]


def _query(kind: str, rng: Random) -> dict[str, Any]:
    """A query of a kind; its words are as rare as they are in posts."""
    words = [f"w{rng.randrange(_WORDS)}" for _ in range(2)]
    circle = {"circle": {"at": _at(rng), "radius": _RADIUS}}
    queries: dict[str, dict[str, Any]] = {
        "range": {"region": circle, "where": words[0]},
        "knn": {"at": _at(rng), "k": 3, "where": words[0]},
        "topk": {"at": _at(rng), "k": 10, "keywords": words, "alpha": 0.5, "maxdist": 20_000},
        "terms": {"region": circle, "k": 10, "window": 3_600_000, "every": 600_000},
    }
    return {"kind": kind, **queries[kind]}


def subscriptions(kinds: tuple[str, ...], each: int, time: int, rng: Random) -> Iterator[str]:
    """Lines that subscribe: the probe, which every post matches, then so many of each kind."""
    everywhere = {"kind": "range", "region": {"bbox": [-180, -90, 180, 90]}}
    yield _line({"op": "subscribe", "id": PROBE, "time": time, "query": everywhere})
    for kind in kinds:
        for n in range(each):
            query = _query(kind, rng)
            yield _line({"op": "subscribe", "id": f"{kind}{n}", "time": time, "query": query})


def post(name: str, time: int, rng: Random) -> str:
    """A line that publishes, with six words."""
    words = [f"w{rng.randrange(_WORDS)}" for _ in range(6)]
    return _line({"op": "publish", "id": name, "time": time, "at": _at(rng), "keywords": words})


def _line(event: dict[str, Any]) -> str:
    return json.dumps(event, separators=(",", ":")) + "\n"
