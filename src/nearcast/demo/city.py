"""The demo's city: the `city` workload moved to the present, with a parade that wanders."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from nearcast.workload import CITY, START_MS
from nearcast.workload.city import city
from nearcast.workload.corpora import DISTRICTS
from nearcast.workload.places import METRES_A_DEGREE

# Both streams of the workload are made lazily, a chunk at a time: this means "as long as it runs".
_ENDLESS = 1 << 40
_PARADE_SHARE = 0.2
_PARADE_SPREAD_M = 450.0
_PARADE_LAP_MS = 40_000

Json = dict[str, Any]


class City:
    """Events of a city in the order of their times; remembers what it made, by id.

    The same seed and the same calls give the same events.
    """

    def __init__(self, seed: int, seconds: float) -> None:
        querying, posting, self._rng = np.random.default_rng(seed).spawn(3)
        self._wishes = _rows(city(0, _ENDLESS, querying))
        self._news = _rows(city(_ENDLESS, 0, posting))
        self._seconds = seconds
        self._living: list[str] = []
        self.posts: dict[str, Json] = {}
        self.subscriptions: dict[str, Json] = {}
        self.ended: set[str] = set()
        """Subscriptions that were withdrawn. Those that expire say so themselves."""

    def opening(self, now_ms: int, subscriptions: int) -> list[Json]:
        """The subscriptions that are there before the first post."""
        return [self._subscribe(now_ms) for _ in range(subscriptions)]

    def moment(self, after_ms: int, until_ms: int, posts: int, churn: int) -> list[Json]:
        """What happens after one time and until another: some come, some go, many post.

        Who comes and goes does so at its beginning, so that time never decreases in the log and a
        replay, which orders by time, reads the very order in which the events arrived.
        """
        first = after_ms + 1
        events: list[Json] = [
            self._unsubscribe(first) for _ in range(min(churn, len(self._living)))
        ]
        events += [self._subscribe(first) for _ in range(churn)]
        times = np.linspace(first, max(until_ms, first), max(posts, 1)).astype(np.int64)
        events += [self._publish(int(times[i])) for i in range(posts)]
        return events

    def _subscribe(self, time: int) -> Json:
        row = next(self._wishes)
        query = json.loads(row["query"])
        # The workload thinks in minutes, a demo in seconds.
        if "window" in query:
            query["window"] //= 60
        # Some wait for the parade: nobody would, by the frequency of the word alone.
        if self._rng.random() < 0.03:
            query["where"] = "parade"
        event: Json = {"op": "subscribe", "id": row["id"], "time": time, "query": query}
        event["owner"] = row["owner"]
        if row["expires"] is not None:
            # Without objects the workload lasts 1,000 ms: a share of the run, in thousandths.
            event["expires"] = time + round((row["expires"] - START_MS) * self._seconds)
        if row["meta"] is not None:
            event["meta"] = json.loads(row["meta"])
        self._living.append(event["id"])
        self.subscriptions[event["id"]] = event
        return event

    def _unsubscribe(self, time: int) -> Json:
        i = int(self._rng.integers(len(self._living)))
        self._living[i], self._living[-1] = self._living[-1], self._living[i]
        gone = self._living.pop()
        self.ended.add(gone)
        return {"op": "unsubscribe", "id": gone, "time": time}

    def _publish(self, time: int) -> Json:
        row = next(self._news)
        event: Json = {"op": "publish", "id": row["id"], "time": time, "at": row["at"]}
        event["text"] = row["text"]
        if self._rng.random() < _PARADE_SHARE:
            x, y = parade_at(time)
            east, north = self._rng.normal(0.0, _PARADE_SPREAD_M, 2)
            narrowing = math.cos(math.radians(y))
            x += float(east) / (METRES_A_DEGREE * narrowing)
            y += float(north) / METRES_A_DEGREE
            event["at"] = [round(x, 6), round(y, 6)]
            event["text"] = _beside_the_parade(row["text"], x, y)
        self.posts[event["id"]] = event
        return event


def parade_at(time_ms: int) -> tuple[float, float]:
    """Where the parade is: it goes round the middle of the city, once in 40 seconds."""
    minx, miny, maxx, maxy = CITY.bounds
    turn = 2.0 * math.pi * (time_ms % _PARADE_LAP_MS) / _PARADE_LAP_MS
    x = (minx + maxx) / 2 + 0.30 * (maxx - minx) * math.cos(turn)
    y = (miny + maxy) / 2 + 0.30 * (maxy - miny) * math.sin(2.0 * turn)
    return x, y


def nearest_district(x: float, y: float) -> str:
    """The district whose centre is nearest, near enough for a city."""
    narrowing = math.cos(math.radians(y))
    return min(
        DISTRICTS,
        key=lambda n: math.hypot((DISTRICTS[n][0] - x) * narrowing, DISTRICTS[n][1] - y),
    )


def _beside_the_parade(text: str, x: float, y: float) -> str:
    """The post, sent from where the parade passes."""
    said = text.rpartition(" in ")[0].rpartition(": ")[2]
    return f"Parade! {said[:1].upper()}{said[1:]} in {nearest_district(x, y)}"


def _rows(batches: Iterator[Any]) -> Iterator[Json]:
    for batch in batches:
        yield from batch.to_pylist()
