"""A stream that could go on for ever: as many subscriptions begin as end."""

from __future__ import annotations

from random import Random
from typing import Any

STEP_MS = 60_000  # of the stream, per batch
_LIFE = 50  # batches that a subscription lasts, at most
_IDS = 300
_WORDS = [f"w{n}" for n in range(40)]


def events_of(batch: int, rng: Random) -> list[dict[str, Any]]:
    """The events of a batch: posts, a subscription or two, now and then an end or a mistake."""
    time = 1_700_000_000_000 + batch * STEP_MS
    events: list[dict[str, Any]] = []
    for _ in range(rng.choice((1, 2))):
        at = [round(rng.uniform(0, 1), 6), round(rng.uniform(0, 1), 6)]
        if rng.random() < 0.5:
            circle = {"at": at, "radius": rng.choice((2_000, 20_000, 60_000))}
            query: dict[str, Any] = {"kind": "range", "region": {"circle": circle}}
        else:
            query = {"kind": "knn", "at": at, "k": rng.randrange(1, 6), "window": 20 * STEP_MS}
        query["where"] = " OR ".join(rng.sample(_WORDS, 3))
        expires = time + rng.randrange(1, _LIFE) * STEP_MS
        name = f"s{rng.randrange(_IDS)}"
        events.append(
            {"op": "subscribe", "id": name, "time": time, "expires": expires, "query": query}
        )
    if rng.random() < 0.3:
        events.append({"op": "unsubscribe", "id": f"s{rng.randrange(_IDS)}", "time": time})
    for n in range(rng.randrange(2, 8)):
        at = [round(rng.uniform(0, 1), 6), round(rng.uniform(0, 1), 6)]
        words = rng.sample(_WORDS, 4)
        events.append(
            {"op": "publish", "id": f"o{batch}-{n}", "time": time + 1, "at": at, "keywords": words}
        )
    if rng.random() < 0.02:
        events.append({"op": "publish", "id": "", "time": time})
    return events
