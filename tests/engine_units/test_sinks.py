"""Sinks besides the folder of the run: each has the same notifications, whatever breaks off."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.engine.contract import as_text, difference, expected, reported
from tests.recovery.story import script

from nearcast.engine import faults
from nearcast.engine.options.settings import Settings
from nearcast.engine.output.sinks import ConsoleOf, FilesOf, SinkOf
from nearcast.engine.output.sinks import files as files_sink
from nearcast.engine.output.sinks import spool as spools
from nearcast.engine.output.sinks.base import Shown
from nearcast.model.errors import NearcastError
from nearcast.model.space import Space
from nearcast.testing.live_run import LiveRun
from nearcast.testing.logs import random_log
from nearcast.testing.reading import read_time
from nearcast.wire.told import Told

STRATEGIES = {"range": "hash+scan", "knn": "hash+scan", "terms": "hash+scan"}

COUNTED = {"kind": "terms", "region": {"bbox": [-180, -90, 180, 90]}, "k": 3}


def start(memory: Path, sinks: list[SinkOf], **more: Any) -> LiveRun:
    given: dict[str, Any] = {"manifests": "files", "only": tuple(STRATEGIES), "retain_ms": 10**9}
    settings = Settings(
        order="arrival", arena=str(memory / "arena"), strategies=STRATEGIES, **(given | more)
    )
    return LiveRun(settings, memory / "run", 10, sinks=sinks)


def rows(folder: Path) -> list[dict[str, Any]]:
    """All rows of Parquet files, without what is null; JSON text is read."""
    found = []
    for path in sorted((folder / "notifications").glob("*.parquet")):
        for row in pq.read_table(path).to_pylist():
            text = {"terms", "objects", "meta"}
            some = {k: v for k, v in row.items() if v is not None}
            found.append({k: json.loads(v) if k in text else v for k, v in some.items()})
    return found


def bytes_of(folder: Path) -> dict[str, bytes]:
    found = [*folder.glob("notifications/b*"), *folder.glob("rejected/b*")]
    return {str(p.relative_to(folder)): p.read_bytes() for p in found}


def test_all_sinks_hold_the_same_whatever_breaks_off(
    memory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A copy of the lines, rows made of them, segments, and the console, with crashes between."""
    monkeypatch.setattr(files_sink, "EVERY", 4)
    monkeypatch.setenv("NEARCAST_FAULTS", str(memory / "faults"))
    (memory / "faults").mkdir()
    copy, table, rolled = (memory / name for name in ("copy", "table", "rolled"))
    run = start(
        memory,
        [
            FilesOf(str(copy)),
            FilesOf(str(table), "parquet"),
            FilesOf(str(rolled), keep="all"),
            ConsoleOf(),
        ],
    )
    kinds = {name: run.settings.kinds[name] for name in STRATEGIES}
    events: list[Any] = list(random_log(11, Space.GEOGRAPHIC, 240, late=0.1, kinds=kinds))
    for n in range(0, len(events), 40):
        events[n] = '{"op":"publish","id":"cut sh'
    shown = ""
    for n in range(24):
        run.write(events[10 * n : 10 * n + 10])
        points = {5: "sink-visible", 9: "sink-delivered", 13: "sink-controlled"}
        if n in points:
            script(memory / "faults", [(points[n], n, "raise")])
            with pytest.raises(RuntimeError, match="scripted"):
                run.step()
            shown += capsys.readouterr().out
            run.restart()
        assert run.step()
        shown += capsys.readouterr().out
    while run.step():
        pass
    shown += capsys.readouterr().out
    out = run.run.out
    wanted = expected(events, "geographic", "arrival", run.settings.kinds, 10**9)
    assert difference(reported(out), wanted) == ""
    assert bytes_of(copy) == bytes_of(out)
    assert len(bytes_of(out)) > 20
    assert sorted(map(as_text, rows(table))) == sorted(wanted.elements())
    assert sum(len(p.read_bytes()) for p in table.glob("rejected/*")) > 0
    assert list(Told(rolled).read()) == list(Told(out).read()) == list(Told(copy).read())
    assert [p.name for p in (rolled / "notifications").glob("segment-*.jsonl")]
    # Batches 9 and 13 were delivered twice; all that a file holds is on the console.
    lines = shown.splitlines()
    assert {as_text(json.loads(line)) for line in lines} == set(wanted)
    assert len(lines) > wanted.total()


def test_rows_made_of_lines_are_the_rows_of_the_run(memory: Path) -> None:
    """As types and values, with those of all kinds, echoes and answers."""
    (memory / "a").mkdir()
    (memory / "b").mkdir()
    by_rows = start(memory / "a", [], format="parquet")
    made = start(memory / "b", [FilesOf(str(memory / "made"), "parquet")])
    events = list(random_log(3, Space.GEOGRAPHIC, 200, kinds=made.settings.kinds))
    for n in range(12):
        query = {"kind": "knn", "at": [0, 0], "k": 3} if n % 2 else COUNTED
        time = read_time(events[-1]["time"])
        events.append({"op": "ask", "id": f"q{n}", "time": time, "last": 10**6, "query": query})
    for run in (by_rows, made):
        run.write(events)
        while run.step():
            pass
    for answers in (False, True):
        tables = [
            [
                pq.read_table(p)
                for p in sorted((folder / "notifications").iterdir())
                if p.stem.endswith("answers") == answers
            ]
            for folder in (by_rows.run.out, memory / "made")
        ]
        ours, theirs = (pa.concat_tables(t) for t in tables)
        assert ours.schema.equals(theirs.schema)
        assert ours.num_rows > 10
        assert sorted(map(str, ours.to_pylist())) == sorted(map(str, theirs.to_pylist()))


def test_the_spool_keeps_what_may_be_repeated(tmp_path: Path) -> None:
    for folder in ("notifications", "rejected"):
        (tmp_path / folder).mkdir()
        for n in range(spools.KEPT + 3):
            (tmp_path / folder / f"b{n:08d}-s0000.jsonl").touch()
    spool = spools.Spool(tmp_path)
    last = spools.KEPT + 2
    spool.deliver(Shown(last, tmp_path, [], []))
    spool.after(last)
    left = sorted(int(p.name[1:9]) for p in (tmp_path / "rejected").iterdir())
    assert left == list(range(3, spools.KEPT + 3))


def test_a_sink_that_cannot_work_is_refused(tmp_path: Path, memory: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NearcastError, match="is a file"):
        start(memory, [FilesOf(str(tmp_path / "file"))])
    with pytest.raises(NearcastError, match="format: 'csv'"):
        FilesOf("x", "csv")


def test_points_are_known() -> None:
    assert set(faults.OF_SINKS) <= faults._ALL
