"""The Spark query: route step, shard step, state, moves, sinks. The only home of pyspark.

It promises that the notification log is a function of the event log alone: not of shards,
strategies, batch sizes, crashes, restarts or moves (`ARCHITECTURE.md` follows one event through).
"""

from __future__ import annotations

from nearcast.engine.engine import Engine, Run

__all__ = ["Engine", "Run"]
