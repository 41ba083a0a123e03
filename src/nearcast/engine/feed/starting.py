"""What a replay learns from its logs before it begins: kinds in use, and options without effect."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from nearcast.engine.options.run_options import DEFAULTS, no_effect
from nearcast.engine.options.settings import FRAME, Settings
from nearcast.kinds import Kind
from nearcast.wire.logs import Log
from nearcast.wire.named_kinds import named_in_log

__all__ = ["begins_with", "refuse_unread"]


def begins_with(logs: Sequence[Log], settings: Settings, threads: int = 1) -> set[str]:
    """Those that the run names, and those that need all objects (`Kind.from_start`) and that a
    subscribe of any of the logs may have."""
    found = set(settings.begins_with)
    wanted = set(settings.from_start) - found
    if wanted and logs:
        with ThreadPoolExecutor(threads) as pool:
            found |= set().union(*pool.map(partial(named_in_log, names=wanted), logs))
    return found


def refuse_unread(logs: Sequence[Log], settings: Settings, threads: int = 1) -> None:
    """Refuse options for kinds that no subscription and no ask of the logs may have."""
    readers = {
        name: {kind.name for kind in settings.kinds.values() if _reads(kind, name)}
        for name in (*FRAME, "changes")
        if getattr(settings, name) != DEFAULTS[name]
    }
    wanted = set().union(*readers.values())
    if not wanted or not logs:
        return
    with ThreadPoolExecutor(threads) as pool:
        found = set().union(*pool.map(partial(named_in_log, names=wanted, asks=True), logs))
    for name, kinds in readers.items():
        if not kinds & found:
            raise no_effect(
                name,
                f"these logs have no query of a kind that reads it ({', '.join(sorted(kinds))}); "
                "leave it out",
            )


def _reads(kind: Kind, name: str) -> bool:
    """Whether an option changes what the results of a kind are, or what is reported of them."""
    if name == "changes":  # the difference of a batch is less only where something leaves
        return any(event.sign for event in kind.events)
    return name in kind.frame_options
