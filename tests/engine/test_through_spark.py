"""The whole pipeline on one Spark session: every source and sink, compared with the oracle."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.engine.contract import difference, expected, refused, told, write_log

from nearcast.engine import Engine
from nearcast.model.space import Space
from nearcast.testing.logs import random_log

pytestmark = pytest.mark.spark
EVENTS = 240


@pytest.mark.parametrize(
    ("range_", "knn", "shards", "batch", "space"),
    [
        ("broadcast", "broadcast", 3, 60, "geographic"),
        ("hash+pyramid", "hash", 1, EVENTS, "planar"),
        ("hash+pyramid", "hash", 2, 35, "geographic"),
        ("hash+inverted", "broadcast", 5, 80, "geographic"),
        ("random", "random", 5, 40, "planar"),
        ("random+pyramid", "hash", 3, 50, "geographic"),
    ],
)
def test_any_strategy_shards_and_batches(
    spark: SparkSession,
    tmp_path: Path,
    range_: str,
    knn: str,
    shards: int,
    batch: int,
    space: str,
) -> None:
    log = random_log(shards * 100 + batch, Space(space), EVENTS, late=0.3, late_controls=True)
    strategies = {"range": range_, "knn": knn}
    engine = Engine(spark=spark, space=space, shards=shards, strategies=strategies)
    path = write_log(tmp_path / "log.jsonl", log)
    summary = engine.replay([path], tmp_path / "out", batch_events=batch)
    assert difference(told(tmp_path / "out"), expected(log, space)) == ""
    assert summary["events"]["total"] == EVENTS
    assert summary["notifications"]["total"] == told(tmp_path / "out").total()
    assert [s["shard"] for s in summary["shards"]] == list(range(shards))
    assert json.loads((tmp_path / "out/summary.json").read_text()) == summary


def in_columns(events: list[dict[str, Any]]) -> pa.Table:
    """Events as Parquet columns, queries as JSON text."""
    rows = [
        {k: json.dumps(v) if k in ("query", "meta") else v for k, v in e.items()} for e in events
    ]
    for row in rows:
        row["time"] = str(row["time"]) if isinstance(row["time"], str) else row["time"]
    rows = [r for r in rows if not isinstance(r["time"], str)]
    names = ["op", "id", "time", "at", "text", "keywords", "query", "expires", "owner", "meta"]
    text = {"op", "id", "text", "query", "owner", "meta"}
    types = {n: pa.string() for n in text} | {"time": pa.int64(), "expires": pa.int64()}
    types |= {"at": pa.list_(pa.float64()), "keywords": pa.list_(pa.string())}
    columns = {n: pa.array([r.get(n) for r in rows], types[n]) for n in names}
    return pa.table(columns)


def plain_times(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        e
        for e in events
        if not isinstance(e["time"], str) and not isinstance(e.get("expires"), str)
    ]


def test_formats_and_files_together(spark: SparkSession, tmp_path: Path) -> None:
    """Parquet, gzip and plain lines, their times interleaved; Parquet out; then on from there."""
    log = plain_times(random_log(9, Space.GEOGRAPHIC, 300, late=0.5, late_controls=True))
    folder = tmp_path / "logs"
    folder.mkdir()
    third = len(log) // 3
    pq.write_table(in_columns(log[:third]), folder / "a.parquet", row_group_size=20)
    packed = "".join(json.dumps(e) + "\n" for e in log[third : 2 * third]).encode()
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(packed))
    write_log(folder / "c.jsonl", log[2 * third :])
    (folder / "d.parquet").write_bytes(b"no parquet at all")
    engine = Engine(spark=spark, shards=3, format="parquet")
    out, state = tmp_path / "out", tmp_path / "state"
    engine.replay([folder], out, checkpoint=state, batch_events=50)
    assert difference(told(out), expected(log, "geographic")) == ""
    assert [(Path(r["file"]).name, r["line"]) for r in refused(out)] == [("d.parquet", 0)]
    assert "cannot be read" in refused(out)[0]["reason"]
    # The same again changes nothing; a new log goes on with the subscriptions of the first.
    engine.replay([folder], out, checkpoint=state, batch_events=50)
    assert difference(told(out), expected(log, "geographic")) == ""
    last = max(e["time"] for e in log)
    more = [
        {**e, "id": f"later-{n}", "time": last + 1 + n}
        for n, e in enumerate(e for e in log if e["op"] == "publish")
    ]
    engine.replay([write_log(tmp_path / "more.jsonl", more)], out, checkpoint=state)
    assert difference(told(out), expected(log + more, "geographic")) == ""


def test_net_changes(spark: SparkSession, tmp_path: Path) -> None:
    """Per subscription and batch, the difference of the result: what `every` adds up to."""
    log = [e for e in random_log(4, Space.PLANAR, EVENTS) if e["op"] != "unsubscribe"]
    log = [e for e in log if e["op"] == "publish" or e["query"]["kind"] == "knn"]
    path = write_log(tmp_path / "log.jsonl", log)
    for changes in ("every", "net"):
        engine = Engine(spark=spark, space="planar", shards=2, changes=changes)
        engine.replay([path], tmp_path / changes, batch_events=50)

    def balance(out: Path) -> dict[str, Counter[tuple[str, str]]]:
        sums: dict[str, Counter[tuple[str, str]]] = {}
        for file in sorted((out / "notifications").iterdir()):
            for line in file.read_text().splitlines():
                n = json.loads(line)
                sign = {"enter": 1, "leave": -1}[n["event"]]
                batch = sums.setdefault(file.name, Counter())
                batch[n["id"], n["object"]] += sign
        return {k: Counter({p: n for p, n in v.items() if n}) for k, v in sums.items()}

    every, net = balance(tmp_path / "every"), balance(tmp_path / "net")
    assert {k: v for k, v in every.items() if v} == {k: v for k, v in net.items() if v}
    assert told(tmp_path / "net").total() < told(tmp_path / "every").total()


def test_bad_input(spark: SparkSession, tmp_path: Path) -> None:
    """Every kind of broken line is refused with its number; all else goes on."""
    circle = [[i / 1000, (i % 7) / 1000] for i in range(5000)]
    ring = circle + [[x, 1 + y] for x, y in reversed(circle)]
    polygon = {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}
    pole = {"type": "Polygon", "coordinates": [[[0, 80], [90, 95], [180, 80], [0, 80]]]}
    terms = " OR ".join(f"w{i}" for i in range(1000))

    def subscribe(id_: str, region: Any, where: str = "") -> dict[str, Any]:
        query = {"kind": "range", "region": region, "where": where}
        return {"op": "subscribe", "id": id_, "time": 0, "query": query}

    world = {"bbox": [-180, -90, 180, 90]}
    good: list[dict[str, Any]] = [
        subscribe("big", polygon),
        subscribe("many", world, terms),
        subscribe("twice", world),
        subscribe("twice", {"bbox": [0, 0, 1, 1]}),
        {"op": "publish", "id": "o", "time": 5, "at": [2.5, 0.5], "text": "w999 " + "x" * 10**7},
        {"op": "publish", "id": "o", "time": 3, "at": [0.5, 0.5]},
    ]
    bad: list[bytes] = [
        b'{"op":"publish","id":"a","time":1,"at":[0,0]',
        b"\x00\x80\xff\xfe",
        b"[" * 200_000,
        b'{"op":"publish","id":"a","time":1,"at":[0,NaN]}',
        b'{"op":"publish","id":"a","time":1,"at":[0,1e999]}',
        b'{"op":"publish","id":"a","time":1,"at":[0,91]}',
        json.dumps(subscribe("p", pole)).encode(),
        json.dumps(subscribe("p", {"bbox": [0, 1, 1, 0]})).encode(),
        json.dumps(subscribe("p", world, "a AND (b")).encode(),
        b'{"op":"subscribe","id":"t","time":1,"query":{"kind":"topk","at":[0,0],"k":1,'
        b'"keywords":["a"],"alpha":0.5}}',
        b"x" * 10**7,
    ]
    lines = [
        line for pair in zip(bad, [*map(_bytes, good), *[b""] * 5], strict=True) for line in pair
    ]
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n")
    engine = Engine(spark=spark, shards=2)
    summary = engine.replay([path], tmp_path / "out", batch_events=6)
    assert difference(told(tmp_path / "out"), expected(good, "geographic")) == ""
    assert [r["line"] for r in refused(tmp_path / "out")] == [1 + 2 * n for n in range(len(bad))]
    assert all(r["reason"] and "\n" not in r["reason"] for r in refused(tmp_path / "out"))
    assert summary["rejects"] == len(bad)


def _bytes(event: dict[str, Any]) -> bytes:
    return json.dumps(event).encode()


def test_tail_of_a_folder(spark: SparkSession, tmp_path: Path) -> None:
    """Files that grow by half lines, appear, or cannot be read; a restart in the middle."""
    log = random_log(11, Space.GEOGRAPHIC, 150, late=0.3, late_controls=True)
    plain = [e for e in log if "expires" not in e and not isinstance(e["time"], str)]
    inbox, out, state = tmp_path / "in", tmp_path / "out", tmp_path / "state"
    inbox.mkdir()
    engine = Engine(spark=spark, shards=2)
    text = [json.dumps(e) + "\n" for e in plain]
    first, second, third = text[:40], text[40:80], text[80:]
    growing = inbox / "b.jsonl"

    run = engine.tail(inbox, out, state, trigger="0 seconds")
    with growing.open("w") as file:
        whole = "".join(first)
        for part in (whole[:500], whole[500:501], whole[501:]):
            file.write(part)
            file.flush()
            run.drain()
    run.stop()

    with growing.open("a") as file:
        file.write("".join(second) + '{"op":"publi')  # an end of line may come later
    run = engine.tail(inbox, out, state, trigger="0 seconds")
    run.drain()
    (inbox / "c.parquet").write_bytes(b"broken")
    packed = inbox / "d.jsonl.gz"
    packed.write_bytes(gzip.compress("".join(third).encode()))
    run.drain()
    run.drain()  # packed files are taken at the second look
    summary = run.stop()
    assert difference(told(out), expected(plain, "geographic", "arrival")) == ""
    assert [Path(r["file"]).name for r in refused(out)] == ["c.parquet"]
    assert summary["events"]["total"] == len(plain) + 1


def test_streaming_dataframe(spark: SparkSession, tmp_path: Path) -> None:
    """Columns of events in, a streaming DataFrame of notifications out; `value` rows as Kafka's."""
    log = plain_times(random_log(12, Space.GEOGRAPHIC, 120))
    log = [{k: v for k, v in e.items() if k not in ("meta", "owner")} for e in log]
    for n, shape in enumerate(("columns", "value")):
        folder, out = tmp_path / shape, tmp_path / f"out-{shape}"
        folder.mkdir()
        if shape == "columns":
            schema = (
                "op string, id string, time long, at array<double>, text string, "
                "keywords array<string>, query string, expires long"
            )
            rows = [{**e, "query": json.dumps(e["query"])} if "query" in e else e for e in log]
            stream = spark.readStream.schema(schema).json(str(folder))
        else:
            rows = log
            stream = spark.readStream.text(str(folder))
        engine = Engine(spark=spark, shards=2 + n, format="parquet" if n else "jsonl")
        run = engine.run(stream, out, tmp_path / f"state-{shape}", trigger="0 seconds")
        seen: list[str] = []
        query = (
            run.notifications.select("id", "event", "object", "time")
            .writeStream.foreachBatch(lambda d, _: seen.extend(map(str, d.collect())))  # noqa: B023
            .option("checkpointLocation", str(tmp_path / f"seen-{shape}"))
            .start()
        )
        half = len(rows) // 2
        for name, part in (("1.json", rows[:half]), ("2.json", rows[half:])):
            write_log(folder / f".{name}", part).rename(folder / name)
            run.drain()
        query.processAllAvailable()
        query.stop()
        run.stop()
        wanted = expected(log, "geographic", "arrival")
        assert difference(told(out), wanted) == ""
        assert len(seen) == wanted.total()


def test_shards_are_state_partitions(spark: SparkSession) -> None:
    """The keys that stand for shards go to the partitions of the same numbers."""
    from nearcast.engine.session import shard_keys

    for shards in (1, 2, 3, 5, 16, 100):
        keys = spark.createDataFrame([(k,) for k in shard_keys(shards)], "k int")
        rows = keys.selectExpr(f"pmod(hash(k), {shards}) AS p").collect()
        assert [r.p for r in rows] == list(range(shards))
