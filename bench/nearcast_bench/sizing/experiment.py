"""`nearcast bench sizing`: what there is to know before a machine is chosen.

For each kind so many subscriptions are registered on one shard, and then objects that are retained,
in the engine's own steps without Spark (`testing.live_run`). Arena bytes are memory, state bytes
files of the checkpoint. Then the arenas are lost: the next batch builds them anew from the files,
which is what a new machine or a reboot costs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from nearcast.engine.options.settings import Settings
from nearcast.engine.output.reports import Reports
from nearcast.engine.shard.report import Report
from nearcast.kinds import KINDS
from nearcast.model.standing import FOREVER
from nearcast.testing.live_run import LiveRun
from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.common.in_memory import folder_in_memory
from nearcast_bench.live.events import post, subscriptions

NUMBER = 100_000
_TIME = 1_700_000_000_000


def run_sizing(number: int, seed: int, say: Say) -> Iterator[Figure]:
    """A line per kind, and one for objects."""
    for kind in KINDS:
        say(f"{number:,} subscriptions of {kind} …")
        with folder_in_memory() as folder:
            run = _run(folder, kind, 0)
            run.write(line.rstrip() for line in subscriptions((kind,), number, _TIME, Random(seed)))
            yield {"figure": "sizing", "of": kind, **_measured(run, number)}
    say(f"{number:,} objects …")
    with folder_in_memory() as folder:
        run, rng = _run(folder, next(iter(KINDS)), FOREVER), Random(seed)
        run.write(post(f"o{n}", _TIME + n, rng).rstrip() for n in range(number))
        yield {"figure": "sizing", "of": "objects", **_measured(run, number)}


def _run(folder: Path, kind: str, retain: int) -> LiveRun:
    settings = Settings(
        order="arrival",
        shards=1,
        only=tuple(dict.fromkeys((next(iter(KINDS)), kind))),  # with that of the probe
        manifests="files",
        retain_ms=retain,
        arena=str(folder / "arena"),
    )
    return LiveRun(settings, folder / "run", 1_000_000)


def _measured(run: LiveRun, number: int) -> Figure:
    """What so many of something take, and their rebuild."""
    while run.step():
        pass
    arena = _last(run).arena_bytes
    files = run.files()
    state = sum(files.get(f"checkpoint/{part}", (0, 0))[1] for part in ("state", "objects"))
    seconds = []
    for n in range(4):  # the quickest of the batches without a rebuild shows what that adds
        run.write([post(f"last{n}", _TIME + 10**7 + n, Random(n)).rstrip()])
        if n == 3:
            run.lose_arenas()
        began = time.process_time()
        run.step()
        seconds.append(time.process_time() - began)
    return {
        "number": number,
        "arena_bytes_each": round(arena / number, 1),
        "state_bytes_each": round(state / number, 1),
        "rebuild_us_each": round((seconds[3] - min(seconds[:3])) * 1e6 / number, 2),
    }


def _last(run: LiveRun) -> Report:
    reports = Reports(run.run.checkpoint)
    return reports.read(reports.count() - 1).reports[0]
