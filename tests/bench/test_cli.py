"""Every experiment is a command with flags of its own; a flag without effect is refused."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from nearcast import plotting
from nearcast.cli import main
from nearcast.model.errors import NearcastError
from nearcast_bench.balance.command import setting_of as balance_setting
from nearcast_bench.cli import EXPERIMENTS, parse
from nearcast_bench.dkm_sks.command import setting_of as dkm_setting
from nearcast_bench.pipeline import command as pipeline
from nearcast_bench.ps2stream.command import setting_of as ps2stream_setting
from nearcast_bench.range_index.command import setting_of as range_setting
from nearcast_bench.tornado.command import setting_of as tornado_setting

ROOT = Path(__file__).parents[2]
PAPER = {
    "--full", "--small", "--queries", "--subscriptions", "--objects", "--workers",
    "--dispatchers", "--index", "--figures", "--seed", "--keep",
}  # fmt: skip
FLAGS = {
    "pipeline": {"--objects", "--subscriptions", "--seed", "--keep", "--batch-events"},
    "dkm-sks": {
        "--full", "--spark", "--workload", "--subscriptions", "--objects", "--seed", "--data",
        "--k-max", "--ticks", "--workers", "--series", "--algorithm", "--batch-events", "--keep",
    },
    "range-index": {
        "--full", "--spark", "--queries", "--subscriptions", "--seed", "--objects", "--index",
        "--side-max", "--churn", "--workers", "--strategy", "--batch-events", "--keep", "--shape",
        "--space", "--shards",
    },
    "terms": {
        "--objects", "--subscriptions", "--rate", "--every", "--window", "--area", "--index",
        "--shards", "--step", "--seed",
    },
    "ps2stream": {*PAPER, "--constants"},
    "tornado": PAPER,
    "sstd": {
        "--full", "--small", "--objects", "--asks", "--data", "--seed", "--store", "--queries",
        "--step", "--workers", "--seeds", "--index", "--figures", "--delta", "--keep",
    },
    "past": {
        "--objects", "--subscriptions", "--asks", "--rounds", "--batch-events", "--keep", "--seed",
    },
    "balance": {
        "--minutes", "--strategy", "--seed", "--queries", "--subscriptions", "--batches",
        "--batch-events", "--phase", "--churn-events", "--keep",
    },
    "crashes": {"--points", "--seed"},
    "fuzz": {"--lines", "--spark", "--seed"},
    "dskype": {
        "--full", "--small", "--subscriptions", "--window", "--messages", "--shards", "--k",
        "--data", "--step", "--seed", "--seeds", "--figures", "--keep",
    },
    "live": {"--subscriptions", "--rate", "--seconds", "--kind", "--shards", "--seed"},
    "sizing": {"--number", "--seed"},
    "soak": {"--batches", "--samples", "--seed"},
    "skype": {
        "--full", "--small", "--subscriptions", "--window", "--messages", "--batch",
        "--data", "--seed", "--seeds", "--index", "--figures", "--keep",
    },
    "redraw": {"--keep"},
}  # fmt: skip


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    try:
        status = main(["bench", *argv])
    except SystemExit as stop:
        status = int(stop.code or 0)
    out, err = capsys.readouterr()
    return status, out, err


def test_help_names_every_experiment(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "--help")
    assert (status, err) == (0, "")
    assert all(name in out for name in EXPERIMENTS)
    assert set(EXPERIMENTS) == set(FLAGS)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_help_shows_the_flags_of_the_experiment_alone(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = run(capsys, name, "--help")
    assert (status, err) == (0, "")
    shown = set(re.findall(r"^  (?:-h, )?(--[\w-]+)", out, re.MULTILINE))
    shown |= set(re.findall(r"^  --queries\b.* (--subscriptions)", out, re.MULTILINE))
    assert shown == {"--help", "--json", *FLAGS[name]}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_flags_of_other_experiments_are_refused(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for flag in set().union(*FLAGS.values()) - FLAGS[name]:
        needed = ["tornado", "x", "--keep", "y"] if name == "redraw" else []
        status, out, err = run(capsys, name, *needed, flag)
        assert (status, out) == (2, ""), flag
        assert err.startswith(f"nearcast: unrecognized arguments: {flag}"), flag
        assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("dkm-sks --full --workers 3", "--workers has no effect here (not with --full or --spark)"),
        ("dkm-sks --spark --ticks 3", "--ticks has no effect here (not with --spark)"),
        ("dkm-sks --batch-events 3", "--batch-events has no effect here (only with --spark)"),
        ("dkm-sks --full --keep x", "--keep has no effect here (not with --full)"),
        ("range-index --strategy hash", "--strategy has no effect here (only with --full or --sp"),
        ("range-index --spark --full --index fast", "--index has no effect here (not with --spark"),
        ("range-index --full --churn", "--churn has no effect here (not with --spark or --full)"),
        ("ps2stream --constants --figures 6", "--figures has no effect here (not with --constants"),
        ("balance --minutes 1 --batches 4", "--batches has no effect here (not with --minutes)"),
        ("balance --keep x", "--keep has no effect here (only with --minutes)"),
    ],
)
def test_a_flag_without_effect_is_refused(
    line: str, error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = run(capsys, *shlex.split(line))
    assert (status, out) == (2, "")
    assert err.startswith(f"nearcast: bench {line.split()[0]}: {error}")
    assert err.count("\n") == 1


def test_one_index_is_enough_for_a_full_run(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capsys, "range-index", "--full", "--index", "fast", "--index", "gi2")
    assert (status, err) == (2, "nearcast: bench range-index: give --index once, not fast, gi2\n")


def _stored_commands() -> set[str]:
    """Commands of stored results, and those that pages print."""
    found = set()
    for path in (ROOT / "bench/results").glob("*.jsonl"):
        for line in path.read_text().splitlines():
            found.add(json.loads(line).get("command", ""))
    for page in (ROOT / "docs").rglob("*.md"):
        found |= set(re.findall(r"`(nearcast bench [^`<]*)`", page.read_text()))
    known = {text.partition(" (")[0] for text in found if text.startswith("nearcast bench ")}
    return {text for text in known if "…" not in text and " NAME" not in text}


@pytest.mark.parametrize("command", sorted(_stored_commands()))
def test_commands_of_results_and_pages_are_still_known(command: str) -> None:
    _, args = parse(shlex.split(command)[2:])
    assert args.command == command


@pytest.mark.parametrize(
    "line",
    ["tornado --keep DIR", "ps2stream --keep DIR", "dkm-sks --keep DIR", "redraw tornado x"],
)
def test_plots_without_matplotlib_are_refused_before_the_work(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plotting, "find_spec", lambda _: None)
    words = shlex.split(line.replace("DIR", str(tmp_path)))
    if words[0] == "redraw":
        words += ["--keep", str(tmp_path)]
    status, out, err = run(capsys, *words)
    assert status == 2
    assert [line for line in out.splitlines() if "command" not in json.loads(line)] == []
    assert err == "nearcast: plots need matplotlib: pip install 'nearcast[plots]'\n"


def test_stored_results_are_drawn_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = str(ROOT / "bench/results/tornado-20261118.jsonl")
    status, out, err = run(capsys, "redraw", "tornado", results, "--keep", str(tmp_path), "--json")
    assert (status, err) == (0, "")
    drawn = {Path(json.loads(line)["drawn"]).name for line in out.splitlines()}
    assert drawn == {path.name for path in tmp_path.iterdir()}
    assert drawn == {path.name for path in (ROOT / "docs/papers/figures").glob("tornado-*.svg")}
    status, _, err = run(capsys, "redraw", "tornado", str(tmp_path / "no"), "--keep", "x")
    assert status == 2
    assert err.startswith("nearcast: bench redraw: ")


def test_flags_reach_the_settings() -> None:
    def given(setting_of: Any, line: str) -> Any:
        return setting_of(parse(line.split())[1])

    plain = given(dkm_setting, "dkm-sks --k-max 5 --ticks 3 --workers 4 --workload twitter")
    assert (plain.k_max, plain.ticks, plain.workers, plain.seed) == (5, 3, 4, 7)
    assert (plain.workload, plain.subscriptions, plain.objects) == ("twitter", 200_000, 100_000)
    full = given(dkm_setting, "dkm-sks --full --ticks 50")
    assert (full.subscriptions, full.objects, full.workers) == (10_000_000, 1_000_000, 2)
    ranges = given(range_setting, "range-index --subscriptions 9 --churn --index gi2 --index scan")
    assert (ranges.queries, ranges.churn, ranges.indexes) == (9, True, ("gi2", "scan"))
    assert (ranges.objects, ranges.side_max, ranges.seed) == (200_000, 0.01, 7)
    paper = given(ps2stream_setting, "ps2stream --small --objects 50 --figures 6,7 --workers 3")
    assert (paper.queries, paper.changes, paper.workers) == (2_000, 10, 3)
    assert paper.figures == ("6", "7")
    other = given(tornado_setting, "tornado --full --workers 3 --dispatchers 2 --index gi2")
    assert (other.queries, other.evaluators, other.units, other.index) == (10_000_000, 3, 2, "gi2")
    moving = given(balance_setting, "balance --batches 4 --batch-events 5 --phase 2 --seed 1")
    assert (moving.batches, moving.stream.batch, moving.stream.phase) == (4, 5, 2)
    assert (moving.stream.seed, moving.stream.churn) == (1, 0)
    assert moving.strategies == ("ps2stream", "tornado")


def test_figures_are_lines_and_progress_is_apart(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def experiment(args: Any, say: Any) -> Any:
        say("half way")
        yield {"figure": args.objects}

    monkeypatch.setattr(pipeline, "run", experiment)
    figure = '{"figure": 3}\n'
    assert run(capsys, "pipeline", "--objects", "3") == (0, figure, "half way\n")
    assert run(capsys, "pipeline", "--objects", "3", "--json") == (0, figure, "")


def test_an_error_within_an_experiment_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def experiment(*_: Any) -> Any:
        raise NearcastError("bench: wrong")

    monkeypatch.setattr(pipeline, "run", experiment)
    assert run(capsys, "pipeline") == (2, "", "nearcast: bench: wrong\n")


def test_only_the_chosen_experiment_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [m for m in sys.modules if m.startswith("nearcast_bench.tornado")]:
        monkeypatch.delitem(sys.modules, name)
    parse(["pipeline"])
    assert "nearcast_bench.tornado.command" not in sys.modules
