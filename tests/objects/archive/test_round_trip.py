"""What is written comes back, bit by bit, whole or in part."""

from __future__ import annotations

import tempfile
from pathlib import Path

import hypothesis
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.objects.archive.posts import (
    RUN,
    everything,
    joined,
    posts,
    some,
    stored_of,
    write_batch,
)
from tests.objects.making import Post

from nearcast.kinds import KINDS
from nearcast.model.errors import NearcastError
from nearcast.model.space import Space
from nearcast.model.standing import Needs
from nearcast.objects.archive import Archive, file_paths, geoparquet, read, reading, scan
from nearcast.objects.archive.writing import DAY_MS
from nearcast.objects.base import STORED
from nearcast.wire.jsonl import decode_jsonl


@pytest.mark.parametrize("space", list(Space))
@given(st.data())
@hypothesis.settings(max_examples=60, deadline=None)
def test_all_objects_come_back_as_they_were(space: Space, data: st.DataObject) -> None:
    rows = data.draw(st.lists(posts(space), min_size=1, max_size=12))
    cut = data.draw(st.integers(0, len(rows)))
    tables = [stored_of(rows[:cut]), stored_of(rows[cut:], cut)]
    with tempfile.TemporaryDirectory() as name:
        archive = Archive(Path(name), space, RUN)
        write_batch(archive, 0, tables)
        assert everything(Path(name)).equals(joined(tables))
        after, until = sorted(data.draw(st.lists(st.sampled_from(_times(rows)), min_size=2)))[:2]
        box = data.draw(st.sampled_from([(0.0, 0.0, 180.0, 90.0), (-1.0, -90.0, 0.1, 0.0)]))
        found = read(Path(name), after, until, [box], len(rows) - 1)
        assert found["rank"].to_pylist() == [
            rank
            for rank, p in enumerate(rows[:-1])
            if after < p.time <= until and box[1] <= p.y <= box[3] and _in(space, p.x, box)
        ]


def _times(rows: list[Post]) -> list[int]:
    return [t + d for t in {p.time for p in rows} for d in (-1, 0)]


def _in(space: Space, x: float, box: tuple[float, float, float, float]) -> bool:
    if space is Space.GEOGRAPHIC and abs(x) == 180.0:
        return box[2] == 180.0
    return box[0] <= x <= box[2]


def test_what_a_decoded_log_has_comes_back(tmp_path: Path) -> None:
    lines = (
        b'{"op":"publish","id":"o\\t1","time":7,"at":[3,4],"text":"b \\"a\\" b","keywords":["c"]}\n'
        b'{"op":"publish","id":"o2","time":5,"at":[1,2]}\n'
        b'{"op":"publish","id":"o3","time":-5,"at":[180,2],"text":"","keywords":["\\",","d e"]}\n'
    )
    needs = Needs.COUNTS | Needs.FIELDS
    table = decode_jsonl(lines, Space.GEOGRAPHIC, KINDS, needs=needs).objects
    ranks = pa.array(range(table.num_rows), pa.int64())
    columns = [ranks if f.name == "rank" else table[f.name] for f in STORED]
    wanted = pa.RecordBatch.from_arrays(columns, schema=STORED)
    write_batch(Archive(tmp_path, Space.GEOGRAPHIC, RUN), 0, [wanted])
    assert everything(tmp_path).equals(wanted)


def test_a_day_ends_at_midnight_utc_also_before_1970(tmp_path: Path) -> None:
    times = [-DAY_MS - 1, -DAY_MS, -1, 0, DAY_MS - 1, DAY_MS]
    archive = Archive(tmp_path, Space.PLANAR, RUN)
    write_batch(archive, 0, [stored_of([Post(time=t) for t in times])])
    held = {file.date: file.times for file in archive.manifest.files}
    assert held == {
        "date=1969-12-30": (-DAY_MS - 1, -DAY_MS - 1),
        "date=1969-12-31": (-DAY_MS, -1),
        "date=1970-01-01": (0, DAY_MS - 1),
        "date=1970-01-02": (DAY_MS, DAY_MS),
    }


def test_the_meridian_of_180_is_one(tmp_path: Path) -> None:
    write_batch(
        Archive(tmp_path, Space.GEOGRAPHIC, RUN),
        0,
        [stored_of([Post(x=x) for x in (-180.0, 180.0, 179.0, -179.0, 0.0)])],
    )

    def ranks(*box: float) -> list[int]:
        found: list[int] = read(tmp_path, -1, 0, [box])["rank"].to_pylist()
        return found

    assert ranks(179.0, -1, 180.0, 1) == [0, 1, 2]
    assert ranks(-180.0, -1, -179.5, 1) == [0, 1]
    assert ranks(178.0, -1, -178.0, 1) == [0, 1, 2, 3]
    assert ranks(-1.0, -1, 1.0, 1) == [4]
    assert ranks(0, 1, 1, 2) == []


def test_only_files_and_row_groups_of_the_period_and_place_are_read(
    tmp_path: Path, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(geoparquet, "GROUP_ROWS", 64)
    archive = Archive(tmp_path, Space.GEOGRAPHIC, RUN)
    table = some(rng, 2048, days=2)
    write_batch(archive, 0, [table])
    read_rows: list[int] = []
    plain = reading._Wanted.rows

    def counting(wanted: reading._Wanted, table: pa.RecordBatch) -> object:
        read_rows.append(table.num_rows)
        return plain(wanted, table)

    monkeypatch.setattr(reading._Wanted, "rows", counting)
    everything(tmp_path)
    assert sum(read_rows) == 2048
    read_rows.clear()
    read(tmp_path, -1, DAY_MS - 1)
    assert sum(read_rows) < 1200  # about half of them are of that day
    read_rows.clear()
    found = read(tmp_path, -1, DAY_MS - 1, [(10, 10, 30, 20)])
    assert found.num_rows > 0
    assert sum(read_rows) <= 6 * 64  # of 16 row groups
    assert sum(t.num_rows for t in scan(tmp_path, -1, 2 * DAY_MS)) == 2048


def test_an_archive_without_objects_gives_none(tmp_path: Path) -> None:
    archive = Archive(tmp_path, Space.PLANAR, RUN)
    write_batch(archive, 0, [stored_of([])])
    assert everything(tmp_path).equals(stored_of([]))
    assert file_paths(tmp_path) == []


def test_errors_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(NearcastError, match="no archive here"):
        everything(tmp_path)
    archive = Archive(tmp_path, Space.PLANAR, RUN)
    write_batch(archive, 0, [stored_of([Post()])])
    with pytest.raises(NearcastError, match="of another run; choose an empty folder"):
        Archive(tmp_path, Space.PLANAR, "run-2")
    with pytest.raises(NearcastError, match="archive of planar space"):
        Archive(tmp_path, Space.GEOGRAPHIC, RUN)
    file_paths(tmp_path)[0].write_bytes(b"PAR1")
    with pytest.raises(NearcastError, match="restore this file"):
        everything(tmp_path)
    manifest = tmp_path / "_manifest.json"
    manifest.write_text(manifest.read_text().replace('"format":1', '"format":9'))
    with pytest.raises(NearcastError, match="another format"):
        everything(tmp_path)
    manifest.write_text("[]")
    with pytest.raises(NearcastError, match="not the manifest"):
        everything(tmp_path)
    manifest.unlink()
    with pytest.raises(NearcastError, match=r"no _manifest\.json says which of them count"):
        Archive(tmp_path, Space.PLANAR, RUN)
