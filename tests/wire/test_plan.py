"""Plans: every line of every log once, batches in the order of time, lines called by their name."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from nearcast.kinds import KINDS
from nearcast.model.space import Space
from nearcast.wire import plan as planning
from nearcast.wire.logs import open_log
from nearcast.wire.plan import Planner
from nearcast.wire.read_split import read_split
from nearcast.wire.split import Split

Event = tuple[str, int]  # op (or "bad", "blank", "odd"), time
Place = tuple[str, int]  # file, line
CLASSES = {"unsubscribe": 0, "publish": 1}


def text(file: str, line: int, op: str, time: int) -> str:
    """An event whose id says where it stands."""
    if op == "blank":
        return ""
    if op == "bad":
        return "{?"
    event: dict[str, Any] = {"op": op, "id": f"{file}:{line}", "time": time, "at": [0, 0]}
    if op == "odd":  # valid JSON of a known op and time, refused by its content
        event |= {"op": "publish", "at": [500, 0]}
    return json.dumps(event)


def write(folder: Path, n: int, form: str, events: list[Event]) -> Path:
    newline, _, ending = form.partition("/")
    name = f"log{n}.{'parquet' if 'parquet' in form else 'jsonl'}"
    if newline == "gz":
        name += ".gz"
    path = folder / name
    if "parquet" in form:
        string = pa.string_view() if "views" in form else pa.string()
        schema = pa.schema(
            [("op", string), ("id", string), ("time", pa.int64())]
            + [("at", pa.list_(pa.float64()))]
        )
        rows = [json.loads(text(name, i, *e)) for i, e in enumerate(events, 1)]
        table = pa.Table.from_pylist(rows, schema=schema)
        pq.write_table(table, path, row_group_size=int(ending))
        return path
    lines = [text(name, i, *e) for i, e in enumerate(events, 1)]
    glue = "\r\n" if newline == "crlf" else "\n"
    data = (glue.join(lines) + glue * (ending != "open" and bool(lines))).encode()
    path.write_bytes(gzip.compress(data) if newline == "gz" else data)
    return path


class Planned:
    """A plan, read as the tasks of a run read it."""

    def __init__(self, paths: list[Path], batch_events: int, splits: int, spool: Path) -> None:
        logs = [open_log(str(p), False, spool) for p in paths]
        self.batches = list(Planner(logs, batch_events, splits, spool).batches())
        self.events: list[list[tuple[Place, int, int]]] = []  # a batch: place, time, class
        self.rejects: list[Place] = []
        for batch in self.batches:
            found: list[tuple[int, Place, int, int]] = []
            for number, split in enumerate(batch):
                decoded = read_split(split, Space.GEOGRAPHIC, KINDS, number)
                assert decoded.events["reject"] == decoded.rejects.num_rows
                self.rejects += [
                    (Path(r["file"]).name, r["line"]) for r in decoded.rejects.to_pylist()
                ]
                for group, table in ((0, decoded.ends), (1, decoded.objects)):
                    for row in table.to_pylist():
                        file, line = row["id"].decode().split(":")
                        found.append((row["pos"], (file, int(line)), row["time"], group))
            self.events.append([entry[1:] for entry in sorted(found)])


def check(files: dict[str, list[Event]], planned: Planned) -> None:
    # Exactly the lines of the logs, each once, under the name that the user knows.
    places = {(f, n): e for f, events in files.items() for n, e in enumerate(events, 1)}
    valid = {p for p, (op, _) in places.items() if op in CLASSES}
    refused = {p for p, (op, _) in places.items() if op in ("bad", "odd")}
    assert Counter(e[0] for batch in planned.events for e in batch) == Counter(valid)
    assert Counter(planned.rejects) == Counter(refused)
    # Batches are in order; within a batch positions follow the order of the logs.
    order = list(files)
    before = (-(2**62), 0)
    for batch in planned.events:
        keys = [(time, group) for _, time, group in batch]
        assert all((places[p][1], CLASSES[places[p][0]]) == (t, g) for p, t, g in batch)
        assert min(keys, default=before) >= before
        before = max([before, *keys])
        where = [(order.index(file), line) for (file, line), _, _ in batch]
        assert where == sorted(where)


events = st.tuples(
    st.sampled_from(["publish", "publish", "unsubscribe", "bad", "blank", "odd"]),
    st.integers(-5, 20),
)
rows = st.tuples(st.sampled_from(["publish", "unsubscribe", "odd"]), st.integers(-5, 20))
logs = st.one_of(
    st.tuples(st.sampled_from(["lf", "lf/open", "crlf", "gz"]), st.lists(events, max_size=25)),
    st.tuples(
        st.sampled_from(["parquet/1", "parquet/4", "parquet/100", "parquet-views/4"]),
        st.lists(rows, max_size=25),
    ),
)


def run(
    folder: Path, wanted: list[tuple[str, list[Event]]], batch: int, splits: int, runs: int
) -> Planned:
    paths = [write(folder, n, form, events) for n, (form, events) in enumerate(wanted)]
    files = {p.name: events for p, (_, events) in zip(paths, wanted, strict=True)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "_RUNS", runs)
        planned = Planned(paths, batch, splits, folder / "spool")
    check(files, planned)
    return planned


@settings(max_examples=35, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(logs, max_size=3),
    st.booleans(),
    st.integers(1, 12),
    st.integers(1, 4),
    st.sampled_from([0, 2, 32]),
)
@example([("lf/open", [("publish", 3), ("publish", 1), ("publish", 2)])], False, 2, 2, 0)
@example([("parquet/4", [("publish", n) for n in range(10)])], True, 3, 2, 32)
@example([("parquet-views/4", [("publish", 9 - n) for n in range(10)])], True, 3, 2, 1)
@example([("lf", []), ("parquet/1", [])], False, 1, 1, 32)
def test_every_line_once_and_in_order(
    wanted: list[tuple[str, list[Event]]], ordered: bool, batch: int, splits: int, runs: int
) -> None:
    if ordered:
        wanted = [(form, sorted(events, key=lambda e: e[1])) for form, events in wanted]
    with TemporaryDirectory() as folder:
        run(Path(folder), wanted, batch, splits, runs)


def publishes(times: list[int]) -> list[Event]:
    return [("publish", t) for t in times]


def kinds(batches: list[list[Split]]) -> list[set[str]]:
    return [{s.format for s in batch} for batch in batches]


def test_a_log_in_order_is_read_where_it_lies(tmp_path: Path) -> None:
    planned = run(tmp_path, [("lf", publishes(list(range(100))))], 30, 2, 32)
    assert [len(b) for b in planned.events] == [30, 30, 30, 10]
    assert not (tmp_path / "spool").exists()
    assert {s.path for b in planned.batches for s in b} == {str(tmp_path / "log0.jsonl")}
    assert [len(b) for b in planned.batches] == [2, 2, 2, 2]


def test_disorder_within_a_batch_needs_no_copy(tmp_path: Path) -> None:
    run(tmp_path, [("lf", publishes([2, 1, 0, 5, 4, 3]))], 3, 1, 32)
    assert not (tmp_path / "spool").exists()


def test_scattered_lines_are_copied_once(tmp_path: Path, rng: Any) -> None:
    times = rng.permutation(400).tolist()
    planned = run(tmp_path, [("crlf/open", publishes(times))], 100, 3, 32)
    assert [len(b) for b in planned.events] == [100] * 4
    assert all(s.lines for b in planned.batches for s in b)
    assert [len(b) for b in planned.batches] == [3] * 4


def test_scattered_rows_are_copied_once(tmp_path: Path, rng: Any) -> None:
    times = rng.permutation(400).tolist()
    planned = run(tmp_path, [("parquet/50", publishes(times))], 100, 3, 32)
    assert [len(b) for b in planned.events] == [100] * 4
    assert kinds(planned.batches) == [{"arrow"}] * 4


def test_rejects_of_copied_lines_have_the_numbers_of_the_log(tmp_path: Path, rng: Any) -> None:
    scattered: list[Event] = [("publish", int(t)) for t in rng.permutation(200)]
    bad = [("odd", n) if n % 7 == 3 else e for n, e in enumerate(scattered)]
    for form in ("lf", "gz", "parquet/30"):
        folder = tmp_path / form.replace("/", "")
        folder.mkdir()
        planned = run(folder, [(form, bad)], 40, 3, 2)
        assert sorted(line for _, line in planned.rejects) == list(range(4, 201, 7))


def test_whole_row_groups_are_read_where_they_lie(tmp_path: Path) -> None:
    planned = run(tmp_path, [("parquet/10", publishes(list(range(95))))], 24, 2, 32)
    assert kinds(planned.batches) == [{"parquet"}] * len(planned.batches)
    assert not (tmp_path / "spool").exists()


def test_a_huge_row_group_is_cut(tmp_path: Path) -> None:
    planned = run(tmp_path, [("parquet/1000", publishes(list(range(300))))], 100, 4, 32)
    assert [len(b) for b in planned.events] == [100] * 3
    assert kinds(planned.batches) == [{"arrow"}] * 3
    assert [len(b) for b in planned.batches] == [4] * 3


def test_files_interleave_by_time(tmp_path: Path) -> None:
    wanted = [("lf", publishes(list(range(start, 60, 3)))) for start in range(3)]
    planned = run(tmp_path, wanted, 15, 2, 32)
    times = [sorted(t for _, t, _ in batch) for batch in planned.events]
    assert times == [list(range(n, n + 15)) for n in range(0, 60, 15)]


def test_at_equal_times_subscriptions_come_first(tmp_path: Path) -> None:
    log: list[Event] = [("publish", 1), ("unsubscribe", 1)] * 6
    planned = run(tmp_path, [("lf", log)], 4, 1, 32)
    groups = [[g for _, _, g in batch] for batch in planned.events]
    assert [sorted(g) for g in groups] == [[0] * 4, [0, 0, 1, 1], [1] * 4]


def test_only_the_last_batch_is_final(tmp_path: Path) -> None:
    planned = run(tmp_path, [("lf", publishes(list(range(10))))], 4, 2, 32)
    assert [{s.final for s in b} for b in planned.batches] == [{False}, {False}, {True}]


def test_what_could_not_be_read_is_in_the_plan(tmp_path: Path) -> None:
    path = tmp_path / "log0.jsonl.gz"
    data = gzip.compress(
        "".join(text("log0", n, "publish", n) + "\n" for n in range(1, 4)).encode()
    )
    path.write_bytes(data + b"garbage")
    planned = Planned([path], 10, 2, tmp_path / "spool")
    assert planned.rejects == [("log0.jsonl.gz", 4)]
    assert sum(len(b) for b in planned.events) == 3


def test_a_log_that_shrinks_while_it_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, 0, "lf", publishes([1, 2, 3]))
    log = open_log(str(path), False, tmp_path / "spool")
    [[split]] = Planner([log], 10, 1, tmp_path / "spool").batches()
    path.write_text("{}\n")
    with pytest.raises(Exception, match="became shorter while it was read"):
        read_split(split, Space.PLANAR, KINDS, 0)
    path.unlink()
    with pytest.raises(Exception, match=f"cannot read {path}: "):
        read_split(split, Space.PLANAR, KINDS, 0)
