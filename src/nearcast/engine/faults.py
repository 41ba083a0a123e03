"""Scripted crashes: named points that tests make fail, once, in a real run.

`NEARCAST_FAULTS` holds a folder; a file `POINT@BATCH` in it makes that point fail the first time it
is reached (the file is removed first). It says how: `kill` ends this process, `kill-executor` the
JVM above it, and `raise` raises. Unset: no cost but a look at the environment.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

POINTS = (
    "route-read",
    "shard-begin",
    "shard-taken-in",
    "shard-begun",
    "shard-looked-back",
    "shard-matched",
    "shard-gathered",
    "shard-state-written",
    "shard-arena-committed",
    "shard-exported",
    "sink-begin",
    "sink-renamed",
    "sink-visible",
    "sink-decided",
    "sink-controlled",
)
"""Those that each batch reaches."""

OF_SINKS = ("sink-delivered", "kafka-begun", "kafka-sent", "kafka-committed")
"""Those that each batch of a run with more sinks than one reaches besides; some only with Kafka."""

OF_ARCHIVES = ("shard-archived", "sink-archived")
"""Those that each batch of a run with an archive reaches besides."""

OF_UPKEEP = (
    "upkeep-begin",
    "upkeep-folded",
    "upkeep-forgotten",
    "upkeep-rolling",
    "upkeep-rolled",
    "upkeep-done",
)
"""Those that a batch with upkeep reaches (`engine.upkeep`); the middle ones where it is due."""

_ALL = {*POINTS, *OF_SINKS, *OF_ARCHIVES, *OF_UPKEEP}


def reach(point: str, batch: int) -> None:
    """Fail here if a test says so."""
    folder = os.environ.get("NEARCAST_FAULTS")
    if not folder:
        return
    assert point in _ALL, point
    script = Path(folder, f"{point}@{batch}")
    try:
        action = script.read_text().strip()
        script.unlink()
    except OSError:
        return
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if action == "kill-executor":  # its Python daemon forked this process
        os.kill(_parent(os.getppid()), signal.SIGKILL)
    raise RuntimeError(f"scripted failure at {point} of batch {batch}")


def _parent(process: int) -> int:
    """The process that started `process`."""
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()[1])
