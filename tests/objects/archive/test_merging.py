"""Small files become large ones, at a cost that stays small."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.objects.archive.posts import RUN, everything, joined, some, write_batch

from nearcast.model.space import Space
from nearcast.objects.archive import Archive, merging, read, reading
from nearcast.objects.archive.manifest import File, Manifest, existing
from nearcast.objects.archive.merging import TARGET_ROWS, choose, is_full


def file(name: str, rows: int, batch: int = 0, bytes_: int = 1) -> File:
    return File(name, rows, bytes_, (0, 0), (0, 0), (0.0, 0.0, 0.0, 0.0), batch)


def names(files: list[File]) -> list[str]:
    return [f.name for f in files]


def test_few_small_files_wait_until_the_day_is_quiet() -> None:
    files = [file("d/a", 10), file("d/b", 10), file("e/c", 10)]
    assert choose(files, 63) == []
    assert names(choose(files, 64)) == ["d/a", "d/b"]


def test_many_small_files_are_merged_by_day() -> None:
    files = [file(f"d/{n:02d}", 10) for n in range(16)]
    assert choose(files[:15], 0) == []
    assert len(choose([*files, file("e/0", 10)], 0)) == 16


def test_what_makes_a_full_file_is_merged_at_once() -> None:
    files = [file(f"d/{n}", TARGET_ROWS // 3) for n in range(5)]
    assert choose(files[:2], 0) == []
    assert len(choose(files, 0)) == 4
    large = [file(f"d/{n}", 1, bytes_=merging.TARGET_BYTES // 3) for n in range(4)]
    assert len(choose(large, 0)) == 4


def test_a_full_file_is_left_alone() -> None:
    assert is_full(file("d/a", TARGET_ROWS // 2))
    assert is_full(file("d/a", 1, bytes_=merging.TARGET_BYTES // 2))
    files = [file("d/a", TARGET_ROWS // 2), file("d/b", TARGET_ROWS // 2), file("d/c", 1)]
    assert choose(files, 1000) == []


def test_a_few_late_objects_do_not_have_a_large_file_written_again() -> None:
    assert choose([file("d/a", 100_000), file("d/b", 1)], 1000) == []
    late = [file(f"d/{n:02d}", 1) for n in range(16)]
    assert names(choose([file("d/a", 100_000), *late], 0)) == names(late)


@pytest.mark.parametrize("rows", [1, 700, 40_000])
def test_objects_are_written_again_a_few_times_only(rows: int) -> None:
    files: list[File] = []
    written = 0
    batches = min(6000, 40 * TARGET_ROWS // rows)
    for batch in range(batches):
        files.append(file(f"d/b{batch:08d}", rows, batch))
        if chosen := choose(files, batch):
            total = sum(f.rows for f in chosen)
            written += total
            files = [f for f in files if f not in chosen]
            files.append(file(f"d/c{batch:08d}", total, batch))
    assert sum(f.rows for f in files) == rows * batches
    assert written <= 12 * rows * batches
    assert sum(not is_full(f) for f in files) < 64
    assert max(f.rows for f in files) < 2 * TARGET_ROWS


def test_a_merge_changes_no_answer(
    tmp_path: Path, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "_MANY", 4)
    archive = Archive(tmp_path, Space.GEOGRAPHIC, RUN)
    tables = [some(rng, 20, days=2, first_rank=20 * n) for n in range(10)]
    for batch in range(5):
        write_batch(archive, batch, tables[2 * batch : 2 * batch + 2])
    before = len(archive.manifest.files)
    box = [(-90.0, -45.0, 90.0, 45.0)]
    asked = read(tmp_path, 1000, 10**8, box)
    while archive.merge():
        assert everything(tmp_path).equals(joined(tables))
        assert read(tmp_path, 1000, 10**8, box).equals(asked)
    assert len(archive.manifest.files) < before / 3
    on_disk = {p.relative_to(tmp_path).as_posix() for p in tmp_path.glob("date=*/*")}
    assert on_disk == {f.name for f in archive.manifest.files}


def test_a_reader_that_a_merge_overtakes_reads_again(
    tmp_path: Path, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "_MANY", 2)
    archive = Archive(tmp_path, Space.GEOGRAPHIC, RUN)
    tables = [some(rng, 5, first_rank=5 * n) for n in range(2)]
    write_batch(archive, 0, tables)
    plain = existing
    calls = 0

    def overtaken(folder: Path) -> Manifest:
        nonlocal calls
        calls += 1
        manifest = plain(folder)
        if calls == 1:
            assert archive.merge()
        return manifest

    monkeypatch.setattr(reading, "existing", overtaken)
    assert everything(tmp_path).equals(joined(tables))
    assert calls == 2
