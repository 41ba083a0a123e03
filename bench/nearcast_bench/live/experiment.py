"""`nearcast bench live`: from a publish to its visible notification.

A `nearcast run` in a process of its own follows a folder. This process registers subscriptions,
then appends posts to a file at a steady rate and reads the notifications as any reader does
(`wire.told`). What counts for a post is from just before its write to when the batch with its
notification is seen to be visible; the subscription that is looked at matches every post. The
first seconds of a rate do not count.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np

from nearcast.kinds import KINDS
from nearcast.model.errors import NearcastError
from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.live.events import post, subscriptions
from nearcast_bench.live.watcher import Watcher

_TICK = 0.01  # seconds between two writes
_UNCOUNTED = 2.0  # seconds of each rate
_PATIENCE = 3600.0  # seconds until all subscriptions are there
_LEFT = 60.0  # seconds for the last post of a rate
_FILE = 100_000  # lines of a file of posts
_GOALS = {100: (120, 400), 20_000: (500, 1500)}  # rate: ms, of the middle and of 99 in 100
_GOALS_AT = 1_000_000  # subscriptions of each kind


@dataclass(frozen=True, slots=True)
class Setting:
    """One run."""

    subscriptions: int = 10_000
    rates: tuple[int, ...] = (100, 20_000)
    seconds: int = 20
    kinds: tuple[str, ...] = tuple(KINDS)
    shards: int = 2
    seed: int = 7


def run_live(setting: Setting, say: Say) -> Iterator[Figure]:
    """A line per rate."""
    with tempfile.TemporaryDirectory(prefix="nearcast-bench-") as folder:
        yield from _in(setting, Path(folder), say)


def _in(setting: Setting, folder: Path, say: Say) -> Iterator[Figure]:
    (folder / "in").mkdir()
    (folder / "run.toml").write_text(_config(setting))
    (folder / "out").mkdir()
    with (folder / "log").open("wb") as log:
        run = subprocess.Popen(
            [sys.executable, "-m", "nearcast", "run", str(folder / "run.toml")],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    watcher = Watcher(folder / "out")
    try:
        yield from _measure(setting, folder, watcher, run, say)
        run.send_signal(signal.SIGTERM)
        if run.wait(_LEFT):
            raise _failed(folder)
    finally:
        watcher.close()
        if run.poll() is None:
            run.kill()
            run.wait()


def _measure(
    setting: Setting, folder: Path, watcher: Watcher, run: subprocess.Popen[bytes], say: Say
) -> Iterator[Figure]:
    rng = Random(setting.seed)
    say(f"registering {setting.subscriptions:,} subscriptions of {', '.join(setting.kinds)} …")
    started = time.monotonic()
    now = time.time_ns() // 1_000_000
    with (folder / "in" / "0.jsonl").open("w") as file:
        file.writelines(subscriptions(setting.kinds, setting.subscriptions, now, rng))
        file.write(post("ready", now + 1, rng))
    while not watcher.wait_for("ready", 1.0):
        if run.poll() is not None or time.monotonic() - started > _PATIENCE:
            raise _failed(folder)
    registered = time.monotonic() - started
    for n, rate in enumerate(setting.rates, 1):
        say(f"{rate:,} posts a second …")
        batches, notified = watcher.batches, watcher.notifications
        sent = _publish(folder / "in", n, rate, setting.seconds, rng)
        if not watcher.wait_for(next(reversed(sent)), _LEFT):
            raise NearcastError(
                f"bench: the last of {len(sent):,} posts has no notification after {_LEFT:.0f} s: "
                f"{rate:,} posts a second are too many here"
            )
        waited = np.array(
            [watcher.seen[name] - at for name, (at, counts) in sent.items() if counts]
        )
        p50, p90, p99 = (float(v) * 1e3 for v in np.percentile(waited, (50, 90, 99)))
        yield {
            "figure": "live",
            "subscriptions": setting.subscriptions,
            "kinds": list(setting.kinds),
            "shards": setting.shards,
            "rate": rate,
            "posts": len(waited),
            "p50_ms": round(p50, 1),
            "p90_ms": round(p90, 1),
            "p99_ms": round(p99, 1),
            "max_ms": round(float(waited.max()) * 1e3, 1),
            "batches": watcher.batches - batches,
            "notifications": watcher.notifications - notified,
            "registering_seconds": round(registered, 1),
        }
        if setting.subscriptions == _GOALS_AT and rate in _GOALS:
            for name, value, goal in zip(("p50", "p99"), (p50, p99), _GOALS[rate], strict=True):
                yield {
                    "claim": f"{name} at {rate:,} posts a second, ms",
                    "value": round(value, 1),
                    "target": goal,
                    "held": value <= goal,
                }


def _publish(
    inbox: Path, number: int, rate: int, seconds: int, rng: Random
) -> dict[str, tuple[float, bool]]:
    """Append posts for so many seconds; when each was written, and whether it counts."""
    sent: dict[str, tuple[float, bool]] = {}
    began = time.monotonic()
    file = None
    try:
        while (elapsed := time.monotonic() - began) < _UNCOUNTED + seconds:
            due = int(elapsed * rate) + 1 - len(sent)
            if due > 0:
                if file is None or len(sent) // _FILE != (len(sent) + due) // _FILE:
                    if file is not None:
                        file.close()
                    file = (inbox / f"{number}-{len(sent):09d}.jsonl").open("a")
                now = time.time_ns() // 1_000_000
                names = [f"p{number}-{len(sent) + n}" for n in range(due)]
                lines = "".join(post(name, now, rng) for name in names)
                at = time.monotonic()
                file.write(lines)
                file.flush()
                for name in names:
                    sent[name] = at, elapsed >= _UNCOUNTED
            time.sleep(max(_TICK - (time.monotonic() - began - elapsed), 0))
    finally:
        if file is not None:
            file.close()
    return sent


def _config(setting: Setting) -> str:
    kinds = dict.fromkeys(("range", *setting.kinds))  # the probe is one of them
    return f"""
[run]
shards = {setting.shards}
kinds = {json.dumps(list(kinds))}
master = "local[2]"
[state]
checkpoint = "checkpoint"
[[source]]
type = "folder"
path = "in"
[[sink]]
type = "files"
path = "out"
"""


def _failed(folder: Path) -> NearcastError:
    said = (folder / "log").read_text(errors="replace").strip().splitlines()
    return NearcastError(f"bench: the run ended: {said[-1] if said else 'it said nothing'}")
