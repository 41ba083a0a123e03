"""pyarrow, GeoPandas and DuckDB read the files as they are."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import geopandas
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import shapely
from tests.objects.archive.posts import RUN, some, stored_of, write_batch
from tests.objects.making import Post

from nearcast.kernels.hashing import word_hash
from nearcast.model.space import Space
from nearcast.objects.archive import Archive, file_paths

POSTS = [
    Post(139.7, 35.66, 1_700_000_000_000, {"ramen": 2, "food": 1}, "o1", b'"Ramen"', b'["food"]'),
    Post(-180.0, -90.0, 1_700_000_000_001, {}, "o\\n2"),
]


@pytest.fixture(params=list(Space))
def space(request: pytest.FixtureRequest) -> Space:
    found: Space = request.param
    return found


@pytest.fixture
def folder(tmp_path: Path, space: Space) -> Path:
    write_batch(Archive(tmp_path, space, RUN), 0, [stored_of(POSTS)])
    return tmp_path


def test_the_metadata_is_that_of_geoparquet(folder: Path, space: Space) -> None:
    schema = pq.read_schema(file_paths(folder)[0])
    geo = json.loads(schema.metadata[b"geo"])
    column = geo["columns"]["geometry"]
    assert (geo["version"], geo["primary_column"]) == ("1.1.0", "geometry")
    assert column.pop("covering") == {
        "bbox": {name: ["bbox", name] for name in ("xmin", "ymin", "xmax", "ymax")}
    }
    assert column.pop("bbox") == [-180.0, -90.0, 139.7, 35.66]
    crs = {} if space is Space.GEOGRAPHIC else {"crs": None}
    assert column == {"encoding": "WKB", "geometry_types": ["Point"], **crs}
    assert schema.field("id").type == pa.string()
    assert schema.field("time").type == pa.int64()
    assert schema.field("geometry").type == pa.binary()
    assert [f.name for f in schema.field("bbox").type] == ["xmin", "ymin", "xmax", "ymax"]


def test_pyarrow_reads_plain_values(folder: Path) -> None:
    table = ds.dataset(folder, format="parquet", partitioning="hive").to_table()
    rows = sorted(table.to_pylist(), key=lambda r: r["rank"])
    one, two = rows
    assert (one["id"], one["text"], one["keywords"]) == ("o1", "Ramen", ["food"])
    assert (two["id"], two["text"], two["keywords"]) == ("o\n2", None, None)
    assert one["date"] == "2023-11-14"
    assert dict(zip(one["words"], one["counts"], strict=True)) == {
        word_hash("ramen"): 2,
        word_hash("food"): 1,
    }
    assert two["words"] == two["counts"] == two["firsts"] == []
    assert shapely.from_wkb(one["geometry"]) == shapely.Point(139.7, 35.66)


def test_a_box_of_a_row_is_never_too_small(tmp_path: Path, rng: np.random.Generator) -> None:
    far = [Post(x, -x) for x in (1e300, -1e300, 0.1, 1e-300, 16777217.0)]
    write_batch(Archive(tmp_path, Space.PLANAR, RUN), 0, [stored_of(far), some(rng, 50)])
    for path in file_paths(tmp_path):
        for row in pq.ParquetFile(path).read().to_pylist():
            box = row["bbox"]
            assert box["xmin"] <= row["x"] <= box["xmax"]
            assert box["ymin"] <= row["y"] <= box["ymax"]


def test_geopandas_reads_points_with_their_crs(folder: Path, space: Space) -> None:
    frame = geopandas.read_parquet(file_paths(folder)[0]).sort_values("rank")
    assert list(zip(frame.geometry.x, frame.geometry.y, strict=True)) == [(p.x, p.y) for p in POSTS]
    if space is Space.GEOGRAPHIC:
        assert frame.crs.to_authority() == ("OGC", "CRS84")
    else:
        assert frame.crs is None


def test_geopandas_reads_a_box_by_the_covering(folder: Path) -> None:
    frame = geopandas.read_parquet(file_paths(folder)[0], bbox=(139, 35, 140, 36))
    assert frame["id"].tolist() == ["o1"]


def test_duckdb_reads_all_files(folder: Path) -> None:
    found = (
        duckdb.connect()
        .execute(
            f"SELECT id, time, x, y, text, keywords, words, CAST(date AS VARCHAR) "
            f"FROM read_parquet('{folder}/date=*/*.parquet', hive_partitioning = true) "
            "ORDER BY rank"
        )
        .fetchall()
    )
    words = sorted(map(word_hash, ("ramen", "food")))
    assert found == [
        ("o1", POSTS[0].time, 139.7, 35.66, "Ramen", ["food"], words, "2023-11-14"),
        ("o\n2", POSTS[1].time, -180.0, -90.0, None, None, [], "2023-11-14"),
    ]
