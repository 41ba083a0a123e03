"""The log that the recovery tests run, and what must come out of it whatever happens."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tests.engine.contract import difference, expected, refused, reported, write_log

from nearcast.model.space import Space
from nearcast.testing.logs import random_log
from nearcast.testing.oracle import replay

EVENTS = 330
BATCH_EVENTS = 30
BATCHES = EVENTS // BATCH_EVENTS
MOVING = {"range": "random", "knn": "random"}
STILL = {"range": "hash+pyramid", "knn": "hash"}
SEED = 5


@dataclass(frozen=True, slots=True)
class Story:
    """A log with what it means."""

    log: Path
    notifications: Counter[str]
    refused_lines: list[int]

    def check(self, out: Path) -> None:
        """Nothing lost, nothing twice, of notifications and of rejects."""
        assert difference(reported(out), self.notifications) == ""
        assert [r["line"] for r in refused(out)] == self.refused_lines
        assert not (out / "_tmp").exists()


def make(folder: Path) -> Story:
    """Edges of all sorts; large polygons, so that state is compacted on the way; broken lines."""
    rng = Random(SEED)
    lines: list[dict[str, Any] | str] = list(random_log(SEED, Space.GEOGRAPHIC, EVENTS))
    for n in range(0, EVENTS, 9):
        time = lines[n]["time"]  # type: ignore[index]
        lines[n] = _heavy(rng, f"h{rng.randrange(9)}", time)
    for n in range(5, EVENTS, 40):
        lines[n] = '{"op":"publish","id":"cut sh'
    assert len(lines) == EVENTS
    outcome = replay(lines, Space.GEOGRAPHIC)
    log = write_log(folder / "story.jsonl", lines)
    wanted = expected(lines, "geographic")
    assert wanted.total() > 300
    assert len(outcome.rejected) > 5
    return Story(log, wanted, [n + 1 for n, _ in outcome.rejected])


def _heavy(rng: Random, name: str, time: object) -> dict[str, Any]:
    x, y, r, n = rng.uniform(-9, 9), rng.uniform(-9, 9), rng.uniform(5, 40), 5000
    angles = (2 * math.pi * i / n for i in range(n))
    ring = [[round(x + r * math.cos(a), 5), round(y + r * math.sin(a), 5)] for a in angles]
    region = {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}
    query = {"kind": "range", "region": region, "where": rng.choice(["", "a", "NOT b"])}
    return {"op": "subscribe", "id": name, "time": time, "query": query}


def script(folder: Path, faults: Iterable[tuple[str, int, str]]) -> None:
    """Write faults (point, batch, kill or raise) where `nearcast.engine.faults` finds them."""
    folder.mkdir(parents=True, exist_ok=True)
    for point, batch, action in faults:
        (folder / f"{point}@{batch}").write_text(action)
