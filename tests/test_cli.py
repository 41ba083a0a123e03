"""The command line: exit status and one clear line on stderr; light commands stay light."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import nearcast
from nearcast.cli import main
from nearcast.engine.formats import FIELD, FORMAT
from nearcast.engine.options.run_options import DEFAULTS
from nearcast.kinds import KINDS
from nearcast.objects import STORES
from nearcast.routing import ROUTERS
from nearcast.workload import GENERATORS


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    try:
        status: Any = main(argv)
    except SystemExit as stop:
        status = stop.code
    out, err = capsys.readouterr()
    return int(status or 0), out, err


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "log.jsonl"
    path.write_text('{"op":"publish","id":"o","time":1,"at":[0,0]}\n')
    return str(path)


REPLAY = ("replay", "LOG", "--out", "OUT")
WRONG: list[tuple[tuple[str, ...], str]] = [
    ((), "nearcast: the following arguments are required: COMMAND"),
    (("fly",), "nearcast: argument COMMAND: invalid choice: 'fly'"),
    (("replay",), "nearcast: the following arguments are required: EVENTS, --out"),
    (("replay", "LOG"), "nearcast: the following arguments are required: --out"),
    (("replay", "gone.jsonl", "--out", "OUT"), "nearcast: gone.jsonl: there is no such file"),
    (("replay", "EMPTY", "--out", "OUT"), "nearcast: EMPTY: the folder holds no .jsonl"),
    (("replay", "LOG", "--out", "LOG"), "nearcast: LOG: is a file; --out needs a folder"),
    ((*REPLAY, "--strategy", "range"), "nearcast: strategies: 'range': write KIND=NAME"),
    ((*REPLAY, "--strategy", "range="), "nearcast: strategies: 'range=': write"),
    ((*REPLAY, "--strategy", "range=tree"), "nearcast: strategy: no router 'tree' for range"),
    ((*REPLAY, "--strategy", "knn=hash+x"), "nearcast: strategy: no index 'x' for knn"),
    ((*REPLAY, "--strategy", "all=hash"), "nearcast: strategy: unknown kind 'all'"),
    (("replay", "--strategy", "range=hash", "gone", "--out", "OUT"), "nearcast: gone: there is no"),
    ((*REPLAY, "--strategy", "range=hash", "knn=x"), "nearcast: strategy: no router 'x' for knn"),
    ((*REPLAY, "--bounds", "-1,0,-2,1"), "nearcast: bounds: write minx,miny,maxx,maxy with min"),
    ((*REPLAY, "--bounds", "1,2,3"), "nearcast: bounds: write minx,miny,maxx,maxy"),
    ((*REPLAY, "--bounds", "a,b,c,d"), "nearcast: bounds: write minx,miny,maxx,maxy"),
    ((*REPLAY, "--bounds", "1,0,0,1"), "nearcast: bounds: write minx,miny,maxx,maxy with min"),
    ((*REPLAY, "--bounds", "1,0,2,1"), "nearcast: bounds has no effect: no chosen strategy div"),
    ((*REPLAY, "--shards", "0"), "nearcast: shards: 0 is not between 1 and 4096"),
    ((*REPLAY, "--shards", "two"), "nearcast: shards: 'two' is not a whole number"),
    ((*REPLAY, "--shards", "2", "--shards", "3"), "nearcast: shards: '2' and '3'; give it once"),
    ((*REPLAY, "--shards", "5000"), "nearcast: shards: 5000 is not between 1 and 4096"),
    ((*REPLAY, "--space", "round"), "nearcast: space: 'round'; use geographic or planar"),
    ((*REPLAY, "--balance", "on"), "nearcast: balance: 'on'; use off, auto, local or global"),
    (
        (*REPLAY, "--balance", "auto"),
        "nearcast: balance: auto needs a strategy that can balance, such as range=ps2stream",
    ),
    (
        (*REPLAY, "--balance", "auto", "--strategy", "range=tornado-text"),
        "nearcast: balance: auto needs a strategy that can balance, such as range=ps2stream",
    ),
    ((*REPLAY, "--changes", "some"), "nearcast: changes: 'some'; use every or net"),
    ((*REPLAY, "--format", "csv"), "nearcast: format: 'csv'; use jsonl or parquet"),
    ((*REPLAY, "--batch-events", "-1"), "nearcast: batch_events: -1 is less than 1"),
    ((*REPLAY, "--window", "30"), "nearcast: window: '30': write count:N or a duration"),
    ((*REPLAY, "--window", "count:0"), "nearcast: window: 'count:0': write count:N"),
    (
        (*REPLAY, "--window", "count:5", "--kind", "knn"),
        "nearcast: window has no effect: no kind of query of this",
    ),
    ((*REPLAY, "--maxdist", "0"), "nearcast: maxdist: 0 is not a number above 0"),
    ((*REPLAY, "--idf", "gone.jsonl"), "nearcast: idf: "),
    (("fit", "LOG"), "nearcast: the following arguments are required: --out"),
    (("fit", "gone.jsonl", "--out", "OUT.jsonl"), "nearcast: gone.jsonl: there is no such file"),
    (("fit", "LOG", "--out", "OUT.csv"), "nearcast: fit: "),
    ((*REPLAY, "--warmup", "x"), "nearcast: warmup: 'x' is not a whole number"),
    ((*REPLAY, "--warmup", "5"), "nearcast: warmup has no effect: no chosen strategy makes a plan"),
    ((*REPLAY, "--plan", "side"), "nearcast: plan: 'side': write NAME=NUMBER, such as side=128"),
    ((*REPLAY, "--plan", "side=x"), "nearcast: plan: side: 'x' is not a number"),
    ((*REPLAY, "--plan", "side=4"), "nearcast: plan: no parameter 'side'; there are none: these"),
    ((*REPLAY, "--trigger", "1s"), "nearcast: unrecognized arguments: --trigger 1s"),
    ((*REPLAY, "--fast"), "nearcast: unrecognized arguments: --fast"),
    (("run",), "nearcast: the following arguments are required: CONFIG.toml"),
    (("run", "gone.toml"), "nearcast: gone.toml: No such file or directory"),
    (("run", "LOG"), "nearcast: LOG: not valid TOML: "),
    (("generate",), "nearcast: the following arguments are required: NAME"),
    (("generate", "moon"), "nearcast: no workload 'moon'; there are "),
    (("generate", "city"), "nearcast: generate: give --out FILE"),
    (("generate", "list", "--seed", "0"), "nearcast: generate: --seed has no effect: `list`"),
    (("generate", "list", "--objects", "5"), "nearcast: generate: --objects has no effect: `list`"),
    (("generate", "city", "--objects", "1.5"), "nearcast: argument --objects: '1.5' is not"),
    (("generate", "city", "--out", "EMPTY/no/file.jsonl"), "nearcast: "),
    (("generate", "city", "--out", "OUT.csv"), "nearcast: "),
    (("bench", "nothing"), "nearcast: argument NAME: invalid choice: 'nothing'"),
]


@pytest.mark.parametrize(("argv", "line"), WRONG, ids=[" ".join(a) or "nothing" for a, _ in WRONG])
def test_a_usage_error_is_exit_2_and_one_line(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    log: str,
    monkeypatch: pytest.MonkeyPatch,
    argv: tuple[str, ...],
    line: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    names = {"LOG": log, "OUT": str(tmp_path / "out"), "EMPTY": str(tmp_path / "empty")}
    for name, path in names.items():
        argv = tuple(a.replace(name, path) for a in argv)
        line = line.replace(name, path)
    status, out, err = run(capsys, *argv)
    assert status == 2
    assert out == ""
    assert err.startswith(line)
    assert err.count("\n") == 1
    assert err.endswith("\n")


def test_a_checkpoint_of_other_settings_is_refused_before_spark_starts(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, log: str
) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "settings.json").write_text(json.dumps({FIELD: FORMAT}))
    out, state = str(tmp_path / "out"), str(tmp_path / "state")
    status, _, err = run(capsys, "replay", log, "--out", out, "--checkpoint", state)
    assert status == 2
    assert "made with other settings" in err
    assert err.count("\n") == 1


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--version") == (0, f"nearcast {nearcast.__version__}\n", "")


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "--help")
    assert (status, err) == (0, "")
    for command in ("replay", "run", "demo", "generate", "bench", "strategies"):
        assert command in out


def test_strategies_lists_all_that_can_be_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "strategies")
    assert (status, err) == (0, "")
    assert f"objects that stay: default {DEFAULTS['store']} (" in out
    for kind in KINDS.values():
        assert f"{kind.name}: default {kind.default} ({kind.reason})" in out
    for name, about, paper in [
        *((r.name, r.about, r.paper) for r in ROUTERS.values()),
        *((i.name, i.about, i.paper) for kind in KINDS.values() for i in kind.index_classes()),
        *((s.name, s.about, s.paper) for s in STORES.values()),
    ]:
        assert f"{name} " in out
        assert f"{about} [{paper}]" in out


def test_generate_list(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "generate", "list")
    assert status == 0
    assert [line.split()[0] for line in out.splitlines()] == list(GENERATORS)


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".parquet"])
def test_generate_writes_a_log(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"log{suffix}"
    argv = ["generate", "city", "--objects", "30", "--subscriptions", "5", "--out", str(path)]
    status, out, err = run(capsys, *argv, "--seed", "3")
    assert (status, out) == (0, "")
    assert err == f"{path}: 35 events\n"
    first = path.read_bytes()
    run(capsys, *argv, "--seed", "3")
    again = path.read_bytes()
    if suffix == ".jsonl.gz":
        first, again = gzip.decompress(first), gzip.decompress(again)
    assert first == again
    if suffix == ".jsonl":
        ops = [json.loads(line)["op"] for line in first.splitlines()]
        assert (ops.count("publish"), ops.count("subscribe")) == (30, 5)


LIGHT = """
import sys
import nearcast.testing.oracle, nearcast.routing, nearcast.wire.plan, nearcast.workload
from nearcast.cli import main
assert main(["strategies"]) == 0
assert main(["generate", "list"]) == 0
few = ["--objects", "5", "--subscriptions", "2"]
assert main(["generate", "city", *few, "--out", sys.argv[1]]) == 0
try:
    main(["--version"])
except SystemExit as stop:
    assert not stop.code
sys.exit("pyspark" in sys.modules)
"""


def test_only_the_engine_needs_spark(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(Path(nearcast.__file__).parents[1])}
    argv = [sys.executable, "-c", LIGHT, str(tmp_path / "log.jsonl")]
    subprocess.run(argv, check=True, env=env, stdout=subprocess.DEVNULL)


def test_the_module_runs_as_a_command() -> None:
    env = {**os.environ, "PYTHONPATH": str(Path(nearcast.__file__).parents[1])}
    argv = [sys.executable, "-m", "nearcast", "fly"]
    ended = subprocess.run(argv, check=False, env=env, capture_output=True, text=True)
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr.count("\n") == 1


def test_bench_says_what_to_do_where_it_is_not_installed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "nearcast_bench.cli", raising=False)
    monkeypatch.delitem(sys.modules, "nearcast_bench", raising=False)
    folders = [folder for folder in sys.path if not Path(folder, "nearcast_bench").exists()]
    monkeypatch.setattr(sys, "path", folders)
    status, out, err = run(capsys, "bench", "pipeline")
    assert (status, out) == (2, "")
    assert err.startswith("nearcast: bench: the experiments are not installed: run `make setup`")
    assert err.count("\n") == 1
