"""The past survives what can happen to it: crashes while slices are sealed, files cut, parts lost.

A run with asks, `last`, moments and an archive, whose slices are sealed all the time and whose
subscriptions move, crashes at each point. A crash also takes what was written for nothing: parts
of answers go, files of the archive that are not committed end in the middle.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.engine.contract import Miniature, difference, expected, reported, write_log
from tests.engine.test_asks import busy
from tests.recovery.disk import Disk
from tests.recovery.story import script

from nearcast.engine.faults import OF_ARCHIVES, POINTS
from nearcast.engine.moves.control import Controls
from nearcast.engine.options.settings import Settings
from nearcast.engine.shard import objects
from nearcast.model.errors import NearcastError
from nearcast.model.space import Space
from nearcast.objects.archive import file_paths
from nearcast.objects.base import Slicing

Json = dict[str, Any]
MOVING = {"range": "random", "knn": "random", "terms": "random"}
PLANNED = {"range": "sstd", "knn": "random", "terms": "random"}
BATCH_EVENTS = 25
RETAIN = 40  # what reaches further is read from the archive


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "SLICING", Slicing(delta_ms=7, least=1))


def started(folder: Path, memory: Path, strategies: dict[str, str]) -> tuple[Miniature, list[Json]]:
    """A planned run, with an archive, and its log."""
    events = busy(21, Space.PLANAR, 200)
    for n, event in enumerate(events):
        if event["op"] == "subscribe" and event["query"]["kind"] in MOVING and n % 2:
            event["last"] = (3, 30, 10**9)[n % 3]
    settings = Settings(
        space=Space.PLANAR,
        shards=3,
        strategies=strategies,
        retain_ms=RETAIN,
        lateness_ms=0,
        warmup=30,
        archive=str(folder / "archive"),
        arena=str(memory),
    )
    run = Miniature(settings, folder)
    folder.mkdir(exist_ok=True)
    run.plan(write_log(folder / "log.jsonl", events), BATCH_EVENTS)
    return run, events


def check(run: Miniature, events: list[Json]) -> None:
    """Nothing lost, nothing twice; the archive has every object once."""
    right = expected(events, "planar", kinds=run.settings.kinds)
    assert difference(reported(run.out), right) == ""
    files = file_paths(Path(run.settings.archive))
    found = Counter(i for path in files for i in pq.read_table(path)["id"].to_pylist())
    assert found == Counter(e["id"] for e in events if e["op"] == "publish")


def wreck(run: Miniature, rng: Random) -> None:
    """What a crash may leave of a batch that is not done."""
    for path in Path(run.settings.archive).glob("_tmp/*"):
        os.truncate(path, path.stat().st_size // 2)
    for path in (run.checkpoint / "answers").glob(f"{run.next:012d}-*"):
        if rng.random() < 0.5:
            path.unlink()
    if rng.random() < 0.3:
        shutil.rmtree(run.arenas, ignore_errors=True)


@pytest.mark.parametrize("strategies", [MOVING, PLANNED], ids=["moving", "planned"])
def test_a_crash_at_each_point(
    strategies: dict[str, str], tmp_path: Path, memory: Path, faults: Path
) -> None:
    run, events = started(tmp_path / "run", memory, strategies)
    rng = Random(3)
    points = [*POINTS, *OF_ARCHIVES]
    crashes: Counter[str] = Counter()
    while run.more(run.next):
        for point in rng.sample(points, 5):
            script(faults, [(point, run.next, "raise")])
            before = run.next
            try:
                run.batch(run.next)
            except RuntimeError as error:
                assert point in str(error)
                crashes[point] += 1
                wreck(run, rng)
            run.next = before
        run.batch(run.next)
    assert set(points) - set(crashes) <= {"shard-looked-back"}  # not every batch looks back
    sealed = [manifest.objects.slices for manifest in run.states[run.next]]
    assert all(sealed)
    assert Controls(run.checkpoint, run.settings).routers(run.next)["range"].table
    check(run, events)


def test_a_full_disk_for_the_archive(tmp_path: Path, memory: Path, disk: Disk) -> None:
    """One clear line; with room the same batch goes through, and the archive is whole."""
    run, events = started(tmp_path / "run", memory, MOVING)
    (tmp_path / "run" / "archive").symlink_to(disk.folder)
    with pytest.raises(NearcastError) as raised:
        run.finish()
    assert "\n" not in str(raised.value)
    assert not disk.mounted or "make room and run the same command" in str(raised.value)
    stopped = run.next
    with pytest.raises(NearcastError):  # and again, as long as there is none
        run.finish()
    assert run.next == stopped
    disk.make_room()
    run.finish()
    check(run, events)
