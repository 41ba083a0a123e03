"""Finding and opening logs: formats, damage, and the times by which they are ordered."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nearcast.model.errors import NearcastError
from nearcast.wire.logs import Log, find_logs, open_log

SUB = '{"op":"subscribe","id":"s","time":5,"query":{}}'
PUB = '{"op":"publish","id":"o","time":7,"at":[0,0]}'


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return tmp_path


def opened(path: Path, lenient: bool = False) -> Log:
    return open_log(str(path), lenient, path.parent / "spool")


def keys(log: Log) -> list[tuple[int, int]]:
    return list(zip(log.time.tolist(), log.group.tolist(), strict=True))


def parquet(path: Path, rows: int | None = None, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path, row_group_size=rows)
    return path


# -- which files ---------------------------------------------------------------------------------


def test_folders_give_their_logs_in_order(here: Path) -> None:
    for name in ("b.jsonl", "a.parquet", "c.json.gz", "notes.txt", ".hidden.jsonl", "_half.jsonl"):
        (here / name).touch()
    alone = here / "notes.txt"
    found = find_logs([str(alone), str(here)])
    names = [(Path(name).name, folder) for name, folder in found]
    assert names == [
        ("notes.txt", False),
        ("a.parquet", True),
        ("b.jsonl", True),
        ("c.json.gz", True),
    ]


def test_what_is_not_there_is_named(here: Path) -> None:
    with pytest.raises(NearcastError, match=r"gone\.jsonl: there is no such file or folder$"):
        find_logs([str(here / "gone.jsonl")])
    with pytest.raises(NearcastError, match=r"the folder holds no \.jsonl, \.gz or \.parquet file"):
        find_logs([str(here)])
    (here / "_unfinished.jsonl").touch()
    with pytest.raises(NearcastError, match="the folder holds no"):
        find_logs([str(here)])


# -- JSON lines ----------------------------------------------------------------------------------


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("ended", [True, False])
def test_lines(here: Path, newline: str, ended: bool) -> None:
    text = newline.join([SUB, PUB, '{"op":"ask","time":"1970-01-01T00:00:00.009Z"}'])
    path = here / "log.jsonl"
    path.write_bytes((text + newline * ended).encode())
    log = opened(path)
    assert keys(log) == [(5, 0), (7, 1), (9, 2)]
    data = path.read_bytes()
    cut = [data[a:b] for a, b in zip(log.offsets[:-1], log.offsets[1:], strict=True)]
    assert [json.loads(line)["op"] for line in cut] == ["subscribe", "publish", "ask"]
    assert log.offsets[-1] == len(data)


@pytest.mark.parametrize("name", ["log.jsonl", "log.jsonl.gz"])
def test_a_byte_order_mark_is_no_part_of_the_first_line(here: Path, name: str) -> None:
    lines = [json.dumps({"op": "publish", "id": "o", "time": t, "at": [0, 0]}) for t in (7, 8)]
    data = "\ufeff{}\n{}\n".format(*lines).encode()
    (here / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    log = opened(here / name)
    assert keys(log) == [(7, 1), (8, 1)]
    assert log.path.read_bytes()[log.offsets[0] : log.offsets[1]].decode() == lines[0] + "\n"


def test_what_will_be_refused_stands_where_it_was_found(here: Path) -> None:
    path = here / "log.jsonl"
    path.write_text("\n".join(["?", "", PUB, "{}", '{"op":"publish","time":1.5}', SUB, "?"]))
    assert keys(opened(path)) == [(7, 1)] * 5 + [(5, 0)] * 2


def test_nothing_but_junk(here: Path) -> None:
    path = here / "log.jsonl"
    path.write_text("?\n!\n")
    assert len(opened(path)) == 2


@pytest.mark.parametrize("name", ["log.jsonl", "log.jsonl.gz"])
def test_an_empty_file_is_an_empty_log(here: Path, name: str) -> None:
    (here / name).touch()
    log = opened(here / name)
    assert len(log) == 0
    assert log.problems == []


def test_a_file_that_is_a_whole_number_of_pages(here: Path) -> None:
    """The scanner must not read behind the end: no page is mapped there."""
    path = here / "log.jsonl"
    for end in ('{"op":', '{"op":"', '{"time":', '{"time":1', '{"time":-', '{"op":"publish"'):
        line = " " * (4096 - len(end)) + end
        path.write_text(line)
        assert path.stat().st_size == 4096
        assert len(opened(path)) == 1


# -- gzip ----------------------------------------------------------------------------------------


def test_gzip(here: Path) -> None:
    path = here / "log.jsonl.gz"
    path.write_bytes(gzip.compress(f"{SUB}\n".encode()) + gzip.compress(f"{PUB}\n".encode()))
    log = opened(path)
    assert keys(log) == [(5, 0), (7, 1)]
    assert log.name == str(path)
    assert log.problems == []


def test_a_cut_gzip_keeps_what_can_be_read(here: Path, rng: Any) -> None:
    lines = [
        json.dumps({"op": "publish", "id": str(rng.integers(10**18)), "time": n, "at": [0, 0]})
        for n in range(20_000)
    ]
    path = here / "log.jsonl.gz"
    whole = gzip.compress("\n".join(lines).encode(), 1)
    for damaged in (whole[: len(whole) // 2], whole[: len(whole) // 2] + b"\0" * 400 + whole[-9:]):
        path.write_bytes(damaged)
        log = opened(path)
        assert 0 < len(log) < len(lines)
        [problem] = log.problems
        assert problem.format == "reject"
        assert problem.name == str(path)
        assert problem.first_line == len(log) + 1
        assert problem.reason.startswith("the rest of the file cannot be unpacked: ")


def test_trailing_garbage_behind_a_gzip(here: Path) -> None:
    path = here / "log.jsonl.gz"
    path.write_bytes(gzip.compress(f"{SUB}\n".encode()) + b"garbage")
    log = opened(path)
    assert keys(log) == [(5, 0)]
    assert [p.first_line for p in log.problems] == [2]


@pytest.mark.parametrize("name", ["log.gz", "log.parquet", "folder.jsonl"])
def test_what_cannot_be_read(here: Path, name: str) -> None:
    path = here / name
    path.mkdir() if name.startswith("folder") else path.write_bytes(b"this is neither")
    with pytest.raises(NearcastError, match="cannot be read: ") as caught:
        opened(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)
    log = opened(path, lenient=True)  # one of a folder: the others go on
    assert len(log) == 0
    [problem] = log.problems
    assert (problem.format, problem.name, problem.first_line) == ("reject", str(path), 0)
    assert problem.reason.startswith("cannot be read: ")


# -- Parquet -------------------------------------------------------------------------------------


def test_parquet_groups(here: Path) -> None:
    ops = ["subscribe", "publish", "ask", "unsubscribe", "publish"]
    log = opened(parquet(here / "log.parquet", 2, op=ops, time=[1, 2, 3, 4, 5]))
    assert keys(log) == [(1, 0), (2, 1), (3, 2), (4, 0), (5, 1)]
    assert log.offsets.tolist() == [0, 2, 4, 5]


@pytest.mark.parametrize(
    ("column", "ms"),
    [
        (pa.array([1, -2], pa.int32()), [1, -2]),
        (pa.array([1, -2], pa.timestamp("s")), [1000, -2000]),
        (pa.array([1500, -1500], pa.timestamp("us")), [1, -2]),
        (pa.array([1_500_001, -1], pa.timestamp("ns", "UTC")), [1, -1]),
        (pa.array(["1970-01-01T00:00:01Z", "1969-12-31T23:59:59.9999Z"]), [1000, -1]),
        (pa.array([2**60, 0], pa.timestamp("ms")), [2**60, 0]),
    ],
)
def test_parquet_times_are_those_of_the_events(here: Path, column: pa.Array, ms: list[int]) -> None:
    log = opened(parquet(here / "log.parquet", op=["publish", "publish"], time=column))
    assert log.time.tolist() == ms


@pytest.mark.parametrize(
    "column", [pa.array([1, None, 3]), pa.array(["1970-01-01T00:00:00.001Z", "x", None])]
)
def test_parquet_rows_without_a_time(here: Path, column: pa.Array) -> None:
    log = opened(parquet(here / "log.parquet", op=["publish", "ask", "publish"], time=column))
    assert keys(log)[:2] == [(1, 1), (1, 1)]


@pytest.mark.parametrize("rows", [0, 2])
def test_parquet_string_views(here: Path, rows: int) -> None:
    ops = pa.array(["subscribe", "publish"][:rows], pa.string_view())
    times = pa.array(["1970-01-01T00:00:01Z", "1970-01-01T00:00:02Z"][:rows], pa.string_view())
    log = opened(parquet(here / "log.parquet", op=ops, time=times))
    assert keys(log) == [(1000, 0), (2000, 1)][:rows]


def test_parquet_without_rows(here: Path) -> None:
    none = {"op": pa.array([], pa.string()), "time": pa.array([], pa.int64())}
    assert len(opened(parquet(here / "log.parquet", **none))) == 0


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"op": ["publish"]}, "has no column `time` (its columns: op)"),
        ({"time": [1]}, "has no column `op` (its columns: time)"),
        ({"value": ["{}"]}, "has a `value` and no `op` column; write the events as columns"),
    ],
)
def test_parquet_with_other_columns(here: Path, columns: Any, reason: str) -> None:
    with pytest.raises(NearcastError) as caught:
        opened(parquet(here / "log.parquet", **columns))
    assert str(caught.value).endswith(reason)
