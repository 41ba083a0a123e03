"""Settings: what is refused, and what a checkpoint is bound to."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from nearcast.engine.moves.control import make_routers
from nearcast.engine.options.settings import BOUND, Settings, check_bound
from nearcast.model.errors import NearcastError
from nearcast.model.space import Space
from nearcast.routing.balance import Balance
from nearcast.wire.durable import write_atomic


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"shards": 0}, "shards: 0 is not between 1 and 4096"),
        ({"shards": 5000}, "shards: 5000 is not between 1 and 4096"),
        ({"order": "size"}, "order: 'size'; use time or arrival"),
        ({"changes": "some"}, "changes: 'some'; use every or net"),
        ({"format": "csv"}, "format: 'csv'; use jsonl or parquet"),
        ({"bounds": (1, 0, 0, 1)}, "bounds: write minx,miny,maxx,maxy with min < max"),
        ({"bounds": (0, 1, 1, 1)}, "bounds: write minx,miny,maxx,maxy with min < max"),
        ({"bounds": (0, 0, float("nan"), 1)}, "bounds: write minx,miny,maxx,maxy"),
        ({"strategies": {"range": "no"}}, "strategy: no router 'no' for range"),
        ({"balance": Balance(mode="auto")}, "balance: auto needs a strategy that can balance"),
        ({"strategies": {"other": "hash"}}, "strategy: unknown kind 'other'"),
        ({"plan": {"delta": 1}}, "plan: no parameter 'delta'; there are none: these strategies"),
        ({"plan": {"d": 1}, "strategies": {"range": "tornado"}}, "plan: no parameter 'd'; there"),
    ],
)
def test_nonsense_is_refused_in_one_line(values: dict[str, Any], reason: str) -> None:
    with pytest.raises(NearcastError) as caught:
        Settings(**values)
    assert str(caught.value).startswith(reason)
    assert "\n" not in str(caught.value)


def test_a_plan_goes_by_what_the_run_was_told() -> None:
    reported = {"delta": 0.4, "gamma2": 30.0}
    settings = Settings(plan=reported, strategies={"range": "ps2stream", "knn": "dkm-sks"})
    by_range, by_knn = (make_routers(settings, {})[kind] for kind in ("range", "knn"))
    assert by_range.given({})["delta"] == 0.4
    assert by_range.given({"delta": 0.3})["delta"] == 0.3
    assert by_range.given({})["sigma"] == by_range.parameters["sigma"]
    assert by_knn.given({})["gamma2"] == 30.0
    with pytest.raises(NearcastError, match="dkm-sks: no parameter 'delta'"):
        by_knn.given({"delta": 1.0})


def test_strategies_are_spelled_out() -> None:
    chosen = Settings(strategies={"range": "broadcast"}).strategies
    assert chosen["range"] == "broadcast+scan"
    assert "+" in chosen["knn"]


@pytest.mark.parametrize(
    "values",
    [
        {"balance": Balance("local", 1.5), "strategies": {"range": "tornado"}},
        {"plan": {"delta": 0.4, "c1": 2e-5}, "strategies": {"range": "ps2stream"}},
        {},
        {"bounds": (0.0, 0.0, 1.0, 2.0), "space": Space.PLANAR, "strategies": {"knn": "random"}},
    ],
)
def test_through_json_and_back(values: dict[str, Any]) -> None:
    settings = Settings(**values)
    assert Settings.from_json(json.loads(json.dumps(settings.to_json()))) == settings


def test_only_a_live_stream_waits_for_what_is_late() -> None:
    assert Settings(order="time", lateness_ms=5).grace_ms == 0
    assert Settings(order="arrival", lateness_ms=5).grace_ms == 5


def test_the_folder_for_indexes(tmp_path: Path) -> None:
    assert Settings(arena=str(tmp_path)).arena_root() == tmp_path
    assert "nearcast" in Settings().arena_root().name


# -- checkpoints ---------------------------------------------------------------------------------


def test_a_new_checkpoint_remembers_its_settings(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "checkpoint"
    settings = Settings(shards=3)
    check_bound(settings, folder)
    assert json.loads((folder / "settings.json").read_text())["shards"] == 3
    check_bound(settings, folder)


def test_what_does_not_touch_the_state_may_change(tmp_path: Path) -> None:
    check_bound(Settings(), tmp_path)
    check_bound(Settings(changes="net", format="parquet", bounds=(0, 0, 1, 1)), tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("space", Space.PLANAR),
        ("shards", 3),
        ("strategies", {"range": "broadcast"}),
        ("order", "arrival"),
        ("lateness_ms", 5),
    ],
)
def test_other_settings_are_refused(tmp_path: Path, name: str, value: Any) -> None:
    assert name in BOUND
    check_bound(Settings(), tmp_path)
    with pytest.raises(NearcastError, match="made with other settings") as caught:
        check_bound(Settings(**{name: value}), tmp_path)
    text = str(caught.value)
    assert text.startswith(f"{tmp_path}: ")
    assert f"{name} was " in text
    assert "another --checkpoint" in text
    assert "\n" not in text


@pytest.mark.parametrize("content", ["", "{", "[]", "7"])
def test_settings_that_are_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "settings.json").write_text(content)
    with pytest.raises(NearcastError, match="not a nearcast checkpoint"):
        check_bound(Settings(), tmp_path)


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(NearcastError, match="not empty, and not a nearcast checkpoint"):
        check_bound(Settings(), tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_crash_while_a_checkpoint_was_made(tmp_path: Path) -> None:
    (tmp_path / ".settings.json.17.tmp").write_text("{")
    check_bound(Settings(), tmp_path)
    assert (tmp_path / "settings.json").exists()


# -- files that are whole or not there -----------------------------------------------------------


def test_write_atomic(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file"
    write_atomic(path, b"one")
    write_atomic(path, b"two")
    assert path.read_bytes() == b"two"
    assert [p.name for p in path.parent.iterdir()] == ["file"]


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    write_atomic(path, b"one")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(NearcastError, match="No space left on device"):
        write_atomic(path, b"two")
    assert path.read_bytes() == b"one"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
