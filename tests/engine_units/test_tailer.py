"""A tailer in trouble: what may pass is shown and waited for, anything else ends the run."""

from __future__ import annotations

import gzip
import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nearcast.engine.feed import tailer as live
from nearcast.engine.feed.source import Feed
from nearcast.engine.feed.tailer import Tailer
from nearcast.model.errors import NearcastError
from nearcast.wire.split import Split

LINE = b'{"op":"unsubscribe","id":"x","time":1}\n'


class Stage:
    """A folder and its tailer."""

    def __init__(self, path: Path) -> None:
        self.folder = path / "in"
        self.folder.mkdir()
        self.ended: list[str] = []
        self.feed = Feed(path / "checkpoint")
        self.tailer = Tailer(
            [self.folder], path / "checkpoint", 4, 2, lambda: self.ended.append("query stopped")
        )

    def planned(self) -> list[tuple[str, int, int]]:
        """(file, first byte, bytes) of all that is planned."""
        splits = [s for n in range(len(self.feed)) for s in self.feed.read(n)]
        return [(Path(s.name).name, s.start, s.length) for s in splits]


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    monkeypatch.setattr(live, "POLL_SECONDS", 0.01)
    made = Stage(tmp_path)
    yield made
    made.tailer.stop()


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_folder_that_goes_and_comes_back(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "nearcast")
    away = stage.folder.with_name("away")
    stage.folder.rename(away)
    stage.tailer.start()
    until(lambda: len(caplog.messages) == 1)
    time.sleep(0.1)
    [said] = caplog.messages  # once, not at every look
    assert said.startswith("no new events are read: [Errno 2] No such file or directory")
    assert said.endswith("; mend it, the run waits for it")
    (away / "a.jsonl").write_bytes(LINE)
    away.rename(stage.folder)
    until(lambda: len(stage.feed) == 1)
    until(lambda: caplog.messages[1:] == ["new events are read again"])
    assert stage.tailer.failure is None
    assert not stage.ended


def test_what_nobody_foresaw_ends_the_run(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_: bool) -> None:
        raise ValueError("no such thing")

    monkeypatch.setattr(stage.tailer, "poll", broken)
    stage.tailer.start()
    until(lambda: bool(stage.ended))
    assert stage.ended == ["query stopped"]
    said = f"{stage.folder}: cannot be followed any more (ValueError: no such thing); "
    said += "start the run again, it goes on where it stopped"
    assert str(stage.tailer.failure) == said
    assert isinstance(stage.tailer.failure, NearcastError)
    assert stage.tailer.failure.exit_status == 1
    assert caplog.messages == [said]


def test_a_file_that_becomes_shorter_is_rejected_and_the_others_go_on(
    stage: Stage, tmp_path: Path
) -> None:
    (stage.folder / "a.jsonl").write_bytes(3 * LINE)
    stage.tailer.poll()
    (stage.folder / "a.jsonl").write_bytes(LINE)
    (stage.folder / "b.jsonl").write_bytes(LINE)
    stage.tailer.poll()
    stage.tailer.poll()
    again = Tailer([stage.folder], tmp_path / "checkpoint", 4, 2)
    again.poll()
    (reject,) = (s for n in range(len(stage.feed)) for s in stage.feed.read(n) if s.reason)
    assert reject.reason == "became shorter; put new events into a new file"
    assert [name for name, _, _ in stage.planned()] == ["a.jsonl"] * 3 + ["b.jsonl"]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("lacking", range(5))
def test_a_disk_that_is_full_for_a_while(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, packed: bool, lacking: int
) -> None:
    """Whichever batch cannot be written: every line is planned once, in order."""
    if packed:
        with gzip.open(stage.folder / "m.jsonl.gz", "wb") as file:
            file.write(20 * LINE)
    else:
        (stage.folder / "m.jsonl").write_bytes(20 * LINE)
    left = [lacking]

    def add(feed: Feed, batch: int, splits: list[Split]) -> None:
        left[0] -= 1
        if left[0] == -1:
            raise NearcastError("cannot write: No space left on device")
        write(feed, batch, splits)

    write = Feed.add
    monkeypatch.setattr(Feed, "add", add)
    if packed:
        stage.tailer.poll()
    with pytest.raises(NearcastError, match="No space left"):
        stage.tailer.poll()
    (stage.folder / "a.jsonl").write_bytes(2 * LINE)  # comes first now
    stage.tailer.poll()
    stage.tailer.poll()
    planned = stage.planned()
    assert sum(size for name, _, size in planned if name == "a.jsonl") == 2 * len(LINE)
    starts = [start for name, start, _ in planned if name.startswith("m")]
    assert sum(size for name, _, size in planned if name.startswith("m")) == 20 * len(LINE)
    assert starts == sorted(set(starts))


def test_a_write_wakes_it_and_a_batch_that_is_done(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One batch is planned ahead: what comes meanwhile, in whatever file, makes one more."""
    monkeypatch.setattr(live, "POLL_SECONDS", 1000.0)
    stage.tailer.start()
    (stage.folder / "a.jsonl").write_bytes(LINE)
    until(lambda: len(stage.feed) == 1)
    for name in "bcd":
        (stage.folder / f"{name}.jsonl").write_bytes(LINE)
        time.sleep(0.01)
    assert stage.tailer.behind()
    assert len(stage.feed) == 1
    reports = stage.feed.checkpoint / "reports"
    reports.mkdir()
    (reports / f"{0:012d}.json").touch()
    stage.tailer.wake()
    until(lambda: len(stage.feed) == 2)
    assert [Path(split.name).name[0] for split in stage.feed.read(1)] == ["b", "c", "d"]


def test_packed_files_wait_although_others_wake_it(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that grows slowly must not look finished because another one was written twice."""
    monkeypatch.setattr(live, "POLL_SECONDS", 1000.0)
    monkeypatch.setattr(stage.tailer, "behind", lambda: False)
    stage.tailer.start()
    with gzip.open(stage.folder / "m.jsonl.gz", "wb") as file:
        file.write(LINE)
    for n in range(3):
        (stage.folder / f"{n}.jsonl").write_bytes(LINE)
        until(lambda n=n: len(stage.feed) > n)  # type: ignore[misc]
    assert [name for name, _, _ in stage.planned()] == ["0.jsonl", "1.jsonl", "2.jsonl"]


def test_batches_of_several_files_are_as_large_as_they_may_be(stage: Stage) -> None:
    for name, lines in (("a", 3), ("b", 6), ("c", 1)):
        (stage.folder / f"{name}.jsonl").write_bytes(lines * LINE)
    stage.tailer.poll()
    batches = [
        [(Path(s.name).name[0], s.start // len(LINE), s.length // len(LINE), s.first_line)
         for s in stage.feed.read(n)]
        for n in range(len(stage.feed))
    ]  # fmt: skip
    assert batches == [
        [("a", 0, 2, 1), ("a", 2, 1, 3), ("b", 0, 1, 1)],
        [("b", 1, 2, 2), ("b", 3, 2, 4)],
        [("b", 5, 1, 6), ("c", 0, 1, 1)],
    ]
