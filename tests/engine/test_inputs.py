"""What a log may be: lines, packed, columns, several files at once, in any order; and bad ones."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.engine.contract import difference, expected, refused, reported, write_log

from nearcast.engine import Engine
from nearcast.model.space import Space
from nearcast.testing.logs import random_log
from nearcast.testing.reading import read_time

pytestmark = pytest.mark.spark

SCHEMA = pa.schema(
    [
        ("op", pa.string()),
        ("id", pa.string()),
        ("time", pa.int64()),
        ("at", pa.list_(pa.float64())),
        ("text", pa.string()),
        ("keywords", pa.list_(pa.string())),
        ("expires", pa.int64()),
        ("query", pa.string()),
        ("owner", pa.string()),
        ("meta", pa.string()),
    ]
)


def columns(event: dict[str, Any]) -> dict[str, Any]:
    """An event as a row: queries and metas as JSON, times as numbers."""
    row = dict(event)
    for name in ("time", "expires"):
        if row.get(name) is not None:
            row[name] = read_time(row[name])
    for name in ("query", "meta"):
        if name in row:
            row[name] = json.dumps(row[name])
    return row


def test_several_files_of_several_formats(tmp_path: Path, spark: SparkSession) -> None:
    """Their times interleave, one is in no order at all, two cannot be read."""
    rng = Random(1)
    events = random_log(21, Space.GEOGRAPHIC, 240)
    parts: dict[str, list[dict[str, Any]]] = {"a": [], "b": [], "c": [], "d": []}
    for event in events:
        parts[rng.choice("abcd")].append(event)
    rng.shuffle(parts["d"])
    logs = tmp_path / "logs"
    logs.mkdir()
    write_log(logs / "a.jsonl", parts["a"])
    with gzip.open(logs / "b.jsonl.gz", "wt") as file:
        file.write("".join(f"{json.dumps(e)}\n" for e in parts["b"]) + "not an event\n")
    table = pa.Table.from_pylist([columns(e) for e in parts["c"]], SCHEMA)
    pq.write_table(table, logs / "c.parquet", row_group_size=20)
    write_log(logs / "d.ndjson", [*parts["d"], "{"])
    (logs / "e.jsonl").mkdir()
    (logs / "f.parquet").write_bytes(b"PAR1 and nothing more")
    engine = Engine(shards=2, arena=str(tmp_path / "arena"), spark=spark)
    summary = engine.replay([logs], tmp_path / "out", batch_events=70)
    in_order = [event for part in parts.values() for event in part]
    assert difference(reported(tmp_path / "out"), expected(in_order, "geographic")) == ""
    assert summary["events"]["total"] == 240 + 4
    found = [(Path(r["file"]).name, r["line"], r["reason"]) for r in refused(tmp_path / "out")]
    assert [(name, line) for name, line, _ in found] == [
        ("b.jsonl.gz", len(parts["b"]) + 1),
        ("d.ndjson", len(parts["d"]) + 1),
        ("e.jsonl", 0),
        ("f.parquet", 0),
    ]
    assert "cannot be read" in found[2][2]
    assert "cannot be read" in found[3][2]


PUBLISH = {"op": "publish", "id": "o", "time": 50, "at": [0, 0]}
RING = [[-180, 60], [180, 60], [180, 90], [-180, 90], [-180, 60]]


def _range(name: str, region: dict[str, Any], where: str = "") -> dict[str, Any]:
    query = {"kind": "range", "region": region, "where": where}
    return {"op": "subscribe", "id": name, "time": 1, "query": query}


def _good() -> list[dict[str, Any]]:
    circle = [[100 + i / 100, (i % 2) * 0.001] for i in range(5001)]
    jagged = [*circle, [150, 30], [100, 30], circle[0]]
    world = {"bbox": [-180, -90, 180, 90]}
    fan = [[x / 100, 0] for x in range(10_000)] + [[50, 40], [0, 0]]
    return [
        _range("terms", world, " OR ".join(f"w{n}" for n in range(1000))),
        _range("nots", world, " AND ".join(f"NOT w{n}" for n in range(1000))),
        _range("jagged", {"type": "Polygon", "coordinates": [jagged]}),
        _range("fan", {"type": "Polygon", "coordinates": [fan]}),
        _range("pole", {"type": "Polygon", "coordinates": [RING]}),
        _range("south", {"circle": {"at": [0, -90], "radius": 2e6}}),
        *({**PUBLISH, "id": "same", "time": 90 - n, "at": [n, 89.5 - n]} for n in range(5)),
        {**PUBLISH, "id": "there", "at": [120, 10], "keywords": ["w7"]},
        {**PUBLISH, "id": "below", "at": [-170, -80], "keywords": ["w999", "x"]},
        {**PUBLISH, "id": "long", "text": "w1 padding " * 400_000},
    ]


BAD: list[tuple[bytes, str]] = [
    (b'{"op":"publish","id":"o","time":5', "not valid JSON"),
    (bytes(range(11, 256)), "not"),
    (b"\x00" * 50, "not valid JSON"),
    (b'{"op":"publish","id":"\xff\xfe","time":1,"at":[0,0]}', "not"),
    (b"x" * 10_000_000, "not valid JSON"),
    (b"[" * 200_000, "got 'array'"),
    (b'{"a":' * 200_000, "nested too deeply"),
    (b'{"op":"subscribe","id":"s","time":1,"meta":' + b'{"a":' * 9000 + b"1" + b"}" * 9001, "deep"),
    (b'{"op":"publish","id":"o","time":1,"at":[NaN,0]}', "not valid JSON"),
    (b'{"op":"publish","id":"o","time":1,"at":[1e999,0]}', "at"),
    (b'{"op":"publish","id":"o","time":1,"at":[0,-Infinity]}', "not valid JSON"),
    (b'{"op":"publish","id":"o","time":1,"at":[0,90.1]}', "90"),
    (b'{"op":"publish","id":"","time":1,"at":[0,0]}', "id"),
    (b'{"op":"publish","id":"o","time":99999999999999999999,"at":[0,0]}', "time"),
    (b'{"op":"fly","id":"o","time":1}', "op"),
    (b'{"op":"subscribe","id":"s","time":1,"query":{"kind":"circle"}}', "query.kind"),
    (json.dumps(_range("s", {"bbox": [0, 1, 1, 0]})).encode(), "bbox"),
    (json.dumps(_range("s", {"bbox": [0, 0, 1, 1]}, "a AND (")).encode(), "query.where"),
    (b"7", "an event must be a JSON object"),
]


def test_bad_events_are_refused_and_the_rest_goes_on(tmp_path: Path, spark: SparkSession) -> None:
    good = _good()
    logs = tmp_path / "logs"
    logs.mkdir()
    lines: list[bytes] = []
    where: list[int] = []
    for n in range(max(len(good), len(BAD))):
        if n < len(BAD):
            lines.append(BAD[n][0].replace(b"\n", b""))
            where.append(len(lines))
        lines.append(b"")  # blank lines are no events
        if n < len(good):
            lines.append(json.dumps(good[n]).encode())
    log = logs / "mixed.jsonl"
    log.write_bytes(b"\n".join(lines))
    (logs / "torn.jsonl.gz").write_bytes(gzip.compress(b'{"op":"unsubscribe"' * 9)[:-12])
    engine = Engine(shards=2, arena=str(tmp_path / "arena"), spark=spark)
    summary = engine.replay([logs], tmp_path / "out", batch_events=20)
    wanted = expected(good, "geographic")
    assert wanted.total() > 10
    assert difference(reported(tmp_path / "out"), wanted) == ""
    found = refused(tmp_path / "out")
    mine = [r for r in found if r["file"] == str(log)]
    assert [r["line"] for r in mine] == where
    for reject, (line, reason) in zip(mine, BAD, strict=True):
        assert reason in reject["reason"], line[:60]
        assert "\n" not in reject["reason"]
        assert len(reject["event"]) <= 200
    assert len(found) > len(mine)  # the packed file
    assert summary["events"]["total"] == len(good) + len(found)
