"""A checkpoint that is copied or moved elsewhere goes on, and the log stays exact."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.engine.contract import Miniature, difference, expected, reported, write_log
from tests.engine.decisions import BATCH_EVENTS, WAYS, index_for
from tests.recovery.story import script

from nearcast.engine import Engine
from nearcast.engine.feed.ledger import Ledger
from nearcast.engine.feed.source import Feed
from nearcast.engine.feed.tailer import Tailer
from nearcast.engine.options.settings import Settings
from nearcast.engine.run import _run_name
from nearcast.model.errors import NearcastError
from nearcast.model.space import Space
from nearcast.testing.logs import random_log


def move_on(run: Miniature) -> None:
    """Move all that a run has, but for its arenas."""
    elsewhere = run.folder.with_name(f"after {run.next}")
    run.folder.rename(elsewhere)
    run.folder = elsewhere


@pytest.mark.slow
@pytest.mark.parametrize("router", ["random", "dkm-sks"])
def test_moved_after_every_batch(router: str, tmp_path: Path, memory: Path) -> None:
    """With tables, plans and subscriptions on their way from shard to shard."""
    events = random_log(11, Space.GEOGRAPHIC, 100, crowd=True)
    settings = Settings(shards=3, strategies={"knn": router}, warmup=20, arena=str(memory))
    run = Miniature(settings, tmp_path / "start")
    batches = run.feed(events, 10)
    for n in range(batches):
        run.batch(n)
        move_on(run)
    assert difference(reported(run.out), expected(events, "geographic")) == ""
    assert list((run.checkpoint / "moves").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("order", ["time", "arrival"])
def test_moved_after_every_batch_with_a_balance(order: str, tmp_path: Path, memory: Path) -> None:
    name = next(iter(WAYS))
    way = WAYS[name]
    log = way.log(way.seeds[order == "arrival"], order)
    run = Miniature(way.settings(index_for(way, order), order, memory), tmp_path / "start")  # type: ignore[arg-type]
    for n in range(run.feed(log, BATCH_EVENTS)):
        run.batch(n)
        move_on(run)
    assert run.decided()
    assert difference(reported(run.out), expected(log, "geographic", order)) == ""  # type: ignore[arg-type]


@pytest.mark.spark
def test_copied_in_the_middle(
    tmp_path: Path, spark: SparkSession, faults: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first place is removed, with the log; the same call goes on from the copy."""
    events = random_log(6, Space.GEOGRAPHIC, 150)
    events = [events[n] for n in range(149, -1, -1)]  # backwards, so that all of it is spooled
    old, new = tmp_path / "old", tmp_path / "new" / "deep"
    old.mkdir()
    write_log(old / "log.jsonl", events)
    engine = Engine(
        shards=2, strategies={"range": "random", "knn": "random"}, arena=str(tmp_path / "arena"),
        spark=spark,
    )  # fmt: skip
    script(faults, [("sink-decided", 3, "raise")])
    with pytest.raises(NearcastError, match="scripted failure"):
        engine.replay([old / "log.jsonl"], old / "out", checkpoint=old / "state", batch_events=25)
    shutil.copytree(old, new)
    shutil.rmtree(old)
    assert str(old).encode() not in b"".join(p.read_bytes() for p in new.glob("state/control/*"))
    monkeypatch.chdir(new)
    summary = engine.replay(["log.jsonl"], "out", checkpoint="state", batch_events=25)
    assert summary["batches"] == 6
    assert summary["resumed_after_batches"] == 3
    assert difference(reported(new / "out"), expected(events, "geographic")) == ""


# -- logs that move along --------------------------------------------------------------------------


def planned(folder: Path) -> Path:
    """A checkpoint with the log beside it planned."""
    folder.mkdir()
    (folder / "log.jsonl").write_text("{}\n")
    Ledger(folder / "state").add([str(folder / "log.jsonl")], 1, 1)
    return folder / "log.jsonl"


def test_a_log_that_moved_along_is_known(tmp_path: Path) -> None:
    planned(tmp_path / "a")
    (tmp_path / "a").rename(tmp_path / "b")
    log = tmp_path / "b" / "log.jsonl"
    ledger = Ledger(tmp_path / "b" / "state")
    assert ledger.fresh([str(log)]) == []
    ledger.add([], 1, 1)
    (tmp_path / "b").rename(tmp_path / "c")
    assert Ledger(tmp_path / "c" / "state").fresh([str(tmp_path / "c" / "log.jsonl")]) == []


def test_a_log_that_stayed_is_known(tmp_path: Path) -> None:
    log = planned(tmp_path / "a")
    shutil.move(tmp_path / "a" / "state", tmp_path / "state")
    assert Ledger(tmp_path / "state").fresh([str(log)]) == []


def test_a_log_and_its_copy(tmp_path: Path) -> None:
    log = planned(tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    copy = tmp_path / "b" / "log.jsonl"
    assert Ledger(tmp_path / "b" / "state").fresh([str(log), str(copy)]) == []
    copy.write_text("[]\n")
    assert Ledger(tmp_path / "b" / "state").fresh([str(log), str(copy)]) == [str(copy)]


def test_another_log_where_the_one_that_is_gone_should_be(tmp_path: Path) -> None:
    planned(tmp_path / "a")
    (tmp_path / "a").rename(tmp_path / "b")
    (tmp_path / "b" / "log.jsonl").write_text("[]\n")
    with pytest.raises(NearcastError, match="has other content than when this checkpoint planned"):
        Ledger(tmp_path / "b" / "state")


@pytest.mark.parametrize("copied", [False, True])
def test_a_tailed_folder_that_moved_along(tmp_path: Path, copied: bool) -> None:
    line = json.dumps({"op": "unsubscribe", "id": "x", "time": 1}) + "\n"
    (tmp_path / "a" / "in").mkdir(parents=True)
    (tmp_path / "a" / "in" / "l.jsonl").write_text(3 * line)
    Tailer([tmp_path / "a" / "in"], tmp_path / "a" / "state", 10, 1).poll()
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    if not copied:
        shutil.rmtree(tmp_path / "a")
    here = tmp_path / "b" / "in"
    with (here / "l.jsonl").open("a") as file:
        file.write(2 * line)
    Tailer([here], tmp_path / "b" / "state", 10, 1).poll()
    feed = Feed(tmp_path / "b" / "state")
    splits = [s for n in range(len(feed)) for s in feed.read(n, [here])]
    assert [(s.start, s.length, s.first_line) for s in splits] == [
        (0, 3 * len(line), 1),
        (3 * len(line), 2 * len(line), 4),
    ]
    assert {s.path for s in splits} == {s.name for s in splits} == {str(here / "l.jsonl")}


def test_a_copy_has_arenas_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    name = _run_name(tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    assert _run_name(tmp_path / "a") == name
    assert _run_name(tmp_path / "b") != name
