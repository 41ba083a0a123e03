"""Only kinds that somebody has subscribed to route objects."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.engine.contract import Miniature, run_log

from nearcast.engine.feed.source import Feed
from nearcast.engine.moves.control import Controls
from nearcast.engine.options.settings import Settings
from nearcast.engine.output.reports import Reports
from nearcast.engine.shard.objects import read_objects
from nearcast.model.space import Space
from nearcast.testing.cases import publish, subscribe, unsubscribe
from nearcast.wire.named_kinds import named_kinds
from nearcast.wire.read_split import read_split
from nearcast.wire.split import Split
from nearcast.wire.tables import numbers

Json = dict[str, Any]
SHARDS = 4


def ranges(rng: Random, n: int) -> list[Json]:
    """Small regions all over a square."""
    log = []
    for i in range(n):
        x, y = rng.uniform(0, 90), rng.uniform(0, 90)
        region = {"bbox": [x, y, x + 5, y + 5]}
        query = {"kind": "range", "region": region, "where": rng.choice("abcdef")}
        log.append(subscribe(f"s{i}", 0, query))
    return log


def objects(rng: Random, first: int, n: int) -> list[Json]:
    return [
        publish(f"o{i}", i, rng.uniform(0, 95), rng.uniform(0, 95), *rng.sample("abcdef", 2))
        for i in range(first, first + n)
    ]


def settings(memory: Path, router: str, order: str) -> Settings:
    return Settings(
        space=Space.PLANAR,
        shards=SHARDS,
        strategies={"range": router},
        order=order,
        only=("range", "knn"),
        arena=str(memory),
        warmup=50,
    )


def copies(run: Miniature, batch: int) -> tuple[int, int, int]:
    """(objects, copies that were sent, copies that the router of `range` alone asks for)."""
    router = Controls(run.checkpoint, run.settings).routers(batch)["range"]
    made = queried = 0
    for number, split in enumerate(Feed(run.checkpoint).read(batch)):
        table = read_split(split, run.settings.space, run.settings.kinds, number).objects
        routes = router.route(table)
        made += table.num_rows
        queried += table.num_rows * SHARDS if routes is None else len(routes.rows)
    (record,) = [r for r in Reports(run.checkpoint).all() if r.batch == batch]
    return made, sum(load.objects for load in record.loads()), queried


@pytest.mark.parametrize("order", ["time", "arrival"])
@pytest.mark.parametrize("router", ["tornado", "ps2stream", "text-frequency", "space-kd"])
def test_copies_are_those_of_the_router_alone(
    tmp_path: Path, memory: Path, router: str, order: str
) -> None:
    rng = Random(1)
    log = ranges(rng, 60) + objects(rng, 1, 500)
    run = run_log(tmp_path, log, settings(memory, router, order), 70)
    last = len(Feed(run.checkpoint)) - 1
    made, sent, queried = copies(run, last)
    assert sent == queried < made * SHARDS
    assert Feed(run.checkpoint).read(last)[0].kinds == ("range",)


def live(memory: Path, shards: int = SHARDS, **values: Any) -> Settings:
    """A live run that takes all kinds of query."""
    strategies = {"range": "ps2stream"}
    own: Json = {"space": Space.PLANAR, "shards": shards, "strategies": strategies, "warmup": 50}
    return Settings(order="arrival", arena=str(memory), maxdist=100.0, **own | values)


def test_a_live_run_holds_a_window_on_one_shard_until_it_is_used(
    tmp_path: Path, memory: Path
) -> None:
    """Posts go where the routers of the kinds in use send them, and elsewhere only if to none."""
    rng = Random(1)
    run = run_log(tmp_path, ranges(rng, 60) + objects(rng, 1, 500), live(memory), 70)
    last = len(Feed(run.checkpoint)) - 1
    assert Feed(run.checkpoint).read(last)[0].kinds == ("range",)
    router = Controls(run.checkpoint, run.settings).routers(last)["range"]
    wanted = 0
    for number, split in enumerate(Feed(run.checkpoint).read(last)):
        table = read_split(split, run.settings.space, run.settings.kinds, number).objects
        routes = router.route(table)
        assert routes is not None
        seen = np.bincount(routes.rows, minlength=table.num_rows)
        wanted += int(np.maximum(seen, 1).sum())
    made, sent, _ = copies(run, last)
    assert sent == wanted < made * 2
    held = [manifest.kept["topk"] for manifest in run.states[last + 1]]
    parts = [read_objects(path) for path in sorted((run.checkpoint / "objects").rglob("*.bin"))]
    assert all(files.rest for files in held)
    assert np.unique(np.concatenate([numbers(t["rank"]) for t in parts])).tolist() == list(
        range(500)
    )


@pytest.mark.parametrize(("window", "retain"), [("count:60", 30), ("count:100000", 0), ("40ms", 0)])
def test_the_first_subscription_of_a_live_run_sees_the_window_before_it(
    tmp_path: Path, memory: Path, window: str, retain: int
) -> None:
    """Also in batches that come again, on lost arenas, and for those that come later."""
    rng = Random(3)
    best = {"kind": "topk", "at": [50, 50], "k": 5, "keywords": ["a", "b"], "alpha": 0.5}
    ask = {"op": "ask", "id": "q", "time": 340, "last": 20, "query": best}
    late = objects(Random(9), 150, 3)
    log = [*ranges(rng, 30), *objects(rng, 1, 200), *late, subscribe("t", 201, best)]
    log += [*objects(rng, 201, 100), subscribe("u", 301, best | {"k": 9}), unsubscribe("t", 302)]
    log += [*objects(rng, 301, 40), *([ask] if retain else []), *objects(rng, 341, 30)]
    mail = str(memory / "mail") if retain else ""  # objects go by reference, as on one machine
    chosen = live(memory, 3, window=window, retain_ms=retain, mail=mail)
    run = run_log(tmp_path, log, chosen, 40, Random(5))
    kinds = [Feed(run.checkpoint).read(n)[0].kinds for n in range(len(Feed(run.checkpoint)))]
    assert "topk" not in (kinds[0] or ())
    assert "topk" in (kinds[-1] or ())


def test_a_kind_routes_from_the_batch_of_its_first_subscription_on(
    tmp_path: Path, memory: Path
) -> None:
    """Also the objects of that very batch, whichever split they are in."""
    rng = Random(2)
    late = subscribe("near", 400, {"kind": "knn", "at": [50, 50], "k": 3})
    log = ranges(rng, 60) + objects(rng, 1, 399) + [late] + objects(rng, 400, 200)
    run = run_log(tmp_path, log, settings(memory, "tornado", "time"), 70, Random(5))
    feed = Feed(run.checkpoint)
    seen = [feed.read(n)[0].kinds for n in range(len(feed))]
    first = seen.index(("range", "knn"))
    assert set(seen[:first]) == {("range",)}
    assert set(seen[first:]) == {("range", "knn")}
    for n in (first - 1, first):
        made, sent, queried = copies(run, n)
        assert sent == (queried if n < first else made * SHARDS)


def test_a_kind_stays_in_use_over_a_restart(tmp_path: Path, memory: Path) -> None:
    log = ranges(Random(3), 5)
    run = Miniature(settings(memory, "tornado", "time"), tmp_path)
    run.feed([*log, subscribe("n", 1, {"kind": "knn", "at": [0, 0], "k": 1})], 100)
    more = tmp_path / "in" / "more.jsonl"
    more.write_text(json.dumps(publish("o", 9)) + "\n")
    run.plan(more, 100)
    assert [Feed(run.checkpoint).read(n)[0].kinds for n in (0, 1)] == [("range", "knn")] * 2


def test_nothing_is_looked_for_where_all_objects_go_everywhere(
    tmp_path: Path, memory: Path
) -> None:
    run = Miniature(settings(memory, "hash", "time"), tmp_path)
    run.feed(ranges(Random(4), 5), 100)
    assert run.settings.kinds_to_find == ()
    assert Feed(run.checkpoint).read(0)[0].kinds is None


def test_a_run_may_take_only_some_kinds(tmp_path: Path, memory: Path) -> None:
    """A Spark stream cannot be looked through: there the user says which kinds come."""
    chosen = Settings(space=Space.PLANAR, only=("range",), arena=str(memory))
    assert Settings.from_json(json.loads(json.dumps(chosen.to_json()))) == chosen
    run = Miniature(chosen, tmp_path)
    run.feed([subscribe("s", 0, KNN)], 10)
    run.finish()
    (path,) = (run.out / "rejected").iterdir()
    assert json.loads(path.read_text())["reason"] == "query.kind: unknown 'knn'; use range"


NAMES = ("range", "knn")
KNN = {"kind": "knn", "at": [0, 0], "k": 1}


def lines(path: Path, *events: Json | str) -> Split:
    texts = [e if isinstance(e, str) else json.dumps(e) for e in events]
    path.write_text("".join(text + "\n" for text in texts))
    return Split("jsonl", str(path), str(path), 0, path.stat().st_size)


@pytest.mark.parametrize(
    ("event", "found"),
    [
        (subscribe("s", 0, KNN), {"knn"}),
        (publish("s", 0, 0, 0, "knn", "range"), set()),
        (unsubscribe("knn", 0), set()),
        (
            '{"op":"subscribe","id":"s","time":0,"query":{"kind":"k\\u006en","at":[0,0],"k":1}}',
            {"knn"},
        ),
        ('{"op":"subscr\\u0069be","id":"s","time":0,"qu\\u0065ry":{"kind":"kn\\u006E"}}', {"knn"}),
        ('{"op":"publish","id":"\\u0061","time":0,"at":[0,0],"text":"\\u672c knn"}', set()),
        ("no JSON at all \\u0061", set()),
    ],
)
def test_kinds_are_found_however_they_are_written(
    tmp_path: Path, event: Json | str, found: set[str]
) -> None:
    others = [publish(f"o{n}", n) for n in range(3)]
    split = lines(tmp_path / "log.jsonl", *others, event, *others)
    assert named_kinds(split, NAMES) == found
    assert named_kinds(split, ("range",)) == set()


@pytest.mark.parametrize("form", ["text", "struct"])
def test_kinds_are_found_in_columns(tmp_path: Path, form: str) -> None:
    queries = [None, KNN if form == "struct" else json.dumps(KNN)]
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({"op": ["publish", "subscribe"], "query": queries}), path)
    assert named_kinds(Split("parquet", str(path), "log", 0, 1), NAMES) == {"knn"}
    pq.write_table(pa.table({"op": ["publish"]}), path)
    assert named_kinds(Split("parquet", str(path), "log", 0, 1), NAMES) == set()
