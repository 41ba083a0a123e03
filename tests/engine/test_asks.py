"""Asks: answered once, over the objects handled before them, whatever shards and batches."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
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

from nearcast.engine.moves.control import Controls
from nearcast.engine.options.settings import Settings
from nearcast.engine.options.spans import EVER_MS
from nearcast.engine.shard import objects
from nearcast.engine.shard.objects import Past, homes
from nearcast.index.arena import Memory
from nearcast.model.space import Space
from nearcast.objects import STORES
from nearcast.objects.base import NOT_SEALED, Slicing
from nearcast.routing.sstd.qt_router import QtRouter
from nearcast.testing.cases import publish
from nearcast.testing.logs import LogMaker
from nearcast.testing.oracle import Order, replay

Json = dict[str, Any]
WORLD = {"bbox": [-1e300, -1e300, 1e300, 1e300]}


def ask(name: str, time: int, last: int, query: Json, **more: Any) -> Json:
    return {"op": "ask", "id": name, "time": time, "last": last, "query": query, **more}


def settings_of(memory: Path, **given: Any) -> Settings:
    usual: Json = {"shards": 3, "space": Space.PLANAR, "retain_ms": EVER_MS, "warmup": 20}
    return Settings(**usual | given, arena=str(memory))


def busy(seed: int, space: Space, events: int, late: float = 0.0) -> list[Json]:
    """A random log with an ask after every fourth event, many of them at equal times."""
    rng = Random(seed)
    maker = LogMaker(rng, space, late)
    log = [maker.event(rng) for _ in range(events)]
    for n in range(len(log) - 1, 0, -4):
        time = log[n]["time"]
        if not isinstance(time, int):
            continue
        kind = rng.choice(("range", "range", "knn", "topk", "terms"))
        query: Json = {"kind": kind, "where": rng.choice(("", "a", "a OR b", "NOT a", "b AND c"))}
        if kind in ("range", "terms"):
            query["region"] = rng.choice((WORLD, maker.region(rng)))
        if kind == "terms":
            query |= {"k": rng.choice((1, 2, 5, 10**6)), "exclude": rng.sample(("a", "B", "x"), 1)}
        elif kind != "range":
            query |= {"at": maker.at(rng), "k": rng.choice((1, 2, 5))}
        if kind == "topk":
            words = rng.sample(("a", "b", "c", "hot dog"), rng.randint(1, 3))
            query |= {"keywords": words, "alpha": rng.choice((0.0, 0.5, 1.0)), "maxdist": 50.0}
        more: Json = {"limit": rng.choice((1, 3))} if rng.random() < 0.3 else {}
        if rng.random() < 0.3:
            more["fields"] = rng.sample(("at", "time", "text", "keywords"), rng.randint(1, 4))
        moment = time - rng.choice((0, 0, 1, 5))
        log.insert(n, ask(f"q{n}", moment, rng.choice((1, 2, 10, 10**6)), query, **more))
    return log


@pytest.mark.parametrize("order", ["time", "arrival"])
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("space", [Space.PLANAR, Space.GEOGRAPHIC])
def test_answers_are_those_of_the_oracle(
    tmp_path: Path, memory: Path, order: str, store: str, space: Space
) -> None:
    """Batches come again, some on lost arenas."""
    answers: list[Json] = []
    for seed in range(3):
        log = busy(seed, space, 120, 0.2)
        chosen = settings_of(memory, order=order, store=store, space=space)
        run = run_log(tmp_path / str(seed), log, chosen, 13, Random(seed))
        answers += [n for n in map(json.loads, reported(run.out)) if n["event"] == "answer"]
    assert any(len(n.get("objects", ())) > 1 for n in answers)
    assert any(len(n.get("terms", ())) > 1 for n in answers)


@pytest.mark.parametrize("router", ["tornado", "ps2stream", "sstd", "hash"])
def test_objects_that_no_subscription_wants_are_stored(
    tmp_path: Path, memory: Path, router: str
) -> None:
    chosen = settings_of(memory, strategies={"range": router}, shards=4)
    run_log(tmp_path, busy(7, Space.PLANAR, 150), chosen, 20)


def test_each_object_is_stored_once(tmp_path: Path, memory: Path) -> None:
    log: list[Json] = [publish(f"o{n}", n, n, 0, "a") for n in range(90)]
    run = Miniature(settings_of(memory), tmp_path)
    run.feed(log, 20)
    run.finish()
    files = [s.objects for s in run.states[run.next]]
    names = [n for f in files for n in (*f.slices.values(), *f.rest)]
    assert len(names) == len(set(names)) >= 3


def test_homes_are_alike_full() -> None:
    pos = np.concatenate([np.arange(20_000), (1 << 32) + np.arange(0, 40_000, 2)])
    for shards in (2, 3, 7):
        counts = np.bincount(homes(pos, shards), minlength=shards)
        assert counts.max() < 1.05 * counts.min()


@pytest.mark.parametrize("router", ["sstd", "sstd-quadtree", "sstd-text"])
@pytest.mark.parametrize("order", ["time", "arrival"])
def test_objects_rest_where_the_tree_sends_them(
    tmp_path: Path, memory: Path, router: str, order: Order
) -> None:
    """Each is stored once; with a plan, on the shard of its leaf. Asks stay complete."""
    log = busy(4, Space.PLANAR, 250, 0.2)
    chosen = settings_of(memory, order=order, strategies={"range": router}, warmup=40)
    run = run_log(tmp_path, log, chosen, 20, Random(1))
    planned = Controls(run.checkpoint, chosen).routers(run.next)["range"]
    assert isinstance(planned, QtRouter)
    assert planned.tree is not None
    stored = [Past(chosen, run.checkpoint / "objects" / f"{s:04d}", Memory()) for s in range(3)]
    ranks: list[int] = []
    rest_there = 0
    for shard, past in enumerate(stored):
        past.rebuild(run.states[run.next][shard].objects)
        table = past.store.snapshot(NOT_SEALED)
        ranks += table["rank"].to_pylist()
        routes = planned.route(table)
        assert routes is not None
        rest_there += int((routes.shards == shard).sum())
    assert sorted(ranks) == list(range(len(ranks)))
    assert len(ranks) == sum(event["op"] == "publish" for event in log)
    assert rest_there > 0.6 * len(ranks)  # all but those from before the plan


def test_retention(tmp_path: Path, memory: Path) -> None:
    """Exact to the object; what reaches further is refused, and says how far this run goes."""
    log: list[Json] = [publish(f"o{n}", n, n, 0, "a") for n in range(100)]
    everything = {"kind": "range", "region": WORLD}
    log += [ask("in", 99, 10, everything), ask("out", 99, 11, everything)]
    run = Miniature(settings_of(memory, retain_ms=10), tmp_path)
    run.feed(log, 7)
    run.finish()
    assert not difference(reported(run.out), expected(log, "planar", retain=10))
    (reject,) = refused(run.out)
    assert reject["line"] == 102
    assert "goes back 10 ms" in reject["reason"]


@pytest.mark.parametrize("order", ["time", "arrival"])
def test_retention_in_any_log(tmp_path: Path, memory: Path, order: Order) -> None:
    """What is refused does not depend on batches, or on the order of the lines of a replay."""
    for retain in (1, 3, 10, 10**6):
        log = busy(11, Space.PLANAR, 150, 0.3)
        right = replay(log, "planar", order, retain=retain)
        run = run_log(
            tmp_path / str(retain), log, settings_of(memory, order=order, retain_ms=retain)
        )
        assert [r["line"] for r in refused(run.out)] == [n + 1 for n, _ in right.rejected]


def test_without_retention_asks_are_refused(tmp_path: Path, memory: Path) -> None:
    run = Miniature(settings_of(memory, retain_ms=0), tmp_path)
    run.feed([publish("o", 1, 0, 0), ask("q", 1, 5, {"kind": "range", "region": WORLD})], 7)
    run.finish()
    assert "retains no objects" in refused(run.out)[0]["reason"]
    assert not reported(run.out)


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("order", ["time", "arrival"])
@pytest.mark.parametrize("retain", [EVER_MS, 40])
def test_slices_are_sealed_and_rebuilt_from_their_files(
    tmp_path: Path,
    memory: Path,
    order: Order,
    retain: int,
    lost: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(objects, "SLICING", Slicing(delta_ms=7, least=1))
    log = busy(3, Space.PLANAR, 200)
    chosen = settings_of(memory, order=order, retain_ms=retain, lateness_ms=3)
    run = Miniature(chosen, tmp_path)
    for n in range(run.feed(log, 9)):
        if lost:
            shutil.rmtree(run.arenas, ignore_errors=True)
        run.batch(n)
    right = replay(log, "planar", order, lateness=3, retain=retain)
    assert not difference(reported(run.out), Counter(map(as_text, right.notifications)))
    files = [manifest.objects for manifest in run.states[run.next]]
    assert any(f.slices for f in files)
    files += [f for manifest in run.states[run.next] for f in manifest.kept.values()]
    kept = {name for f in files for name in (*f.slices.values(), *f.rest)}
    old = {name for f in files for _, name in f.unused}
    there = {path.name for path in (run.checkpoint / "objects").glob("*/*.bin")}
    assert there == kept | old  # nothing grows without end


def test_parquet_answers(tmp_path: Path, memory: Path) -> None:
    run_log(tmp_path, busy(5, Space.PLANAR, 100), settings_of(memory, format="parquet"), 30)
