"""The log of notifications as a reader meets it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from nearcast.model.errors import Invalid
from nearcast.wire.told import ANSWERS, BEGIN, Cursor, Told, Visible, say


def write(out: Path, name: str, *lines: str) -> None:
    path = out / "notifications" / name
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text("".join(f"{line}\n" for line in lines))


def texts(told: Told, after: Cursor = BEGIN, until: int | None = None) -> list[str]:
    return [line.decode().strip() for _, line in told.read(after, until)]


def test_the_order_of_the_log_and_any_cursor(tmp_path: Path) -> None:
    told = Told(tmp_path)
    assert texts(told) == []
    write(tmp_path, "b00000001-answers.jsonl", "e")
    write(tmp_path, "b00000001-s0001.jsonl", "c", "d")
    write(tmp_path, "b00000000-s0010.jsonl", "b")
    write(tmp_path, "b00000000-s0002.jsonl", "a")
    write(tmp_path, "b00000002-s0000.jsonl", "f")
    write(tmp_path, "b00000003-s0000.jsonl", "not visible")
    write(tmp_path, ".b00000001-s0003.jsonl.tmp", "no file of the log")
    say(tmp_path, Visible("run", 2))
    every = list(told.read())
    assert [line.decode().strip() for _, line in every] == list("abcdef")
    assert [c for c, _ in every] == sorted(c for c, _ in every)
    assert every[4][0] == Cursor(1, ANSWERS, 1)
    for n, (cursor, _) in enumerate(every):
        again = Cursor.read(str(cursor))
        assert again == cursor
        assert texts(told, again) == list("abcdef")[n + 1 :]
    assert texts(told, until=0) == ["a", "b"]
    assert texts(told, Cursor(1)) == list("cdef")
    told.close()


@pytest.mark.parametrize("text", ["", "1", "1-2", "1-2-3-4", "-1-2-3", "a-b-c", "1-2-3\n"])
def test_a_cursor_that_nobody_gave(text: str) -> None:
    with pytest.raises(Invalid, match="cursor"):
        Cursor.read(text)
    assert Cursor.read("0") == BEGIN


def test_a_reader_is_woken(tmp_path: Path) -> None:
    told = Told(tmp_path)
    assert told.wait(-1, 0.01) == -1
    say(tmp_path, Visible("run", 4))
    assert told.wait(3, 60) == 4  # it need not wait
    later = threading.Timer(0.05, say, (tmp_path, Visible("run", 5)))
    later.start()
    assert told.wait(4, 60) == 5
    later.join()
    told.close()
