"""docs/spec.md says what the code says: its tables are made from it, and name every file."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.docs.reference import BLOCK, BLOCKS, PAGE, comments, rewritten
from tests.engine.contract import run_log
from tests.engine.test_asks import busy

from nearcast.cli import main
from nearcast.engine.options.settings import Settings
from nearcast.kinds import KINDS
from nearcast.model.space import Space
from nearcast.routing.balance import Balance
from nearcast.testing.logs import random_log

ROOT = PAGE.parents[1]
PRODUCT = [
    *(p for p in ROOT.glob("*") if p.suffix in (".md", ".toml") or p.name == "Makefile"),
    *(p for f in ("docs", "src", "scripts") for p in (ROOT / f).rglob("*") if p.is_file()),
]


@pytest.mark.parametrize("name", BLOCKS)
def test_tables_are_those_of_the_code(name: str) -> None:
    found = {block[2]: block[3] for block in BLOCK.finditer(PAGE.read_text())}
    assert found[name] == f"\n{BLOCKS[name]()}\n", "run `make reference`"


def test_writing_the_page_again_changes_nothing() -> None:
    page = PAGE.read_text()
    assert set(BLOCKS) == {block[2] for block in BLOCK.finditer(page)}
    assert rewritten(page) == page


def test_comments_of_a_class_are_found() -> None:
    class Some:
        """Fields."""

        one: int  # the first
        # the second,
        # on two lines
        two: int
        three: int

    assert comments(Some) == {"one": "the first", "two": "the second, on two lines", "three": ""}


def files_of(heading: str) -> list[str]:
    """The patterns in the first column of the table behind `**heading**`."""
    section = PAGE.read_text().split(f"**{heading}**")[1].split("\n**")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])]


def not_named(folder: Path, heading: str) -> list[str]:
    """Files of a folder that the page does not name."""
    files = [str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()]
    assert files
    return [f for f in files if not any(fnmatch(f, p) for p in files_of(heading))]


@pytest.mark.parametrize("strategy", ["ps2stream", "random"])
def test_every_file_of_a_run_is_named(strategy: str, memory: Path) -> None:
    settings = Settings(
        strategies={"range": strategy, "knn": "dkm-sks"},
        shards=3,
        warmup=5,
        balance=Balance("auto", threshold=1.0, least=1) if strategy == "ps2stream" else Balance(),
        arena=str(memory / "arena"),
    )
    events: list[dict[str, Any] | str] = [*random_log(3, Space.GEOGRAPHIC, 150, late=0.2), "{"]
    Random(1).shuffle(events)  # scattered, so that lines are spooled
    run = run_log(memory / "run", events, settings, 10)
    assert not_named(run.checkpoint, "Checkpoint") == []
    assert not_named(run.out, "Results") == []


@pytest.mark.parametrize("format_", ["jsonl", "parquet"])
def test_every_file_of_a_run_with_a_past_is_named(format_: str, memory: Path) -> None:
    """Retained objects, answers and the archive."""
    kept = memory / "kept"
    settings = Settings(
        space=Space.PLANAR,
        retain_ms=20,
        format=format_,
        archive=str(kept),
        arena=str(memory / "arena"),
    )
    run = run_log(memory / "run", busy(1, Space.PLANAR, 150), settings, 13)
    assert any((run.checkpoint / "objects").iterdir())
    assert any((run.out / "notifications").glob("*-answers*"))
    assert not_named(run.checkpoint, "Checkpoint") == []
    assert not_named(run.out, "Results") == []
    assert not_named(kept, "Archive") == []


NOT_YET = re.findall(
    r"^\| \d.*$", PAGE.read_text().split("## Not in this version")[1].split("\n## ")[0], re.M
)


def status(*argv: str) -> int:
    """The exit status of a command."""
    try:
        return main(argv)
    except SystemExit as stop:  # of argparse
        assert isinstance(stop.code, int)
        return stop.code


@pytest.mark.parametrize("row", NOT_YET)
def test_what_this_version_has_not_is_refused(row: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Flags and commands that the page says are not there; when they come, the row goes."""
    for flag in re.findall(r"`(--[\w-]+)`", row):
        assert status("replay", "LOG", "--out", "OUT", flag, "1h") == 2
        assert re.search("unrecognized arguments|has no effect", capsys.readouterr().err)
    for command in re.findall(r"`nearcast (\w+)`", row):
        assert status(command) == 2
        assert "invalid choice" in capsys.readouterr().err
    for kind in re.findall(r"`(\w+)`", row.split("the kinds ")[-1]) if "the kinds" in row else ():
        assert kind not in KINDS


def test_the_page_names_no_file_twice() -> None:
    for heading, least in (("Results", 5), ("Checkpoint", 5), ("Archive", 2)):
        names = files_of(heading)
        assert len(names) == len(set(names)) > least


def test_nothing_points_at_a_contract_outside_the_repository() -> None:
    outside = re.compile(rb"shared/SPEC|SPEC\.md|contract that the project started from")
    assert [str(p) for p in PRODUCT if outside.search(p.read_bytes())] == []
