"""A readable city for demos and first tries: text, owners, every shape of region, some churn."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.workload.corpora import CITY, DISTRICTS
from nearcast.workload.events import SCHEMA, START_MS
from nearcast.workload.places import METRES_A_DEGREE
from nearcast.workload.ragged import Floats

# One post per second: windows and expiries of minutes then mean something.
GAP_MS = 1_000
_CHUNK = 10_000
_OWNERS = ("aiko", "ben", "chiyo", "daichi", "emi", "farah", "goro", "hana", "ivan", "jun")
_OPENERS = ("", "Now: ", "Tonight: ", "Just found: ", "Back again: ")
_EXPRESSIONS = (
    "{a}",
    "{a} OR {b}",
    "{a} OR {b} OR {c}",
    "{a} AND {b}",
    "{a} AND ({b} OR {c})",
    "{a} AND NOT {b}",
    "({a} OR {b}) AND NOT {c}",
)

Json = dict[str, Any]


def city(objects: int, subscriptions: int, rng: np.random.Generator) -> Iterator[pa.RecordBatch]:
    """``subscriptions`` range and knn subscriptions, then ``objects`` posts, a second apart.

    One subscription in ten expires and one in twenty is withdrawn while posts arrive.
    """
    querying, posting = rng.spawn(2)
    span_ms = max(objects, 1) * GAP_MS
    leaving: list[tuple[int, str]] = []
    for first in range(0, subscriptions, _CHUNK):
        rows = _subscribe(first, min(_CHUNK, subscriptions - first), span_ms, querying)
        for row in rows:
            if querying.random() < 0.05:
                leaving.append((START_MS + int(querying.integers(1, span_ms + 1)), row["id"]))
        yield pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
    leaving.sort(reverse=True)
    for first in range(0, objects, _CHUNK):
        rows = []
        for post in _publish(first, min(_CHUNK, objects - first), posting):
            while leaving and leaving[-1][0] <= post["time"]:
                time, event_id = leaving.pop()
                rows.append({"op": "unsubscribe", "id": event_id, "time": time})
            rows.append(post)
        yield pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def _publish(first: int, n: int, rng: np.random.Generator) -> list[Json]:
    objects = CITY.objects(n, rng)
    words = CITY.words(objects.keywords).to_pylist()
    openers = rng.integers(0, len(_OPENERS), n)
    districts = _nearest_districts(objects.lon, objects.lat)
    bounds = objects.offsets.tolist()
    rows: list[Json] = []
    for i in range(n):
        held = words[bounds[i] : bounds[i + 1]]
        opener = _OPENERS[openers[i]]
        listed = ", ".join(held) if opener else ", ".join([held[0].capitalize(), *held[1:]])
        rows.append(
            {
                "op": "publish",
                "id": f"{held[0]}-{first + i}",
                "time": START_MS + (first + i + 1) * GAP_MS,
                "at": [float(objects.lon[i]), float(objects.lat[i])],
                "text": f"{opener}{listed} in {districts[i]}",
            }
        )
    return rows


def _subscribe(first: int, n: int, span_ms: int, rng: np.random.Generator) -> list[Json]:
    lon, lat, tile = CITY.places(n, rng)
    # Three words in use at the place: enough for every expression.
    ids = CITY.terms(np.full(n, 3, dtype=np.int64), tile, rng)[1].reshape(n, 3)
    words = np.array(CITY.names)[ids]
    districts = _nearest_districts(lon, lat)
    rows: list[Json] = []
    for i in range(n):
        a, b, c = (str(word) for word in words[i])
        where = _EXPRESSIONS[rng.integers(len(_EXPRESSIONS))].format(a=a, b=b, c=c)
        x, y = float(lon[i]), float(lat[i])
        query = _range(x, y, where, rng) if rng.random() < 0.5 else _knn(x, y, where, rng)
        row: Json = {
            "op": "subscribe",
            "id": f"{query['kind']}-{a}-{first + i}",
            "time": START_MS,
            "query": json.dumps(query, separators=(",", ":")),
            "owner": _OWNERS[rng.integers(len(_OWNERS))],
        }
        if rng.random() < 0.1:
            row["expires"] = START_MS + int(rng.integers(1, span_ms + 1))
        if rng.random() < 0.2:
            row["meta"] = json.dumps({"label": f"{a} near {districts[i]}"}, separators=(",", ":"))
        rows.append(row)
    return rows


def _knn(x: float, y: float, where: str, rng: np.random.Generator) -> Json:
    query: Json = {"kind": "knn", "at": [x, y], "k": int(rng.integers(1, 6)), "where": where}
    if rng.random() < 0.3:
        query["window"] = int(rng.integers(5, 61)) * 60_000
    return query


def _range(x: float, y: float, where: str, rng: np.random.Generator) -> Json:
    radius_m = float(rng.uniform(300.0, 2_500.0))
    shape = rng.integers(3)
    if shape == 0:
        (west, south), (east, north) = (_moved(x, y, s * radius_m, s * radius_m) for s in (-1, 1))
        region: Json = {"bbox": [west, south, east, north]}
    elif shape == 1:
        region = {"circle": {"at": [x, y], "radius": round(radius_m)}}
    else:
        region = {"type": "Polygon", "coordinates": [_star(x, y, radius_m, rng)]}
    return {"kind": "range", "region": region, "where": where}


def _star(x: float, y: float, radius_m: float, rng: np.random.Generator) -> list[list[float]]:
    """A closed ring around (x, y), counter-clockwise.

    Its corners go once around the centre at even angles, so no two edges can cross.
    """
    corners = int(rng.integers(5, 9))
    ring = []
    for i in range(corners):
        angle = 2.0 * math.pi * i / corners
        reach = radius_m * float(rng.uniform(0.6, 1.0))
        ring.append(_moved(x, y, reach * math.cos(angle), reach * math.sin(angle)))
    return [*ring, ring[0]]


def _moved(x: float, y: float, east_m: float, north_m: float) -> list[float]:
    scale = METRES_A_DEGREE * math.cos(math.radians(y))
    return [round(x + east_m / scale, 6), round(y + north_m / METRES_A_DEGREE, 6)]


def _nearest_districts(lon: Floats, lat: Floats) -> list[str]:
    names = list(DISTRICTS)
    centres = np.array(list(DISTRICTS.values()))
    narrowing = math.cos(math.radians(float(centres[:, 1].mean())))
    dx = (lon[:, None] - centres[:, 0]) * narrowing
    dy = lat[:, None] - centres[:, 1]
    return [names[i] for i in np.argmin(dx * dx + dy * dy, axis=1)]
