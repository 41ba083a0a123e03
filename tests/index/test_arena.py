"""Storage: arrays that grow, tokens that say whose they are, and a full disk as a clear line."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nearcast.index.arena import Arena, Memory, Part, Storage
from nearcast.model.errors import NearcastError

Make = Callable[[Path], Storage]
KINDS: dict[str, Make] = {
    "memory": lambda _: Memory(),
    "arena": lambda folder: Arena(folder / "arena"),
    "part of memory": lambda _: Part(Memory(), "one"),
    "part of arena": lambda folder: Part(Arena(folder / "arena"), "one"),
}


@pytest.fixture(params=KINDS)
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return KINDS[request.param](tmp_path)


# -- all storages alike --------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.uint64, np.float64])
@pytest.mark.parametrize("width", [1, 3, 5])
def test_new_arrays_are_zeros_of_the_asked_shape(storage: Storage, dtype: Any, width: int) -> None:
    array = storage.array("a", dtype, width, 10)
    assert array.dtype == dtype
    assert array.shape == ((10,) if width == 1 else (10, width))
    assert not array.any()


@pytest.mark.parametrize("width", [1, 4])
def test_growth_keeps_the_content(storage: Storage, width: int) -> None:
    filled_rows = 0
    for rows in (1, 2, 3, 50, 51, 5000):
        array = storage.array("a", np.int64, width, rows)
        assert len(array) >= rows
        assert not (array[:filled_rows].T - np.arange(filled_rows)).any()
        assert not array[filled_rows:].any()
        array[filled_rows:rows].T[:] = np.arange(filled_rows, rows)
        filled_rows = rows
    assert len(storage.array("a", np.int64, width)) >= 5000


def test_growth_is_by_a_sixteenth_at_least(storage: Storage) -> None:
    storage.array("a", np.int64, 1, 1000)
    assert len(storage.array("a", np.int64, 1, 1001)) >= 1062


def test_arrays_that_are_large_enough_stay(storage: Storage) -> None:
    first = storage.array("a", np.int64, 1, 10)
    again = storage.array("a", np.int64, 1, 5)
    again[3] = 7
    assert first[3] == 7
    assert len(again) == 10


def test_names_are_apart(storage: Storage) -> None:
    storage.array("a", np.int64, 1, 4)[:] = 1
    storage.array("b", np.int64, 1, 4)[:] = 2
    assert storage.array("a", np.int64)[0] == 1
    storage.discard("b")
    assert storage.array("a", np.int64)[0] == 1
    assert storage.array("b", np.int64, 1, 4)[0] == 0


def test_a_table_is_new_and_of_exactly_that_size(storage: Storage) -> None:
    storage.table("t", 3, 8)[:] = 5
    table = storage.table("t", 3, 4)
    assert table.shape == (4, 3)
    assert table.dtype == np.uint64
    assert not table.any()
    assert storage.array("t", np.uint64, 3, 4).shape == (4, 3)


def test_clear_forgets_everything(storage: Storage) -> None:
    storage.array("a", np.int64, 1, 4)[:] = 1
    storage.array("b", np.int64, 1, 4)[:] = 1
    storage.clear()
    assert storage.bytes == 0
    assert not storage.array("a", np.int64, 1, 4).any()


def test_bytes_are_counted(storage: Storage) -> None:
    assert storage.bytes == 0
    storage.array("a", np.int64, 2, 100)
    storage.array("b", np.uint8, 1, 7)
    assert storage.bytes == 1607


def test_discarding_what_is_not_there_is_fine(storage: Storage) -> None:
    storage.discard("never")
    storage.clear()


def test_the_parts_of_a_storage_do_not_meet(tmp_path: Path) -> None:
    for whole in (Memory(), Arena(tmp_path / "arena")):
        one, two = Part(whole, "one"), Part(whole, "two")
        one.array("a", np.int64, 1, 4)[:] = 1
        two.array("a", np.int64, 1, 4)[:] = 2
        one.clear()
        assert two.array("a", np.int64)[0] == 2
        assert not one.array("a", np.int64, 1, 4).any()


# -- arenas --------------------------------------------------------------------------------------


def filled(folder: Path, token: str = "t1") -> Arena:
    arena = Arena(folder)
    with arena.lock():
        arena.array("a", np.int64, 1, 10)[:] = 7
        arena.array("b", np.uint8, 1, 3)[:] = 1
        arena.commit(token)
    return arena


def test_another_process_finds_what_was_committed(tmp_path: Path) -> None:
    filled(tmp_path / "arena")
    other = Arena(tmp_path / "arena")
    assert other.attach("t1")
    assert other.array("a", np.int64).tolist() == [7] * 10
    assert len(other.array("a", np.int64, 1, 4)) == 10


def test_only_the_last_token_counts(tmp_path: Path) -> None:
    arena = filled(tmp_path / "arena")
    assert not arena.attach("t0")
    arena.commit("t2")
    assert not arena.attach("t1")
    assert arena.attach("t2")


def test_nothing_is_no_arena(tmp_path: Path) -> None:
    assert not Arena(tmp_path / "never").attach("")


def test_an_arena_that_was_being_written_is_nobodys(tmp_path: Path) -> None:
    arena = filled(tmp_path / "arena")
    arena.begin()
    assert not Arena(tmp_path / "arena").attach("t1")
    arena.begin()  # again, after a crash
    arena.commit("t2")
    assert Arena(tmp_path / "arena").attach("t2")


@pytest.mark.parametrize("damage", ["cut", "longer", "gone", "more"])
def test_files_that_are_not_as_they_were_left(tmp_path: Path, damage: str) -> None:
    filled(tmp_path / "arena")
    path = tmp_path / "arena" / "a.bin"
    if damage == "gone":
        path.unlink()
    elif damage == "more":
        (tmp_path / "arena" / "c.bin").touch()
    else:
        os.truncate(path, 40 if damage == "cut" else 4000)
    assert not Arena(tmp_path / "arena").attach("t1")


def test_an_arena_of_another_layout_or_boot(tmp_path: Path) -> None:
    filled(tmp_path / "arena")
    token = tmp_path / "arena" / "token"
    boot = token.read_text().split()[1]
    token.write_text(token.read_text().replace(boot, "another"))
    assert not Arena(tmp_path / "arena").attach("t1")


def test_clear_takes_the_folder_away(tmp_path: Path) -> None:
    arena = filled(tmp_path / "arena")
    arena.clear()
    assert not (tmp_path / "arena").exists()
    assert arena.array("a", np.int64, 1, 2).tolist() == [0, 0]


def test_space_is_taken_when_an_array_grows(tmp_path: Path) -> None:
    """A file with holes would kill the process later, when a kernel writes and the disk is full."""
    arena = Arena(tmp_path / "arena")
    arena.array("a", np.int64, 1, 100_000)
    assert (tmp_path / "arena" / "a.bin").stat().st_blocks * 512 >= 800_000


def test_a_full_disk_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arena = filled(tmp_path / "arena")

    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(NearcastError, match=r"no space left for the index in .*arena") as caught:
        arena.array("a", np.int64, 1, 1000)
    assert "\n" not in str(caught.value)
    assert "7,920 bytes more" in str(caught.value)
    assert arena.array("a", np.int64).tolist() == [7] * 10


def test_other_errors_are_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "posix_fallocate", broken)
    with pytest.raises(OSError, match="Input/output"):
        Arena(tmp_path / "arena").array("a", np.int64, 1, 10)


OTHER = """
import fcntl, sys
with open(sys.argv[1], "w") as handle:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(3)
"""


def other_process_gets_in(folder: Path) -> bool:
    lock = str(folder.with_suffix(".lock"))
    ended = subprocess.run([sys.executable, "-S", "-c", OTHER, lock], check=False)
    assert ended.returncode in (0, 3)
    return ended.returncode == 0


def test_the_lock_keeps_other_processes_out(tmp_path: Path) -> None:
    arena = Arena(tmp_path / "deep" / "arena")
    with arena.lock():
        assert not other_process_gets_in(tmp_path / "deep" / "arena")
    assert other_process_gets_in(tmp_path / "deep" / "arena")


def test_the_lock_is_let_go_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="oops"), Arena(tmp_path / "arena").lock():
        raise ValueError("oops")
    assert other_process_gets_in(tmp_path / "arena")


def test_the_lock_is_no_part_of_the_arena(tmp_path: Path) -> None:
    """`clear` under the lock must not let anybody else in."""
    arena = Arena(tmp_path / "arena")
    with arena.lock():
        arena.array("a", np.int64, 1, 1)
        arena.clear()
        assert not other_process_gets_in(tmp_path / "arena")


def mapped_files() -> str:
    """What this process has mapped."""
    return Path("/proc/self/maps").read_text()


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux")
def test_an_array_that_is_forgotten_is_no_longer_mapped(tmp_path: Path) -> None:
    one = Arena(tmp_path / "run" / "arena")
    one.array("gone", np.int64, rows=1000)
    one.array("kept", np.int64, rows=1000)
    one.discard("gone")
    assert "kept.bin" in mapped_files()
    assert "gone.bin" not in mapped_files()


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux")
def test_an_array_that_another_process_forgot_is_unmapped_when_the_arena_is_attached(
    tmp_path: Path,
) -> None:
    one = Arena(tmp_path / "run" / "arena")
    one.array("gone", np.int64, rows=1000)
    one.commit("t")
    del one
    (tmp_path / "run" / "arena" / "gone.bin").unlink()
    assert "gone.bin" in mapped_files()
    assert not Arena(tmp_path / "run" / "arena").attach("t")
    assert "gone.bin" not in mapped_files()
