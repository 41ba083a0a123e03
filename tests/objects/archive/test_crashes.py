"""A kill at any step, repeats, and a full disk: each object of a finished batch is there once."""

from __future__ import annotations

import errno
import itertools
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.objects.archive.posts import RUN, everything, joined, some, write_batch

from nearcast.model.errors import NearcastError
from nearcast.model.space import Space
from nearcast.objects.archive import Archive, ArchiveWriter, file_paths, merging

STEPS = ("replace", "fsync", "mkdir", "unlink")


class Killed(BaseException):
    """The process is gone."""


@contextmanager
def dies_at(step: int, done: bool) -> Iterator[None]:
    """Dies at a step on the disk, before or after it is done. A dead process does no more."""
    count = itertools.count()
    plain = {name: getattr(os, name) for name in STEPS}

    def dying(name: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            now = next(count)
            if now < step or (now == step and done):
                result = plain[name](*args, **kwargs)
                if now < step:
                    return result
            raise Killed

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in STEPS:
            patch.setattr(os, name, dying(name))
        yield


def run(folder: Path, tables: list[pa.RecordBatch], first: int) -> None:
    """Batches from one on, of two shards, merging in between, as a driver would."""
    archive = Archive(folder, Space.GEOGRAPHIC, RUN)
    for batch in range(first, len(tables) // 2):
        write_batch(archive, batch, tables[2 * batch : 2 * batch + 2])
        archive.merge()


@pytest.fixture
def small_merges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "_MANY", 3)


@pytest.fixture
def tables(rng: np.random.Generator) -> list[pa.RecordBatch]:
    return [some(rng, 3, days=2, first_rank=3 * n) for n in range(6)]


def check_files(folder: Path) -> None:
    """The archive has the files that its manifest names, and nothing else."""
    there = {p for p in folder.rglob("*") if p.is_file()}
    assert there == {folder / "_manifest.json", *file_paths(folder)}


@pytest.mark.usefixtures("small_merges")
def test_a_kill_at_any_step_loses_and_repeats_nothing(
    tmp_path: Path, tables: list[pa.RecordBatch]
) -> None:
    wanted = joined(tables)
    died = 0
    for step in itertools.count():
        ended = False
        for done in (False, True):
            folder = tmp_path / f"{step}-{done}"
            try:
                with dies_at(step, done):
                    run(folder, tables, 0)
                ended = True
            except Killed:
                died += 1
            check_whole_batches(folder, wanted)
            # Spark repeats the last batch also if the archive has it.
            last = Archive(folder, Space.GEOGRAPHIC, RUN).manifest.batch
            check_files(folder)
            run(folder, tables, max(last, 0))
            assert everything(folder).equals(wanted)
            Archive(folder, Space.GEOGRAPHIC, RUN)
            check_files(folder)
        if ended:
            break
    assert died > 100  # or the steps are no longer caught


def check_whole_batches(folder: Path, wanted: pa.RecordBatch) -> None:
    """A reader after the kill, before any restart, sees all batches up to one, once each."""
    try:
        found = everything(folder)
    except NearcastError as error:
        assert "no archive here" in str(error)
        return
    assert found.num_rows % 6 == 0
    assert found.equals(wanted.slice(0, found.num_rows))


def test_a_batch_that_is_not_committed_is_not_there(
    tmp_path: Path, tables: list[pa.RecordBatch]
) -> None:
    archive = Archive(tmp_path, Space.GEOGRAPHIC, RUN)
    writer = ArchiveWriter(tmp_path, Space.GEOGRAPHIC)
    lost, kept = (writer.write(0, 0, tables[0]) for _ in range(2))
    assert [p.file.name for p in lost] == [p.file.name for p in kept]
    assert everything(tmp_path).num_rows == 0
    archive.commit(0, kept)
    archive.commit(0, lost)  # the other attempt
    archive.commit(0, kept)
    assert everything(tmp_path).equals(tables[0])
    check_files(tmp_path)


@pytest.mark.usefixtures("small_merges")
def test_a_repeat_of_a_batch_that_is_merged_adds_nothing(
    tmp_path: Path, tables: list[pa.RecordBatch]
) -> None:
    run(tmp_path, tables, 0)
    assert any(path.name.startswith("c") for path in file_paths(tmp_path))
    run(tmp_path, tables, 0)
    assert everything(tmp_path).equals(joined(tables))
    check_files(tmp_path)


def test_half_a_file_is_removed_at_the_next_start_and_what_others_put_there_stays(
    tmp_path: Path, tables: list[pa.RecordBatch]
) -> None:
    run(tmp_path, tables, 0)
    folder = file_paths(tmp_path)[0].parent
    (tmp_path / "_tmp" / "b00000009-s0000-000-abc.parquet").write_bytes(b"PAR1 half")
    (folder / "b00000009-s0000-000.parquet").write_bytes(b"PAR1 half")
    (folder / "mine.parquet").write_bytes(b"")
    assert everything(tmp_path).equals(joined(tables))
    Archive(tmp_path, Space.GEOGRAPHIC, RUN)
    (folder / "mine.parquet").unlink()
    check_files(tmp_path)


def test_a_full_disk_is_one_clear_line_and_the_run_goes_on(
    tmp_path: Path, tables: list[pa.RecordBatch], monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = Archive(tmp_path, Space.GEOGRAPHIC, RUN)
    write_batch(archive, 0, tables[:2])

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    parts = ArchiveWriter(tmp_path, Space.GEOGRAPHIC).write(1, 0, tables[2])
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        for act in (
            lambda: write_batch(archive, 1, tables[2:4]),
            lambda: archive.commit(1, parts),
            lambda: Archive(tmp_path / "new", Space.GEOGRAPHIC, RUN),
        ):
            with pytest.raises(NearcastError, match="No space left on device; make room") as error:
                act()
            assert "\n" not in str(error.value)
    assert everything(tmp_path).equals(joined(tables[:2]))
    archive.commit(1, parts)  # goes on where it stopped, in this process too
    assert everything(tmp_path).equals(joined(tables[:3]))


def test_a_file_that_arrow_cannot_write_whole_leaves_no_half(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    table = some(rng, 500)
    writer = ArchiveWriter(tmp_path, Space.GEOGRAPHIC)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(NearcastError, match="make room and run the same command"):
            writer.write(0, 0, table)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list((tmp_path / "_tmp").iterdir()) == []
