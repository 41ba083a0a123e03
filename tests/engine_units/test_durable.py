"""What is written is on the disk before anything relies on it: bytes first, then names."""

from __future__ import annotations

import os
from pathlib import Path
from unittest.mock import ANY

import numpy as np
import pyarrow as pa
import pytest

from nearcast.engine.feed.source import Feed
from nearcast.engine.output.batch_files import BatchFiles, commit
from nearcast.kinds import KINDS
from nearcast.wire.durable import write_atomic
from nearcast.wire.parquet import CodedWriter, Column
from nearcast.wire.split import Split
from nearcast.wire.tables import REJECTS

Seen = list[tuple[str, int, list[str]]]


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """Each sync: what, how many bytes it had on the way to the disk, what names it held."""
    seen: Seen = []

    def sync(handle: int) -> None:
        path = Path(f"/proc/self/fd/{handle}").readlink()
        names = sorted(p.name for p in path.iterdir()) if path.is_dir() else []
        seen.append((str(path), os.fstat(handle).st_size, names))

    monkeypatch.setattr(os, "fsync", sync)
    return seen


def test_a_file_then_its_name(tmp_path: Path, synced: Seen) -> None:
    write_atomic(tmp_path / "new" / "inside" / "a.bin", b"12345")
    folders = [path for path, _, names in synced if names]
    assert [Path(f).name for f in folders] == [tmp_path.name, "new", "inside"]
    assert [size for _, size, names in synced if not names] == [5]
    assert synced[-1][2] == ["a.bin"]


def test_rejects_then_their_names(tmp_path: Path, synced: Seen) -> None:
    row = {"pos": 1, "file": "f", "line": 1, "reason": "id: missing", "event": "{}"}
    table = pa.RecordBatch.from_pylist([row], schema=REJECTS)
    [(final, temporary)] = BatchFiles(tmp_path, "jsonl", 0, 0, KINDS).rejects(table).items()
    size = Path(temporary).stat().st_size
    assert size > 0
    assert synced == [(temporary, size, [])], "all bytes, none left in a buffer"
    commit(tmp_path, {final: temporary})
    path, _, names = synced[-1]
    assert (Path(path).name, names) == ("rejected", [Path(final).name])


def test_a_spool_then_the_batch_that_names_it(tmp_path: Path, synced: Seen) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    (spool / "0.jsonl").write_bytes(b"{}\n")
    splits = [Split("jsonl", str(spool / "0.jsonl"), "a"), Split("jsonl", "/elsewhere/a", "a")]
    Feed(tmp_path).add(0, splits)
    assert synced[:2] == [(str(spool / "0.jsonl"), 3, []), (str(spool), ANY, ["0.jsonl"])]
    assert synced[-1][2] == ["000000000000.json"]


def test_parquet_is_whole_when_it_is_synced(tmp_path: Path, synced: Seen) -> None:
    path = tmp_path / "rows.parquet"
    schema = pa.schema([pa.field("time", pa.int64(), nullable=False)])
    with CodedWriter(path, schema) as writer:
        writer.write([Column(np.arange(5), 5)], 5)
    assert synced == [(str(path), path.stat().st_size, [])]
