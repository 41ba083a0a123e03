"""Nothing grows without end, and nothing is lost by what is done for it; without a JVM."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.engine.contract import as_text, difference, expected
from tests.recovery.story import script

from nearcast.engine import faults as points
from nearcast.engine import upkeep
from nearcast.engine.feed.source import Feed
from nearcast.engine.options.settings import Settings
from nearcast.engine.output import rolling
from nearcast.engine.output.reports import Reports, summarise
from nearcast.engine.shard import merging
from nearcast.model.errors import NearcastError
from nearcast.model.space import Space
from nearcast.model.standing import FOREVER
from nearcast.testing.live_run import LiveRun
from nearcast.testing.logs import random_log
from nearcast.wire.segments import segments
from nearcast.wire.told import Cursor, Told

EVERY, KEPT = 4, 12
STRATEGIES = {"range": "random", "knn": "hash"}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Upkeep after every fourth batch, so that a short run has much of it."""
    monkeypatch.setattr(upkeep, "EVERY", EVERY)
    monkeypatch.setattr(upkeep, "KEPT", KEPT)
    monkeypatch.setattr(rolling, "LARGE", 4)
    monkeypatch.setattr(merging, "MANY", 4)


def start(folder: Path, memory: Path, **more: Any) -> LiveRun:
    given: dict[str, Any] = {"keep": "all", "manifests": "files", "only": tuple(STRATEGIES)}
    del folder  # in memory, where nothing waits for a disk
    settings = Settings(
        order="arrival", arena=str(memory / "arena"), strategies=STRATEGIES, **(given | more)
    )
    return LiveRun(settings, memory / "run", 10)


def told(run: LiveRun) -> Counter[str]:
    """All notifications, as a reader gets them."""
    found = list(Told(run.run.out).read())
    cursors = [cursor for cursor, _ in found]
    assert cursors == sorted(set(cursors))
    return Counter(as_text(json.loads(line)) for _, line in found)


def right(run: LiveRun, events: list[dict[str, Any]]) -> Counter[str]:
    """What the oracle reports."""
    retain = run.settings.retain_ms or FOREVER
    return expected(events, "geographic", "arrival", run.settings.kinds, retain)


def live(run: LiveRun, events: list[dict[str, Any]], each: int) -> list[dict[str, int]]:
    """Run through `events`, so many a batch; how many files there were, part by part."""
    counts = []
    for n, at in enumerate(range(0, len(events), each)):
        run.write(events[at : at + each])
        assert run.step()
        if n % 30 == 29:
            run.turn(keep=2)
        counts.append({part: files for part, (files, _) in run.files().items()})
    while run.step():  # first results that wait
        pass
    return counts


@pytest.mark.slow
@pytest.mark.parametrize("manifests", ["files", "spark"])
def test_the_number_of_files_is_flat(manifests: str, tmp_path: Path, memory: Path) -> None:
    """Of every part; and a reader gets all there is, through small and large segments."""
    events = random_log(3, Space.GEOGRAPHIC, 720)
    run = start(tmp_path, memory, manifests=manifests, retain_ms=50)
    counts = live(run, events, 4)
    wanted = right(run, events)
    assert difference(told(run), wanted) == ""
    parts = {part for count in counts for part in count}
    assert {"checkpoint/feed", "checkpoint/reports", "out/notifications"} <= parts
    half = len(counts) // 2
    for part in sorted(parts - {"out/notifications", "out/rejected"}):
        early, late = (
            max(count.get(part, 0) for count in some) for some in (counts[:half], counts[half:])
        )
        assert late <= 1.2 * early + 4, part
    # Large segments stay, all else is bounded.
    loose = [p for p in (run.run.out / "notifications").iterdir() if p.name.startswith("b")]
    assert len(loose) <= (10 + EVERY) * 2
    assert len(segments(run.run.out / "notifications")) <= len(counts) // 16 + 5
    assert Feed(run.run.checkpoint).first >= len(counts) - KEPT - EVERY - 1
    assert len(Feed(run.run.checkpoint)) == run.next


