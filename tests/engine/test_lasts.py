"""Subscriptions that look back: what `last` means, whatever shards, batches and moves there are."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.engine.contract import (
    Miniature,
    as_text,
    difference,
    expected,
    refused,
    reported,
    run_log,
)
from tests.engine.test_asks import WORLD, settings_of

from nearcast.engine.faults import POINTS
from nearcast.kinds import KINDS
from nearcast.model.space import Space
from nearcast.testing.cases import publish
from nearcast.testing.logs import random_log
from nearcast.testing.oracle import Order, replay

Json = dict[str, Any]
LOOKING = {name: kind for name, kind in KINDS.items() if kind.firsts is not None}
STRATEGIES: tuple[dict[str, str], ...] = (
    {},
    {"range": "random+pyramid", "knn": "random", "terms": "random"},
    {"range": "broadcast", "knn": "broadcast+inverted", "terms": "broadcast"},
    {"range": "hash+scan", "knn": "random+scan", "terms": "random+scan"},
)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("order", ["time", "arrival"])
def test_neither_shards_nor_batches_show(
    seed: int, order: Order, tmp_path: Path, memory: Path
) -> None:
    rng = Random(f"{seed} {order}")
    space = rng.choice(list(Space))
    late = rng.choice((0.0, 0.3))
    events = random_log(seed, space, 100, late, late_controls=late > 0, lasts=0.7)
    settings = settings_of(
        memory,
        space=space,
        shards=rng.choice((1, 2, 3, 5)),
        strategies=STRATEGIES[seed % len(STRATEGIES)],
        order=order,
    )
    run_log(tmp_path, events, settings, rng.choice((3, 10, 25, 1000)), rng, rng.choice((1, 2, 3)))


@pytest.mark.parametrize("order", ["time", "arrival"])
@pytest.mark.parametrize("index", ["scan", "pyramid"])
def test_what_is_reported_to_an_id_keeps_its_order(
    order: Order, index: str, tmp_path: Path, memory: Path
) -> None:
    """First results come after what the id meant before, and before what follows."""
    for seed in range(4):
        events = random_log(
            seed, Space.PLANAR, 100, 0.2, late_controls=True, lasts=0.8, kinds=LOOKING
        )
        strategies = dict.fromkeys(("range", "knn"), f"hash+{index}")
        chosen = settings_of(memory, shards=1, strategies=strategies, order=order)
        run = run_log(tmp_path / str(seed), events, chosen, 17)
        right = replay(events, Space.PLANAR, order)
        lines = [
            json.loads(line)
            for path in sorted((run.out / "notifications").glob("*"))
            for line in path.read_text().splitlines()
        ]
        for kind in KINDS_OF.values():  # an id that changes its kind may be reported a batch later
            assert _by_id(lines, kind) == _by_id(right.notifications, kind)


KINDS_OF = {"match": "range", "enter": "knn", "leave": "knn", "terms": "terms"}


def _by_id(notifications: list[Json], kind: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for n in notifications:
        if KINDS_OF[n["event"]] == kind:
            found.setdefault(n["id"], []).append(as_text(n))
    return found


@pytest.mark.parametrize("order", ["time", "arrival"])
def test_only_the_difference_of_a_batch(order: Order, tmp_path: Path, memory: Path) -> None:
    """With `--changes net`, replaying what was reported gives the same results in the end."""
    for seed in range(4):
        events = random_log(seed, Space.PLANAR, 100, 0.0, lasts=0.8, kinds=LOOKING)
        results = []
        for changes in ("every", "net"):
            folder = tmp_path / f"{seed} {changes}"
            run = Miniature(settings_of(memory, shards=2, order=order, changes=changes), folder)
            run.feed(events, 17)
            run.finish()
            held: Counter[tuple[str, str]] = Counter()
            others: Counter[str] = Counter()
            for text, n in reported(run.out).items():
                row = json.loads(text)
                if row["event"] in ("enter", "leave"):
                    held[row["id"], row["object"]] += n if row["event"] == "enter" else -n
                else:
                    others[text] += n
            results.append((+held, others))
            shutil.rmtree(memory / "run", ignore_errors=True)
        assert results[0] == results[1]


def test_parquet(tmp_path: Path, memory: Path) -> None:
    events = random_log(5, Space.PLANAR, 100, 0.0, lasts=0.8)
    run_log(tmp_path, events, settings_of(memory, format="parquet"), 30)


@pytest.mark.parametrize("router", ["kop", "dkm-sks"])
def test_a_plan_in_the_middle_does_not_show(router: str, tmp_path: Path, memory: Path) -> None:
    for seed in range(3):
        events = random_log(seed, Space.PLANAR, 100, crowd=True, lasts=0.6)
        chosen = settings_of(memory, strategies={"knn": router}, warmup=10 + 5 * seed)
        run_log(tmp_path / str(seed), events, chosen, 9, Random(seed))


@pytest.mark.parametrize("router", ["tornado", "ps2stream", "sstd"])
def test_copies_do_not_report_twice(router: str, tmp_path: Path, memory: Path) -> None:
    events = random_log(7, Space.PLANAR, 150, lasts=0.8)
    run_log(tmp_path, events, settings_of(memory, strategies={"range": router}, shards=4), 20)


def looking_back(name: str, time: int, last: int, query: Json, **more: Any) -> Json:
    return {"op": "subscribe", "id": name, "time": time, "last": last, "query": query, **more}


NEAREST: Json = {"kind": "knn", "at": [0, 0], "k": 2}


def test_the_nearest_of_the_past_enter_at_once(tmp_path: Path, memory: Path) -> None:
    """Nearest first, with the time of the subscribe; then it goes on as if it had been there."""
    log: list[Json] = [publish(f"o{n}", n, 10 - n, 0) for n in range(5)]
    log += [looking_back("s", 5, 4, NEAREST), publish("near", 6, 1, 0)]
    for batch_events in (1, 2, 6, 100):
        run = run_log(tmp_path / str(batch_events), log, settings_of(memory), batch_events)
        shutil.rmtree(memory / "run", ignore_errors=True)
    found = [json.loads(text) for text in reported(run.out)]
    seen = [(n["event"], n["object"], n["time"]) for n in found]
    assert seen[:2] == [("enter", "o4", 5), ("enter", "o3", 5)]
    assert seen[2:] == [("enter", "near", 6), ("leave", "o3", 6)]


def test_what_has_ended_in_its_batch_is_reported_too(tmp_path: Path, memory: Path) -> None:
    log: list[Json] = [publish(f"o{n}", n, n, 0) for n in range(5)]
    log += [
        looking_back("s", 5, 10, NEAREST),
        {"op": "unsubscribe", "id": "s", "time": 6},
        looking_back("s", 7, 2, NEAREST),
        looking_back("s", 8, 10, {"kind": "range", "region": WORLD}),
        looking_back("nothing", 8, 10, NEAREST, expires=8),
    ]
    run = run_log(tmp_path, log, settings_of(memory), 100)
    assert reported(run.out).total() == 2 + 0 + 5


@pytest.mark.parametrize("order", ["time", "arrival"])
def test_what_reaches_back_too_far_is_not_there(order: Order, tmp_path: Path, memory: Path) -> None:
    """It is refused with a reason, and what its id meant before goes on."""
    everything = {"kind": "range", "region": WORLD}
    log: list[Json] = [publish(f"o{n}", n, n, 0) for n in range(20)]
    log += [
        looking_back("s", 20, 10, NEAREST),
        publish("near", 21, 0, 0),
        looking_back("s", 22, 11, NEAREST),
        looking_back("s", 22, 11, everything),
        publish("nearer", 23, 0, 0),
        looking_back("s", 24, 10, everything),
    ]
    for batch_events in (3, 100):
        folder = tmp_path / str(batch_events)
        chosen = settings_of(memory, order=order, retain_ms=10)
        run = run_log(folder, log, chosen, batch_events)
        rejects = refused(run.out)
        assert [r["line"] for r in rejects] == [23, 24]
        assert all("goes back 10 ms" in r["reason"] for r in rejects)
        shutil.rmtree(memory / "run", ignore_errors=True)
    run = Miniature(settings_of(memory, retain_ms=0), tmp_path / "nothing")
    run.feed(log, 10)
    run.finish()
    assert ["retains no objects" in r["reason"] for r in refused(run.out)] == [True] * 4


@pytest.mark.parametrize("retain", [0, 5])
def test_the_archive_reaches_further(retain: int, tmp_path: Path, memory: Path) -> None:
    events = random_log(3, Space.PLANAR, 120, lasts=0.8)
    chosen = settings_of(memory, retain_ms=retain, archive=str(tmp_path / "archive"))
    run = run_log(tmp_path, events, chosen, 20)
    assert not refused(run.out)


def test_a_window_lets_the_past_move_up(tmp_path: Path, memory: Path) -> None:
    """On any shard: what is further away and younger moves up when what is nearer has left."""
    rng = Random(1)
    log: list[Json] = [
        publish(f"o{n}", n, rng.randint(-50, 50), rng.randint(-50, 50)) for n in range(200)
    ]
    log += [
        looking_back(f"s{k}-{window}", 200, 150, NEAREST | {"k": k, "window": window})
        for k in (1, 2, 5)
        for window in (20, 100, 1000)
    ]
    log += [{"op": "unsubscribe", "id": "unknown", "time": 1500}]
    run = run_log(tmp_path, log, settings_of(memory, shards=4), 64)
    assert reported(run.out).total() > 200


TERMS: Json = {"kind": "terms", "region": WORLD, "k": 9, "window": 10, "every": 3}


def test_moments_count_the_past(tmp_path: Path, memory: Path) -> None:
    """While the window reaches back before the subscribe, and only as far as `last` does."""
    log: list[Json] = [publish(f"o{n}", n, n, 0, f"w{n}", "common") for n in range(20)]
    log += [
        looking_back("all", 20, 100, TERMS | {"exclude": ["any"]}),
        looking_back("four", 20, 5, TERMS | {"exclude": ["any", "common", "w17"]}),
        {"op": "subscribe", "id": "none", "time": 20, "query": TERMS},
        publish("new", 21, 0, 0, "w18"),
        publish("end", 40, 0, 0),
    ]
    for index in ("tables", "scan"):
        for batch_events in (1, 2, 7, 21, 100):
            folder = tmp_path / f"{index} {batch_events}"
            strategies = {"terms": f"random+{index}"}
            chosen = settings_of(memory, strategies=strategies, shards=3)
            run = run_log(folder, log, chosen, batch_events, Random(batch_events))
            shutil.rmtree(memory / "run", ignore_errors=True)
    found: dict[tuple[str, int], Json] = {}
    for text in reported(run.out):
        n = json.loads(text)
        found[n["id"], n["time"]] = dict(n["terms"])
    assert found["all", 23] == {"common": 6} | {f"w{n}": 1 for n in range(14, 20)} | {"w18": 2}
    assert found["four", 23] == {"w16": 1, "w18": 2, "w19": 1}
    assert found["four", 26] == {"w18": 2, "w19": 1}  # 16 < time
    assert found["none", 23] == {"any": 1, "w18": 1}
    assert found["all", 29] == {"w18": 1}
    assert found["all", 32] == {}


def test_crashes_at_every_step(
    tmp_path: Path, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is lost, and nothing reported twice."""
    faults = tmp_path / "faults"
    faults.mkdir()
    monkeypatch.setenv("NEARCAST_FAULTS", str(faults))
    events = random_log(8, Space.PLANAR, 100, lasts=0.8)
    strategies = {"range": "random", "knn": "random", "terms": "random"}
    run = Miniature(settings_of(memory, strategies=strategies), tmp_path)
    run.feed(events, 20)
    crashes, n = 0, -1
    while run.more(n := n + 1):
        for point in POINTS:
            (faults / f"{point}@{n}").write_text("raise")
            try:
                run.batch(n)
            except RuntimeError:
                crashes += 1
        run.batch(n)
    assert not difference(reported(run.out), expected(events, Space.PLANAR))
    assert crashes > 10 * n
