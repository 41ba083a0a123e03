"""Being woken by a write, by another thread, or by the clock."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from pathlib import Path

from nearcast.wire.watching import Watch

LONG = 60.0


def woken(watch: Watch, by: Callable[[], object]) -> bool:
    """Whether it wakes while it waits long."""
    timer = threading.Timer(0.05, by)
    timer.start()
    try:
        return watch.wait(LONG)
    finally:
        timer.join()


def test_another_thread_wakes(tmp_path: Path) -> None:
    for watch in (Watch([tmp_path]), Watch()):
        assert woken(watch, watch.wake)
        watch.wake()
        watch.wake()
        assert watch.wait(LONG)  # also if it came before, and once however often
        assert not watch.wait(0)
        watch.close()
        watch.wake()  # nobody is there any more


def test_writes_wake(tmp_path: Path) -> None:
    watch = Watch([tmp_path])
    assert watch.complete
    path = tmp_path / "a.jsonl"
    assert woken(watch, lambda: path.write_text("x"))
    while watch.wait(0):
        pass
    with path.open("a", buffering=1) as file:
        assert woken(watch, lambda: file.write("more\n"))
    while watch.wait(0):
        pass
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "b").write_text("x")
    watch.wait(0)
    assert woken(watch, lambda: (tmp_path / "deep" / "b").rename(tmp_path / "b"))
    watch.close()


def test_a_folder_that_goes_and_comes_back(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    watch = Watch([folder])
    assert watch.complete
    for _ in range(3):
        folder.rename(tmp_path / "away")
        watch.wait(0.01)
        assert not watch.complete
        while watch.wait(LONG):  # it may be woken by its going; then it looks by the clock
            pass
        folder.mkdir()
        watch.wait(0.01)
        assert watch.complete
        assert woken(watch, lambda: (folder / "x").write_text("x"))
        (folder / "x").unlink()
        folder.rmdir()
        (tmp_path / "away").rename(folder)
        while watch.wait(0):
            pass
    watch.close()


def test_a_forgotten_watch_gives_back_what_it_held(tmp_path: Path) -> None:
    def held() -> set[str]:
        gc.collect()
        return {path.name for path in Path("/proc/self/fd").iterdir()}

    before = held()
    watches = [Watch([tmp_path]) for _ in range(3)]
    assert len(held()) >= len(before) + 6  # a pipe each, at least
    watches[0].close()
    watches.clear()
    assert held() == before


def test_without_inotify_it_looks_often(tmp_path: Path) -> None:
    watch = Watch([tmp_path], inotify=False)
    assert not watch.complete
    assert not watch.wait(LONG)
    watch.close()
