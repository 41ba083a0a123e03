"""The Spark query: route step, shard step, state, moves, sinks. The only home of pyspark.

It promises that the notification log is a function of the event log alone: not of shards,
strategies, batch sizes, crashes, restarts or moves (`ARCHITECTURE.md` follows one event through).

Names are loaded when they are first used: Spark starts several small Python processes of its own
that import one module of this package, and need not wait for all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nearcast.engine.engine import Engine
    from nearcast.engine.run import Run

__all__ = ["Engine", "Run"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from nearcast.engine import engine

        return getattr(engine, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
