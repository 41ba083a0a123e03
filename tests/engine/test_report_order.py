"""Every subscription hears of objects in their order, also where its id changes kinds."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.engine.contract import run_log

from nearcast.engine.options.settings import Settings
from nearcast.model.space import Space
from nearcast.testing.oracle import Order, replay

Json = dict[str, Any]
Heard = dict[str, list[tuple[str, str, int]]]


def by_id(notifications: list[Json]) -> Heard:
    """What each subscription heard, in the order in which it did."""
    found: Heard = defaultdict(list)
    for n in notifications:
        found[n["id"]].append((n["event"], n.get("object", ""), n["time"]))
    return found


def restless(rng: Random) -> list[Json]:
    """Four ids that ask for something else all the time, among objects."""
    box = {"bbox": [-9, -9, 9, 9]}
    events: list[Json] = []
    for n in range(300):
        if rng.random() < 0.4:
            knn = {"kind": "knn", "at": [0, 0], "k": 2, "window": rng.choice((3, 50))}
            query = rng.choice((knn, {"kind": "range", "region": box}))
            events.append({"op": "subscribe", "id": f"s{n % 4}", "time": n, "query": query})
        at = [rng.randrange(-9, 10), rng.randrange(-9, 10)]
        events.append({"op": "publish", "id": f"o{n}", "time": n, "at": at})
    return events


@pytest.mark.parametrize("order", ["time", "arrival"])
@pytest.mark.parametrize("batch_events", [37, 1000])
def test_an_id_that_changes_kinds_hears_in_order(
    order: Order, batch_events: int, memory: Path
) -> None:
    events = restless(Random(f"{order} {batch_events}"))
    settings = Settings(shards=2, order=order, arena=str(memory / "arena"))
    run = run_log(memory / "run", events, settings, batch_events)
    files = sorted((run.out / "notifications").iterdir())
    lines = [json.loads(line) for path in files for line in path.read_text().splitlines()]
    wanted = replay([json.dumps(e) for e in events], Space.GEOGRAPHIC, order)
    assert by_id(lines) == by_id(wanted.notifications)


def forgetful(rng: Random) -> list[Json]:
    """Ids that ask for something else all the time, also about the past, and seldom an object."""
    box = {"bbox": [-9, -9, 9, 9]}
    events: list[Json] = []
    for n in range(400):
        if rng.random() < 0.5:
            query: Json = rng.choice((
                {"kind": "knn", "at": [0, 0], "k": 2, "window": rng.choice((3, 50))},
                {"kind": "range", "region": box},
                {"kind": "terms", "region": box, "k": 2, "window": 9, "every": rng.choice((1, 4))},
                {"kind": "topk", "at": [0, 0], "k": 2, "keywords": ["a"], "alpha": 0.5},
            ))  # fmt: skip
            event: Json = {"op": "subscribe", "id": f"s{n % 4}", "time": n, "query": query}
            if query["kind"] == "range" and rng.random() < 0.7:
                event["last"] = 20
            events.append(event)
        if rng.random() < 0.3:
            at = [rng.randrange(-9, 10), rng.randrange(-9, 10)]
            events.append({"op": "publish", "id": f"o{n}", "time": n, "at": at, "text": "a"})
    return events


@pytest.mark.parametrize("order", ["time", "arrival"])
def test_the_past_and_moments_come_in_order_too(order: Order, memory: Path) -> None:
    events = forgetful(Random(f"forgetful {order}"))
    settings = Settings(shards=1, order=order, arena=str(memory / "arena"), retain_ms=1000)
    run = run_log(memory / "run", events, settings, 150)
    files = sorted((run.out / "notifications").iterdir())
    lines = [json.loads(line) for path in files for line in path.read_text().splitlines()]
    wanted = replay([json.dumps(e) for e in events], Space.GEOGRAPHIC, order)
    assert by_id(lines) == by_id(wanted.notifications)
