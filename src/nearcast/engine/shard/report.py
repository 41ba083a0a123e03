"""What a shard reports to the driver about a batch."""

from __future__ import annotations

import msgspec

from nearcast.engine.moves.control import Export
from nearcast.engine.moves.planning import Surveyed
from nearcast.engine.shard.costs import add_costs
from nearcast.objects.archive import Part as ArchivePart
from nearcast.routing.balance import Counts
from nearcast.wire.changes import Changes
from nearcast.wire.kind import WireKind


class Report(msgspec.Struct):
    """What a shard reports to the driver about a batch: figures and names of files, no rows."""

    shard: int
    batch: int
    subscriptions: int = 0
    objects: int = 0
    controls: int = 0
    events: dict[str, int] = {}
    notifications: dict[str, int] = {}  # "range.match": n
    rejects: int = 0
    reject_kinds: dict[str, int] = {}  # by what was wrong
    examined: int = 0
    lookups: int = 0
    scanned: int = 0
    seconds: float = 0.0
    route_seconds: float = 0.0  # of all splits (reported by shard 0)
    attach_seconds: float = 0.0
    match_seconds: float = 0.0
    rebuilt: bool = False
    arena_bytes: int = 0
    state_bytes: int = 0
    files: dict[str, str] = {}  # final name: temporary path
    exports: list[Export] = []
    surveys: list[Surveyed] = []
    counts: dict[str, Counts] = {}  # by kind
    moved: int = 0  # copies that went elsewhere, and bytes of their files
    moved_bytes: int = 0
    archived: list[ArchivePart] = []  # files for the archive
    answers: str = ""  # the file with its parts of answers, relative to the checkpoint
    firsts: str = ""  # and that with its parts of first results
    manifest: bytes = b""  # the shard's from now on, where files remember it
    costs: dict[str, list[float]] = {}  # by kind: added to C(w) of each shard, less taken away
    reach: dict[str, int] = {}  # by kind that keeps objects: how far back its subscriptions look
    parts: dict[str, list[str]] = {}  # by kind not in use yet: the files of its part of the window

    def tally(self, kind: WireKind, changes: Changes) -> None:
        """Count notifications."""
        for event, n in changes.events().items():
            name = f"{kind.name}.{kind.events[event].name}"
            self.notifications[name] = self.notifications.get(name, 0) + n


def costs_of(reports: list[Report]) -> dict[str, list[float]]:
    """By kind: what a batch added to the cost of each shard, less what it took away."""
    costs: dict[str, list[float]] = {}
    for report in reports:
        add_costs(costs, report.costs)
    return costs


def parts_of(reports: list[Report]) -> dict[str, list[str]]:
    """By kind: the files of its window, which all shards hold in parts."""
    parts: dict[str, list[str]] = {}
    for report in reports:
        for kind, names in report.parts.items():
            parts.setdefault(kind, []).extend(names)
    return parts
