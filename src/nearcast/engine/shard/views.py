"""What concerns one shard of a batch: its objects, what it reports, and in which order."""

from __future__ import annotations

import numpy as np

from nearcast.engine.shard.events import Ordered, only
from nearcast.index import LocalIndex
from nearcast.routing import Router
from nearcast.wire.changes import Changes
from nearcast.wire.tables import ObjectColumns


def change_kinds(indexes: dict[str, LocalIndex], held: dict[str, int]) -> bool:
    """Whether an id ended as one kind in this batch and began as another; `held`: slots before."""
    some = {k: index for k, index in indexes.items() if len(index)}
    if len(some) < 2:
        return False
    began = {k: index.id_hashes(np.arange(held[k], len(index))) for k, index in some.items()}
    ended = {k: index.id_hashes(index.ended()) for k, index in some.items()}
    return any(np.isin(began[a], ended[b]).any() for a in some for b in some if a != b)


def view_of(ordered: Ordered, router: Router, shard: int) -> Ordered:
    """The events of one kind: objects may have come for the sake of another."""
    mine = router.sees(shard, ordered.objects)
    return ordered if mine is None else only(ordered, mine)


def reported_by(
    index: LocalIndex, router: Router, shard: int, changes: Changes, objects: ObjectColumns
) -> Changes:
    """The changes that this shard reports: other copies may have seen them too."""
    reported = router.reports(shard, index, objects, changes)
    if reported is None or reported.all():
        return changes
    return changes.take(np.flatnonzero(reported))
