"""The past at its edges: borders of slices and of retention, silence, the antimeridian, one place.

One hand-made log with all that random ones meet too seldom; every store must say what the oracle
says, in both orders and whatever the batches are.
"""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.engine.contract import refused, reported, run_log
from tests.engine.test_asks import ask, settings_of
from tests.engine.test_lasts import looking_back

from nearcast.engine.options.spans import EVER_MS
from nearcast.engine.shard import objects
from nearcast.model.space import Space
from nearcast.objects import STORES
from nearcast.objects.base import Slicing
from nearcast.testing.cases import publish, subscribe, unsubscribe
from nearcast.testing.oracle import Order, replay

Json = dict[str, Any]
DELTA = 10  # of a slice
FIRST = 1_700_000_000_000  # a border, where the log begins
YEARS = 10 * 365 * 86_400_000
PLACES = [(180, 0), (-180, 0), (179.9, 1), (-179.9, -1), (0, 90), (5, 5), (5, 5), (5, 5)]
ACROSS = {"bbox": [170, -90, -170, 90]}
WORLD = {"bbox": [-180, -90, 180, 90]}
POINT = {"bbox": [5, 5, 5, 5]}
EQUAL = ("b", "c", "ß", "B\u0301")  # as often as each other: code points decide


def queries() -> list[Json]:
    """What is asked at each time."""
    return [
        {"kind": "range", "region": ACROSS},
        {"kind": "range", "region": POINT, "where": "all AND NOT b"},
        {"kind": "knn", "at": [180, 0], "k": 3, "where": "NOT ß"},
        {"kind": "topk", "at": [5, 5], "k": 4, "keywords": ["b", "all"], "alpha": 0.5},
        {"kind": "terms", "region": WORLD, "k": 3},
        {"kind": "terms", "region": ACROSS, "k": 2, "exclude": ["all"], "where": "NOT nowhere"},
    ]


def posts() -> list[Json]:
    """On every border and beside it, some without words; `all` in all others."""
    found: list[Json] = []
    for n in range(48):
        time = FIRST + n // 12 * DELTA + (0, 0, 1, DELTA - 1)[n % 4]
        words = () if n % 12 == 5 else ("all", EQUAL[n % 4])
        found.append(publish(f"o{n}", time, *PLACES[n % len(PLACES)], *words))
    return found


def log(late: bool) -> list[Json]:
    """Posts, with asks, `last` and moments between, then years of silence, and the same again."""
    events: list[Json] = []
    district = {"kind": "terms", "region": WORLD, "k": 3, "window": DELTA, "every": DELTA}
    yearly = district | {"window": YEARS, "every": YEARS // 10}
    events += [ask(f"early {n}", FIRST, 5, query) for n, query in enumerate(queries())]
    events += [subscribe("borders", FIRST, district), subscribe("years", FIRST, yearly)]
    events += posts()
    if late:  # into slices that are sealed
        events += [publish(f"late{n}", FIRST + n, 5, 5, "all", "late") for n in range(0, 25, 4)]
    now = FIRST + 4 * DELTA
    events.append(unsubscribe("borders", now))
    events += asks(now)
    kinds: list[Json] = [
        {"kind": "range", "region": WORLD},
        {"kind": "knn", "at": [-180, 0], "k": 2},
        district | {"every": 7},
    ]
    for n, (kind, last) in enumerate(product(kinds, (DELTA, 2 * DELTA, 2 * DELTA + 1))):
        events += [looking_back(f"back{n}", now, last, kind), unsubscribe(f"back{n}", now + 15)]
    events.append(publish("end", now + 30, 5, 5, "all"))
    after = now + YEARS
    events += [ask(f"silence {n}", after, YEARS - 1, query) for n, query in enumerate(queries())]
    events += [publish("again", after, 180, 0, "all", "b"), *asks(after)]
    return events


def asks(now: int) -> list[Json]:
    """Periods that begin and end on a border or beside it, in the millisecond of posts too."""
    found: list[Json] = []
    periods = product((now, now - 1, now - DELTA), (1, DELTA, 2 * DELTA, 2 * DELTA + 1, now))
    for n, (end, last) in enumerate(periods):
        for m, query in enumerate(queries()):
            found.append(ask(f"{now}-{n}-{m}", end, last, query))
    return found


@pytest.mark.parametrize("order", ["time", "arrival"])
@pytest.mark.parametrize("store", [name for name in STORES if name != "scan"])
@pytest.mark.parametrize(("retain", "batch_events"), [(EVER_MS, 1000), (2 * DELTA, 9)])
def test_every_store_says_what_the_oracle_says(
    tmp_path: Path,
    memory: Path,
    order: Order,
    store: str,
    retain: int,
    batch_events: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(objects, "SLICING", Slicing(DELTA, least=1))
    events = log(late=order == "arrival")
    chosen = settings_of(
        memory, space=Space.GEOGRAPHIC, order=order, store=store, retain_ms=retain, lateness_ms=0
    )
    run = run_log(tmp_path, events, chosen, batch_events, Random(batch_events))
    right = replay(events, "geographic", order, retain=retain)
    assert [r["line"] for r in refused(run.out)] == sorted(n + 1 for n, _ in right.rejected)
    assert (len(right.rejected) > len(queries())) == (retain != EVER_MS)
    answers = [n for n in map(json.loads, reported(run.out)) if n["event"] == "answer"]
    assert sum(len(a.get("objects", a.get("terms"))) > 1 for a in answers) > 30
    assert any(not a.get("objects", a.get("terms")) for a in answers)


def test_the_log_has_what_it_is_for() -> None:
    """Or a change of it would leave an edge out."""
    outcome = replay(log(late=True), "geographic", "arrival")
    answers = {n["id"]: n for n in outcome.notifications if n["event"] == "answer"}
    assert not outcome.rejected
    assert all(not answers[f"early {n}"].get("objects") for n in range(4))
    after = FIRST + 4 * DELTA + YEARS
    assert [o["id"] for o in answers[f"{after}-0-0"]["objects"]] == ["again"]  # in its millisecond
    assert {"o0", "o1"} < {o["id"] for o in answers[f"{after}-4-0"]["objects"]}  # -180 is 180
    ties = [n["terms"] for n in outcome.notifications if n["id"] == "borders"]
    assert any(len({count for _, count in terms}) < len(terms) for terms in ties)
    silence = [n for n in outcome.notifications if n["id"] == "years" and n["time"] > FIRST + 50]
    assert len(silence) >= 10
