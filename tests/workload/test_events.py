"""Event batches as JSONL and Parquet."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nearcast.workload import (
    PLACE,
    SCHEMA,
    START_MS,
    Objects,
    Subscriptions,
    knn_subscriptions,
    publish_events,
    range_subscriptions,
    subscribe_events,
    unsubscribe_events,
    write_jsonl,
    write_parquet,
)
from nearcast.workload.events import batch, regrouped
from nearcast.workload.jsontext import json_lines


def times(n: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.arange(START_MS, START_MS + n)


def lines(events: pa.RecordBatch) -> list[dict[str, object]]:
    return [json.loads(line) for line in bytes(json_lines(events)).splitlines()]


def names(ids: np.ndarray[tuple[int], np.dtype[np.int32]]) -> list[str]:
    return list(PLACE.words(ids).to_pylist())


def test_publish(rng: np.random.Generator) -> None:
    objects: Objects = PLACE.objects(50, rng)
    found = lines(publish_events(PLACE, objects, 7, times(50)))
    for i, event in enumerate(found):
        words = objects.keywords[objects.offsets[i] : objects.offsets[i + 1]]
        assert event == {
            "op": "publish",
            "id": f"o{7 + i}",
            "time": START_MS + i,
            "at": [objects.lon[i], objects.lat[i]],
            "keywords": names(words),
        }


def where(subs: Subscriptions, i: int) -> str:
    words = subs.keywords[subs.offsets[i] : subs.offsets[i + 1]]
    return (" AND ", " OR ")[subs.operator[i]].join(names(words))


def test_subscribe_knn(rng: np.random.Generator) -> None:
    subs = knn_subscriptions(PLACE, 50, 10, rng)
    assert subs.k is not None
    for i, event in enumerate(lines(subscribe_events(PLACE, subs, 3, times(50)))):
        query = {
            "kind": "knn",
            "at": [subs.lon[i], subs.lat[i]],
            "k": subs.k[i],
            "where": where(subs, i),
        }
        assert event == {
            "op": "subscribe",
            "id": f"s{3 + i}",
            "time": START_MS + i,
            "query": query,
        }


def test_subscribe_range(rng: np.random.Generator) -> None:
    subs = range_subscriptions(PLACE, 50, rng)
    assert subs.bbox is not None
    for i, event in enumerate(lines(subscribe_events(PLACE, subs, 0, times(50)))):
        region = {"bbox": subs.bbox[i].tolist()}
        assert event["query"] == {"kind": "range", "region": region, "where": where(subs, i)}


def test_unsubscribe() -> None:
    found = lines(unsubscribe_events(np.array([4]), np.array([9])))
    assert found == [{"op": "unsubscribe", "id": "s4", "time": 9}]


ODD = {
    "op": pa.array(["publish", "publish", "ask", "subscribe"]),
    "id": pa.array(['quo"te', "back\\slash", "tab\t", "é"]),
    "time": pa.array([1, -2, 3, 4]),
    "at": pa.array([[1.0, -0.5], [1e-7, 180.0], None, None], pa.list_(pa.float64())),
    "keywords": pa.array([["a b", 'c"'], [], None, None], pa.list_(pa.string())),
    "text": pa.array(["line\nbreak", "", None, None]),
    "last": pa.array([None, None, 5, None], pa.int64()),
    "query": pa.array([None, None, '{"kind":"terms"}', '{"kind":"knn"}']),
    "meta": pa.array([None, None, None, '{"a":[1,{"b":null}]}']),
}


def expected_odd() -> list[dict[str, object]]:
    rows = batch(4, **ODD).to_pylist()
    for row in rows:
        for name in ("query", "meta"):
            row[name] = None if row[name] is None else json.loads(row[name])
    return [{k: v for k, v in row.items() if v is not None} for row in rows]


def test_awkward_strings_and_nulls() -> None:
    assert lines(batch(4, **ODD)) == expected_odd()


def test_a_slice_of_a_batch_is_that_slice() -> None:
    assert lines(batch(4, **ODD).slice(1, 2)) == expected_odd()[1:3]


def test_an_empty_batch_is_no_line() -> None:
    assert bytes(json_lines(batch(0))) == b""


def stream(seed: int, sizes: tuple[int, ...] = (30, 50, 1)) -> Iterator[pa.RecordBatch]:
    rng = np.random.default_rng(seed)
    first = 0
    for n in sizes:
        yield publish_events(PLACE, PLACE.objects(n, rng), first, times(n))
        first += n


def test_files_hold_the_same_events(tmp_path: Path) -> None:
    reported: list[int] = []
    assert write_jsonl(tmp_path / "e.jsonl", stream(1), reported.append) == 81
    assert reported == [30, 80, 81]
    assert write_jsonl(tmp_path / "e.jsonl.gz", stream(1)) == 81
    assert write_parquet(tmp_path / "e.parquet", stream(1), reported.append) == 81
    assert reported[3:] == [81]
    plain = (tmp_path / "e.jsonl").read_bytes()
    assert gzip.decompress((tmp_path / "e.jsonl.gz").read_bytes()) == plain
    rows = pq.read_table(tmp_path / "e.parquet").to_pylist()
    assert [json.loads(line) for line in plain.splitlines()] == [
        {k: v for k, v in row.items() if v is not None} for row in rows
    ]


def test_parquet_layout(tmp_path: Path) -> None:
    write_parquet(tmp_path / "e.parquet", stream(1))
    file = pq.ParquetFile(tmp_path / "e.parquet")
    assert file.schema_arrow.equals(SCHEMA)
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"


def test_row_groups_are_full_but_the_last() -> None:
    tables = list(regrouped(stream(1, (30, 50, 1, 9)), 40))
    assert [t.num_rows for t in tables] == [40, 40, 10]
    assert pa.concat_tables(tables).equals(pa.Table.from_batches(stream(1, (30, 50, 1, 9))))


@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz", "parquet"])
def test_bytes_depend_on_the_seed_alone(tmp_path: Path, suffix: str) -> None:
    write = write_parquet if suffix == "parquet" else write_jsonl
    contents = []
    for i, seed in enumerate((1, 1, 2)):
        path = tmp_path / f"{i}.{suffix}"
        write(path, stream(seed))
        contents.append(path.read_bytes())
    assert contents[0] == contents[1] != contents[2]
