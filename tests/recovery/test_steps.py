"""Crashes, repeats and lost arenas in the steps themselves: many of them, without a JVM."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from random import Random

import pytest
from tests.engine.contract import Miniature, difference, expected, reported, write_log
from tests.recovery.disk import Disk
from tests.recovery.story import BATCH_EVENTS, BATCHES, MOVING, STILL, Story, script

from nearcast.engine import faults as points
from nearcast.engine.feed.source import Feed
from nearcast.engine.feed.tailer import Tailer
from nearcast.engine.options.settings import Settings
from nearcast.engine.shard import holdings
from nearcast.kinds import kinds_of
from nearcast.model.errors import NearcastError
from nearcast.model.space import Space
from nearcast.testing.cases import busy_log
from nearcast.testing.logs import random_log
from nearcast.testing.oracle import Order

pytestmark = pytest.mark.slow

STRATEGIES = (MOVING, STILL, {"range": "random+scan", "knn": "random+scan"})


def start(
    folder: Path,
    strategies: dict[str, str],
    arena: Path,
    count: int = 3,
    order: str = "time",
    manifests: str = "files",
) -> Miniature:
    settings = Settings(
        shards=count,
        strategies=strategies,
        order=order,
        arena=str(arena),
        manifests=manifests,
    )
    return Miniature(settings, folder)


def damage(rng: Random, arenas: Path) -> None:
    """Half of the arenas: gone, cut short, with another token, or another shard's."""
    folders = sorted(p for p in arenas.iterdir() if p.is_dir())
    for arena in rng.sample(folders, len(folders) // 2 + 1):
        what = rng.choice(("gone", "cut", "token", "other"))
        other = rng.choice(folders)
        if what == "cut":
            file = rng.choice(sorted(arena.glob("*.bin")))
            os.truncate(file, file.stat().st_size // 2)
        elif what == "token":
            (arena / "token").write_text("scribble")
        elif what == "gone" or other == arena or not other.exists():
            shutil.rmtree(arena)
            folders.remove(arena)
        else:
            shutil.rmtree(arena)
            shutil.copytree(other, arena)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("order", ["time", "arrival"])
def test_any_trouble_at_any_time(
    seed: int,
    order: Order,
    tmp_path: Path,
    memory: Path,
    faults: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = Random(f"{seed} {order}")
    monkeypatch.setattr(holdings, "_SMALL", rng.choice((300, 3000, 1 << 20)))  # when to compact
    late = 0.3 if order == "arrival" else 0.0
    events = random_log(seed, Space.GEOGRAPHIC, 120, late, late > 0)
    way = ("files", "spark")[(seed + (order == "time")) % 2]
    run = start(tmp_path, STRATEGIES[seed], memory, rng.choice((2, 3, 5)), order, way)
    (tmp_path / "in").mkdir()
    log = write_log(tmp_path / "in" / "events.jsonl", events)
    if order == "time":
        run.plan(log, 10)
    else:
        Tailer([tmp_path / "in"], run.checkpoint, 10, 2).poll()
    troubles = 0
    while run.next < len(Feed(run.checkpoint)):
        trouble = rng.random()
        if trouble < 0.4:
            script(faults, [(rng.choice(points.POINTS), run.next, "raise")])
        elif trouble < 0.55 and run.arenas.exists():
            damage(rng, run.arenas)
        elif trouble < 0.7:
            run.next = max(0, run.next - rng.choice((1, 2)))  # commits that were lost
        try:
            run.batch(run.next)
        except RuntimeError as error:
            assert "scripted failure" in str(error)
            troubles += 1
    assert troubles > 2
    assert difference(reported(run.out), expected(events, "geographic", order)) == ""


@pytest.mark.parametrize("manifests", ["files", "spark"])
@pytest.mark.parametrize("point", points.POINTS)
def test_a_move_survives_a_crash_at_each_step(
    point: str, manifests: str, tmp_path: Path, memory: Path, faults: Path, story: Story
) -> None:
    """Batches 1, 3, ... export and publish, batches 2, 4, ... take in and drop."""
    run = start(tmp_path, MOVING, memory, manifests=manifests)
    assert run.plan(story.log, BATCH_EVENTS) == BATCHES
    script(faults, [(point, batch, "raise") for batch in (1, 2, 3, 6, 7)])
    failures = 0
    while run.next < BATCHES:
        try:
            run.batch(run.next)
        except RuntimeError:
            failures += 1
    assert failures == 5
    assert len(list((run.checkpoint / "moves").iterdir())) > 3
    assert difference(reported(run.out), story.notifications) == ""


@pytest.mark.parametrize("format_", ["jsonl", "parquet"])
def test_a_kind_of_a_plug_in_survives_a_crash_at_each_step(
    format_: str, tmp_path: Path, memory: Path, faults: Path
) -> None:
    """Its subscriptions move with their results after every other batch."""
    kinds = kinds_of(["tests.kinds.count"])
    settings = Settings(
        space=Space.PLANAR,
        shards=3,
        strategies={"count": "random"},
        plugins=("tests.kinds.count",),
        format=format_,
        arena=str(memory),
    )
    events = busy_log(7, Space.PLANAR, 150, late=0.0, kinds=kinds)
    run = Miniature(settings, tmp_path)
    batches = run.feed(events, 5)
    assert batches >= len(points.POINTS)
    script(faults, [(point, n, "raise") for n, point in enumerate(points.POINTS)])
    failures = 0
    while run.next < batches:
        try:
            run.batch(run.next)
        except RuntimeError as error:
            assert "scripted failure" in str(error)
            failures += 1
            if failures % 2:
                shutil.rmtree(run.arenas, ignore_errors=True)
    assert failures > len(points.POINTS) // 2
    assert difference(reported(run.out), expected(events, "planar", kinds=kinds)) == ""


def test_every_batch_twice_and_every_arena_lost(tmp_path: Path, memory: Path, story: Story) -> None:
    run = start(tmp_path, MOVING, memory)
    run.plan(story.log, BATCH_EVENTS)
    for n in range(BATCHES):
        run.batch(n)
        shutil.rmtree(run.arenas)
        run.batch(n)
    assert difference(reported(run.out), story.notifications) == ""


def test_an_ended_subscription_does_not_come_back(tmp_path: Path, memory: Path) -> None:
    """Seen before: the end of a replaced one moved behind its successor, and ended that."""
    query = {"kind": "range", "region": {"bbox": [0, 0, 1, 1]}}
    events = []
    for n in range(120):
        if n < 40:
            name, kind = f"s{n % 10}", "subscribe"
            events.append({"op": kind, "id": name, "time": n, "query": query})
        events.append({"op": "publish", "id": f"o{n}", "time": n, "at": [0.5, 0.5]})
    run = start(tmp_path, MOVING, memory)
    run.plan(write_log(tmp_path / "log.jsonl", events), 5)
    run.finish()
    assert difference(reported(run.out), expected(events, "geographic")) == ""
    # Ended ones are not copied along with each move, or state would grow by a third each time.
    assert sum(len(m.files) > 0 for m in run.states[run.next]) == 3
    copies = sum(p.stat().st_size for p in (run.checkpoint / "moves").iterdir())
    assert copies < 100_000


def test_a_shard_without_subscriptions_for_a_while(tmp_path: Path, memory: Path) -> None:
    events = [{"op": "publish", "id": f"o{n}", "time": n, "at": [0, 0]} for n in range(30)]
    run = start(tmp_path, STILL, memory)
    run.plan(write_log(tmp_path / "log.jsonl", events), 5)
    run.finish()
    assert reported(run.out).total() == 0


@pytest.mark.parametrize("what", ["out", "checkpoint/state", "checkpoint/moves", "arena"])
def test_a_full_disk(what: str, tmp_path: Path, disk: Disk, story: Story) -> None:
    """One clear line; with room on the disk the same batch goes through, and all is there."""
    run = start(tmp_path, MOVING, tmp_path / "arena")
    run.plan(story.log, BATCH_EVENTS)
    (tmp_path / what).parent.mkdir(exist_ok=True)
    (tmp_path / what).symlink_to(disk.folder)
    kind = NearcastError if disk.mounted else (NearcastError, OSError)
    with pytest.raises(kind) as raised:
        run.finish()
    assert not disk.mounted or "o space left" in str(raised.value)
    assert "\n" not in str(raised.value)
    disk.make_room()
    run.finish()
    assert difference(reported(run.out), story.notifications) == ""
