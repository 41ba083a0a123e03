"""Which kinds a replay has in use from its first object on."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from nearcast.engine.options.settings import Settings
from nearcast.wire.logs import Log
from nearcast.wire.named_kinds import named_in_log

__all__ = ["begins_with"]


def begins_with(logs: Sequence[Log], settings: Settings, threads: int = 1) -> set[str]:
    """Those that the run names, and those that need all objects (`Kind.from_start`) and that a
    subscribe of any of the logs may have."""
    found = set(settings.begins_with)
    wanted = set(settings.from_start) - found
    if wanted and logs:
        with ThreadPoolExecutor(threads) as pool:
            found |= set().union(*pool.map(partial(named_in_log, names=wanted), logs))
    return found
