"""The paced writer, without its thread: time and progress are given."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nearcast.demo.city import City
from nearcast.demo.talk import WATCHED
from nearcast.demo.writer import Writer

NOW = 1_800_000_000_000
OPENED = 50 + len(WATCHED)


class Reader:
    def __init__(self) -> None:
        self.done = 0

    def __call__(self) -> int:
        return self.done


@pytest.fixture
def reader() -> Reader:
    return Reader()


@pytest.fixture
def writer(tmp_path: Path, reader: Reader) -> Writer:
    writer = Writer(City(1, 30.0), tmp_path / "city.jsonl", reader, rate=1_000, churn=10)
    writer.open(NOW, 50)
    reader.done = OPENED
    return writer


def test_writes_as_many_posts_as_time_has_passed(writer: Writer) -> None:
    assert writer.tick(NOW + 500) == 500 + 2 * 5
    events = [json.loads(line) for line in writer.path.read_bytes().splitlines()]
    assert len(events) == writer.written == OPENED + 510
    assert all(NOW < e["time"] <= NOW + 500 for e in events[OPENED:])


def test_waits_for_a_reader_that_is_behind(writer: Writer, reader: Reader) -> None:
    assert writer.tick(NOW + 500) > 0  # in work
    assert writer.tick(NOW + 1_000) > 0  # waiting
    assert writer.tick(NOW + 1_500) == 0
    reader.done = OPENED + 510
    assert writer.tick(NOW + 2_000) > 0


def test_silence_is_not_made_up_for(writer: Writer) -> None:
    assert writer.tick(NOW + 60_000) == 2 * (1_000 + 2 * 10)


def test_a_clock_that_stands_still_writes_nothing(writer: Writer) -> None:
    assert writer.tick(NOW + 500) > 0
    assert writer.tick(NOW + 500) == 0


def test_times_never_decrease(writer: Writer, reader: Reader) -> None:
    for now in (NOW + 1, NOW + 2, NOW + 700, NOW + 90_000, NOW + 90_001):
        writer.tick(now)
        reader.done = writer.written
    times = [json.loads(line)["time"] for line in writer.path.read_bytes().splitlines()]
    assert times == sorted(times)


def test_stop_without_start_is_fine(writer: Writer) -> None:
    writer.stop()


def test_the_thread_writes_until_it_is_stopped(writer: Writer) -> None:
    writer.start()
    while writer.written == 50:
        assert writer.error is None
    writer.stop()
    size = writer.path.stat().st_size
    assert writer.path.read_bytes().endswith(b"\n")
    assert writer.path.stat().st_size == size
