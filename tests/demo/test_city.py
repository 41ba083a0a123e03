"""The demo's city: events that the wire accepts, in an order that a replay repeats."""

from __future__ import annotations

import json
from typing import Any

from nearcast.demo.city import City, nearest_district, parade_at
from nearcast.kinds import KINDS
from nearcast.model.space import Space
from nearcast.wire.jsonl import decode_jsonl
from nearcast.workload import CITY

NOW = 1_800_000_000_000


def events_of(seed: int = 1) -> list[dict[str, Any]]:
    city = City(seed, 30.0)
    events = city.opening(NOW, 400)
    events += city.moment(NOW, NOW + 1_000, posts=500, churn=10)
    return events + city.moment(NOW + 1_000, NOW + 1_500, posts=250, churn=5)


def test_every_event_is_valid() -> None:
    events = events_of()
    log = "".join(json.dumps(e) + "\n" for e in events).encode()
    decoded = decode_jsonl(log, Space.GEOGRAPHIC, KINDS)
    assert decoded.rejects.num_rows == 0
    subscribes = sum(table.num_rows for table in decoded.subscribes.values())
    assert subscribes + decoded.ends.num_rows == 400 + 2 * 15
    assert decoded.objects.num_rows == 750


def test_the_same_seed_gives_the_same_events() -> None:
    assert events_of() == events_of()
    assert events_of() != events_of(2)


def test_arrival_is_the_order_of_a_replay() -> None:
    events = events_of()
    keys = [(e["time"], e["op"] == "publish") for e in events]
    assert keys == sorted(keys)


def test_there_is_something_of_everything() -> None:
    events = events_of()
    queries = [e["query"] for e in events if e["op"] == "subscribe"]
    regions = [set(q["region"]) for q in queries if q["kind"] == "range"]
    for key in ("bbox", "circle", "coordinates"):
        assert any(key in r for r in regions)
    windows = [q.get("window") for q in queries if q["kind"] == "knn"]
    assert None in windows
    # In a demo of half a minute, windows of minutes would never let go of anything.
    assert all(5_000 <= w <= 60_000 for w in windows if w is not None)
    assert any("expires" in e for e in events)
    assert any(q["where"] == "parade" for q in queries)


def test_who_leaves_was_there() -> None:
    city = City(3, 30.0)
    first = {e["id"] for e in city.opening(NOW, 20)}
    left = [e for e in city.moment(NOW, NOW + 10, 0, 5) if e["op"] == "unsubscribe"]
    assert len(left) == 5
    assert {e["id"] for e in left} <= first
    assert city.ended == {e["id"] for e in left}


def test_the_parade_stays_in_the_city_and_moves() -> None:
    minx, miny, maxx, maxy = CITY.bounds
    places = [parade_at(NOW + t) for t in range(0, 40_000, 1_000)]
    assert all(minx < x < maxx and miny < y < maxy for x, y in places)
    assert len(set(places)) > 30
    texts = [e["text"] for e in events_of() if e["op"] == "publish"]
    near = [t for t in texts if t.startswith("Parade! ")]
    assert 50 < len(near) < 400


def test_nearest_district_is_the_one_next_door() -> None:
    assert nearest_district(139.702, 35.659) == "Shibuya"
