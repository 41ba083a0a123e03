"""A kind of one file outside of `src/`: decode, shards, moves, crashes, both formats."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest
from tests.engine.contract import Miniature, run_log
from tests.kinds.count import Count

from nearcast.engine.options.settings import Settings
from nearcast.kinds import KINDS, kinds_of
from nearcast.model.errors import NearcastError
from nearcast.model.space import Space
from nearcast.testing.cases import busy_log
from nearcast.testing.checks import Check, yield_checks
from nearcast.testing.oracle import replay

PLUGIN = "tests.kinds.count"
KINDS_HERE = kinds_of([PLUGIN])
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "check",
    [c for _, c in yield_checks("scan", Count())],
    ids=[n for n, _ in yield_checks("scan", Count())],
)
def test_it_keeps_every_promise_of_an_index(check: Check) -> None:
    for seed in range(3):
        check(seed)


@pytest.mark.parametrize("order", ["time", "arrival"])
@pytest.mark.parametrize("format_", ["jsonl", "parquet"])
@pytest.mark.parametrize("router", ["hash", "random", "broadcast"])
def test_it_runs_with_the_others(
    tmp_path: Path, memory: Path, router: str, format_: str, order: str
) -> None:
    """`random` moves subscriptions with their counts; batches come again, some on lost arenas."""
    log = busy_log(7, Space.PLANAR, 150, late=0.2, kinds=KINDS_HERE)
    settings = Settings(
        space=Space.PLANAR,
        shards=3,
        strategies={"count": router, "knn": "random"},
        plugins=(PLUGIN,),
        format=format_,
        order=order,
        arena=str(memory),
    )
    run = run_log(tmp_path, log, settings, 12, Random(3))
    found = replay(log, Space.PLANAR, order, kinds=KINDS_HERE)  # type: ignore[arg-type]
    assert len(found.of("count")) > 20
    if router == "random":
        assert any((run.checkpoint / "moves").iterdir())


def test_its_value_has_a_column_of_its_own(tmp_path: Path, memory: Path) -> None:
    log = busy_log(1, Space.PLANAR, 60, late=0.0, kinds=KINDS_HERE)
    settings = Settings(space=Space.PLANAR, plugins=(PLUGIN,), format="parquet", arena=str(memory))
    run = Miniature(settings, tmp_path)
    run.feed(log, 20)
    run.finish()
    files = sorted((run.out / "notifications").iterdir())
    tables = [pq.read_table(path) for path in files]
    assert tables[0].column_names == [
        "id", "event", "object", "time", "distance", "score", "count", "terms", "owner", "meta"
    ]  # fmt: skip
    rows = [row for table in tables for row in table.to_pylist()]
    assert {row["count"] is not None for row in rows if row["event"] == "reached"} == {True}
    assert {row["count"] for row in rows if row["event"] != "reached"} == {None}


def test_bad_queries_are_refused(tmp_path: Path, memory: Path) -> None:
    queries = [
        {**query, name: value} for query, name, values in Count.examples.bad for value in values
    ]
    log = [
        {"op": "subscribe", "id": f"s{n}", "time": 0, "query": query}
        for n, query in enumerate(queries)
    ]
    settings = Settings(space=Space.PLANAR, plugins=(PLUGIN,), arena=str(memory))
    run = Miniature(settings, tmp_path)
    run.feed(log, 100)
    run.finish()
    lines = [
        json.loads(line)
        for path in sorted((run.out / "rejected").iterdir())
        for line in path.read_text().splitlines()
    ]
    assert [line["line"] for line in lines] == list(range(1, len(log) + 1))


def test_without_the_plugin_it_is_unknown(tmp_path: Path, memory: Path) -> None:
    run = Miniature(Settings(space=Space.PLANAR, arena=str(memory)), tmp_path)
    run.feed([{"op": "subscribe", "id": "s", "time": 0, "query": Count.examples.everything}], 10)
    run.finish()
    (path,) = (run.out / "rejected").iterdir()
    assert (
        json.loads(path.read_text())["reason"]
        == "query.kind: unknown 'count'; use range, knn, topk or terms"
    )


def test_modules_without_kinds_and_names_that_are_taken_are_refused() -> None:
    with pytest.raises(NearcastError, match="no module with a list KINDS"):
        kinds_of(["tests.kinds.nothing"])
    with pytest.raises(NearcastError, match="is taken"):
        kinds_of([PLUGIN, PLUGIN])
    assert list(kinds_of([])) == list(KINDS)


@pytest.mark.spark
def test_spark_runs_it(tmp_path: Path) -> None:
    """The whole way: command line, driver, Python workers, files."""
    log = busy_log(5, Space.PLANAR, 200, late=0.2, kinds=KINDS_HERE)
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in log))
    out = tmp_path / "out"
    command = [
        sys.executable, "-m", "nearcast", "replay", str(path), "--out", str(out), "--space",
        "planar", "--plugin", PLUGIN, "--strategy", "count=random", "--batch-events", "40",
        "--master", "local[2]",
    ]  # fmt: skip
    paths = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    lines = [
        line for file in (out / "notifications").iterdir() for line in file.read_text().splitlines()
    ]
    right = replay(log, Space.PLANAR, kinds=KINDS_HERE).notifications
    assert sorted(json.dumps(json.loads(line), sort_keys=True) for line in lines) == sorted(
        json.dumps(n, sort_keys=True) for n in right
    )
