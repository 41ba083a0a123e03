"""The route step: who gets which subscribe, which end, which object."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from nearcast.engine.options.settings import Settings
from nearcast.engine.route.envelope import Envelope, unpack
from nearcast.engine.route.step import RouteStep
from nearcast.kernels.slots import REPLACED, REPORTS, SUBSCRIBE, UNSUBSCRIBE
from nearcast.kinds import KINDS
from nearcast.model.space import Space
from nearcast.wire.decode import Decoded
from nearcast.wire.jsonl import decode_jsonl
from nearcast.wire.tables import ENDS, from_bytes

Json = dict[str, Any]
SHARDS = 3
RANGE = {"kind": "range", "region": {"bbox": [0, 0, 1, 1]}, "where": "a OR b"}
KNN = {"kind": "knn", "at": [0, 0], "k": 1, "where": "a"}
LOG: list[Json] = [
    {"op": "subscribe", "id": f"s{n}", "time": n, "query": RANGE if n % 2 else KNN}
    for n in range(12)
]
LOG += [{"op": "unsubscribe", "id": f"s{n}", "time": 20 + n} for n in range(0, 12, 3)]
LOG += [{"op": "publish", "id": f"o{n}", "time": n, "at": [n, 0]} for n in range(4)]


def decoded(log: list[Json], more: str = "") -> Decoded:
    lines = "\n".join(json.dumps(e) for e in log) + "\n" + more
    return decode_jsonl(lines.encode(), Space.PLANAR, KINDS, split=5)


def step(folder: Path, range_: str, knn: str) -> RouteStep:
    strategies = {"range": range_, "knn": knn}
    return RouteStep(Settings(shards=SHARDS, strategies=strategies), str(folder), 0)


def shares(folder: Path, range_: str, knn: str) -> list[list[Json]]:
    """The rows for each shard: subscribes of all kinds, and ends; as `Events.of` sorts them."""
    return [
        sorted((r for table in tables for r in table.to_pylist()), key=lambda r: r["pos"])
        for tables in dealt(folder, range_, knn)
    ]


def dealt(folder: Path, range_: str, knn: str) -> list[list[pa.RecordBatch]]:
    """The tables for each shard."""
    subscribes, ends = step(folder, range_, knn)._deal(decoded(LOG))
    assert len(subscribes) == len(ends) == SHARDS
    for tables, some in zip(subscribes, ends, strict=True):
        assert all(table.schema == KINDS[kind].schema for kind, table in tables.items())
        assert some.schema == ENDS  # none of the columns of a subscription
    return [[*t.values(), some] for t, some in zip(subscribes, ends, strict=True)]


def by_id(rows: list[Json]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for row in rows:
        found.setdefault(row["id"].decode(), []).append(row["op"])
    return found


def test_with_one_home_everything_of_an_id_goes_there(tmp_path: Path) -> None:
    found = [by_id(rows) for rows in shares(tmp_path, "hash", "hash")]
    for n in range(12):
        mine = [f[f"s{n}"] for f in found if f"s{n}" in f]
        assert mine == [[SUBSCRIBE, UNSUBSCRIBE] if n % 3 == 0 else [SUBSCRIBE]]


@pytest.mark.parametrize(
    ("range_", "knn"), [("hash", "random"), ("random", "random"), ("hash", "broadcast")]
)
def test_otherwise_ends_go_everywhere(tmp_path: Path, range_: str, knn: str) -> None:
    """An id may have stood anywhere before, under another kind."""
    for rows in shares(tmp_path, range_, knn):
        found = by_id(rows)
        for n in range(12):
            ops = found[f"s{n}"]
            assert ops[0] in (SUBSCRIBE, REPLACED)
            assert ops[1:] == ([UNSUBSCRIBE] if n % 3 == 0 else [])


@pytest.mark.parametrize("range_", ["hash", "random", "broadcast"])
@pytest.mark.parametrize("knn", ["hash", "random", "broadcast"])
def test_one_copy_of_each_subscription_reports(tmp_path: Path, range_: str, knn: str) -> None:
    found = shares(tmp_path, range_, knn)
    for n, event in enumerate(LOG[:12]):
        copies = [
            r for rows in found for r in rows if r["op"] == SUBSCRIBE and r["id"] == b"s%d" % n
        ]
        strategy = range_ if event["query"]["kind"] == "range" else knn
        assert len(copies) == (SHARDS if strategy == "broadcast" else 1)
        assert sum(bool(r["flags"] & REPORTS) for r in copies) == 1


def test_copies_are_whole_and_mere_ends_are_light(tmp_path: Path) -> None:
    d = decoded(LOG)
    right = {r["pos"]: r for t in (*d.subscribes.values(), d.ends) for r in t.to_pylist()}
    assert len(right) == d.events["subscribe"] + d.events["unsubscribe"] == 16
    for rows in shares(tmp_path, "hash", "broadcast"):
        for row in rows:
            whole = right[row["pos"]]
            if row["op"] == SUBSCRIBE:
                assert row | {"flags": 0} == whole | {"flags": 0}
                assert row["flags"] | REPORTS == whole["flags"]
            else:
                assert list(row) == ENDS.names
                assert row == {name: whole[name] for name in ENDS.names} | {"op": row["op"]}


@pytest.mark.parametrize("strategies", [("hash", "hash"), ("random", "broadcast")])
def test_shares_keep_the_order_of_the_log(tmp_path: Path, strategies: tuple[str, str]) -> None:
    for tables in dealt(tmp_path, *strategies):
        for table in tables:
            at = table["pos"].to_pylist()
            assert at == sorted(at)


def test_nothing_to_deal(tmp_path: Path) -> None:
    subscribes, ends = step(tmp_path, "hash", "random")._deal(decoded(LOG[-4:]))
    assert subscribes == [{}] * SHARDS
    assert [t.num_rows for t in ends] == [0] * SHARDS


def envelopes(folder: Path, d: Decoded, final: bool = False) -> list[Envelope]:
    found = list(step(folder, "hash", "hash").envelopes(d, 5, final))
    assert [shard for shard, _ in found] == list(range(SHARDS))
    return [unpack(data) for _, data in found]


def controls(e: Envelope) -> int:
    """How many subscribes and ends an envelope holds."""
    subscribes = [from_bytes(e.subscribes[k], KINDS[k].schema) for k in e.subscribes]
    return sum(table.num_rows for table in (*subscribes, e.end_table))


def test_every_shard_hears_of_every_split(tmp_path: Path) -> None:
    d = decoded(LOG, "junk")
    found = envelopes(tmp_path, d)
    assert [e.split for e in found] == [5] * SHARDS
    assert [e.latest for e in found] == [29] * SHARDS
    assert [e.final for e in found] == [False] * SHARDS
    for e in found:  # all objects to every shard
        assert e.object_table.equals(d.objects)
    # Counts and rejects are reported once.
    assert [e.events for e in found] == [dict(d.events), {}, {}]
    assert [e.reject_table.num_rows for e in found] == [1, 0, 0]
    assert sum(map(controls, found)) == 16
    for kind in KINDS.values():
        mine = [
            from_bytes(e.subscribes[kind.name], kind.schema)
            for e in found
            if kind.name in e.subscribes
        ]
        rows = sorted((r for t in mine for r in t.to_pylist()), key=lambda r: r["pos"])
        sent = d.subscribes.get(kind.name)
        assert rows == (sent.to_pylist() if sent is not None else [])


def test_an_empty_split_is_heard_of_too(tmp_path: Path) -> None:
    found = envelopes(tmp_path, decoded([]), final=True)
    assert [e.object_table.num_rows + controls(e) for e in found] == [0] * SHARDS
    assert [e.final for e in found] == [True] * SHARDS