def test_a_restart_reads_what_is_alive(
    tmp_path: Path, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many plans and records after 75 batches as after 25; and files go on where they were."""
    run = start(tmp_path, memory)
    events = random_log(5, Space.GEOGRAPHIC, 225)
    read: list[Path] = []
    decode = Path.read_bytes

    def counting(path: Path) -> bytes:
        read.append(path)
        return decode(path)

    costs = []
    for at in (0, 75, 150):
        live(run, events[at : at + 75], 3)
        with monkeypatch.context() as patch:
            patch.setattr(Path, "read_bytes", counting)
            run.restart()
            Reports(run.run.checkpoint).totals()
        costs.append(len(read))
        read.clear()
    assert max(costs) <= costs[0] + EVERY * 3
    run.write(["no event"])
    assert run.step()
    rejected = next((run.run.out / "rejected").glob("b*.jsonl"))
    reject = json.loads(rejected.read_text().splitlines()[-1])
    lines = (run.inbox / Path(reject["file"]).name).read_text().splitlines()
    assert lines[reject["line"] - 1] == "no event"
    assert difference(told(run), right(run, events)) == ""


def test_the_summary_is_over_all_batches(tmp_path: Path, memory: Path) -> None:
    events = random_log(6, Space.GEOGRAPHIC, 240)
    run = start(tmp_path, memory)
    live(run, events, 3)
    reports = Reports(run.run.checkpoint)
    assert len(reports.kept()) <= KEPT + 2 * EVERY
    settings = run.settings
    summary = summarise(reports.all(), 1.0, settings, folded=reports.folded(), read_before=0)
    assert summary["events"]["total"] == len(events)
    assert summary["notifications"]["total"] == told(run).total()
    assert summary["batches"] == reports.count() == run.next
    assert sum(s["controls"] for s in summary["shards"]) > 0
    before = reports.totals()
    reports.fold(10**9)
    reports.fold(10**9)
    assert reports.totals() == before


@pytest.mark.slow
@pytest.mark.parametrize("manifests", ["files", "spark"])
@pytest.mark.parametrize("seed", range(2))
def test_crashes_around_all_of_it(
    seed: int, manifests: str, tmp_path: Path, memory: Path, faults: Path
) -> None:
    """Every point of the upkeep, each several times, with restarts; nothing lost, nothing twice."""
    rng = Random(seed)
    events = random_log(seed, Space.GEOGRAPHIC, 400)
    run = start(tmp_path, memory, manifests=manifests, retain_ms=50)
    crashed: Counter[str] = Counter()
    for at in range(0, len(events), 4):
        run.write(events[at : at + 4])
        if (run.next + 1) % EVERY == 0:
            point = points.OF_UPKEEP[(at // 16) % len(points.OF_UPKEEP)]
            number = run.next
            if point in ("upkeep-rolling", "upkeep-rolled"):
                number -= 10  # they say the last batch of the segment
            script(faults, [(point, number, "raise")])
        while True:
            try:
                if run.step() is None:
                    break
            except RuntimeError as error:
                crashed[str(error).split()[3]] += 1
                if rng.random() < 0.3:
                    run.lose_arenas()
                run.restart()
        if rng.random() < 0.1:
            run.restart()
        if at % 120 == 116:
            run.turn(keep=2)
    assert set(crashed) == set(points.OF_UPKEEP)
    assert difference(told(run), right(run, events)) == ""
    names = [p.name for p in (run.run.out / "notifications").iterdir()]
    assert not [name for name in names if name.startswith(".")]


def test_what_is_spooled_goes_with_the_batches_that_read_it(tmp_path: Path, memory: Path) -> None:
    run = start(tmp_path, memory)
    events = random_log(7, Space.GEOGRAPHIC, 30)
    with gzip.open(run.inbox / "a.jsonl.gz", "wt") as file:
        file.writelines(f"{json.dumps(e)}\n" for e in events)
    run.tailer.poll()
    while run.step():
        pass
    spool = run.run.checkpoint / "spool"
    assert len(list(spool.iterdir())) == 1
    more = random_log(8, Space.GEOGRAPHIC, 80)
    live(run, more, 3)
    assert list(spool.iterdir()) == []
    run.restart()
    run.tailer.poll()
    run.tailer.poll()
    assert run.step() is None  # it is not read again


@pytest.mark.parametrize("format_", ["jsonl", "parquet"])
def test_what_is_older_than_is_kept_is_cut_unless_a_reader_needs_it(
    format_: str, tmp_path: Path, memory: Path
) -> None:
    run = start(tmp_path, memory, format=format_, retain_ms=10**6)
    live(run, random_log(9, Space.GEOGRAPHIC, 240), 3)
    out = run.run.out
    folder = out / "notifications"

    def first() -> int:
        return segments(folder, format_)[0].first

    clock = rolling._now_ms()
    late = rolling.Roller(out, format_, 1000, "run", lambda: clock + 10**7)
    soon = rolling.Roller(out, format_, 10**8, "run", lambda: clock)
    soon.roll(run.next)
    assert first() == 0
    told_ = Told(out)
    told_.state("slow", Cursor(40, 0, 1))
    told_.state("fast", Cursor(70, 0, 1))
    late.roll(run.next)
    assert 0 < first() <= 40
    assert any(s.first <= 40 <= s.last for s in segments(folder, format_))
    told_.leave("slow")
    late.roll(run.next)
    assert 40 < first() <= 70
    told_.leave("fast")
    late.roll(run.next)
    assert segments(folder, format_) == []
    assert list(folder.iterdir())  # what is not rolled yet


def test_a_folder_with_segments_of_another_run(tmp_path: Path, memory: Path) -> None:
    run = start(tmp_path, memory)
    live(run, random_log(10, Space.GEOGRAPHIC, 100), 3)
    own = (run.run.checkpoint / "run").read_text()
    rolling.check_run(run.run.out, own)
    with pytest.raises(NearcastError, match="of another checkpoint; use another folder"):
        rolling.check_run(run.run.out, "other")
