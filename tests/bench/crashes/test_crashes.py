"""A small part of the campaign; `nearcast bench crashes --points N` is the whole of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from nearcast.engine import faults
from nearcast.engine.output import batch_files
from nearcast.engine.output import commit as sink
from nearcast_bench.crashes.experiment import run_campaign
from nearcast_bench.crashes.round import run_round


@pytest.mark.slow
def test_some_crashes() -> None:
    figures = list(run_campaign(40, 100, lambda _: None))
    assert [f["lost"] + f["twice"] for f in figures if f.get("figure") == "crashes"] == [0]
    assert figures[-1] == {
        "claim": "nothing lost, nothing twice", "value": 0, "target": 0, "held": True,
    }  # fmt: skip
    total = figures[-2]
    assert total["points"] >= 40
    assert set(total["by_point"]) <= {*faults.POINTS, *faults.OF_ARCHIVES, *faults.OF_UPKEEP}
    assert len(total["by_point"]) > 10


def test_the_same_seed_is_the_same_round(memory: Path) -> None:
    one, two = (run_round(4, memory / name, 5) for name in "ab")
    one.settings.pop("arena", None)
    assert one == two
    assert one.crashed.total() >= 5


def test_what_is_lost_is_seen(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sink that forgets to rename the files of some batches."""
    rename, calls = batch_files.commit, list[Path]()

    def forgetful(out: Path, files: dict[str, str]) -> None:
        calls.append(out)
        rename(out, {} if len(calls) % 3 == 0 else files)

    monkeypatch.setattr(sink, "commit", forgetful)
    assert run_round(4, memory, 1).lost > 0
