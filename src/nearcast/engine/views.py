"""What concerns one shard of a batch: its objects, what it tells, and in which order."""

from __future__ import annotations

import numpy as np

from nearcast.engine.batch import Ordered, only
from nearcast.index import LocalIndex
from nearcast.index.base import Changes
from nearcast.kernels.ragged import gather
from nearcast.routing import GridRouter, Router, Sample
from nearcast.routing.grid.cells import comes_to
from nearcast.routing.grid.reporting import tells
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
    if not isinstance(router, GridRouter) or router.grid is None:
        return ordered
    o = ordered.objects
    mine = comes_to(router.grid, shard, o.x, o.y, o.word_offsets, o.words)
    if router.old is not None:
        mine |= comes_to(router.old, shard, o.x, o.y, o.word_offsets, o.words)
    return only(ordered, mine)


def sample_of(objects: ObjectColumns) -> Sample:
    """Objects, in the order of the log, as decisions see them."""
    o, rows = objects, objects.order
    lengths = np.diff(o.word_offsets)[rows]
    return Sample(o.x[rows], o.y[rows], *gather(o.words, o.word_offsets[rows], lengths))


def told_by(
    index: LocalIndex, router: Router, shard: int, changes: Changes, objects: ObjectColumns
) -> Changes:
    """The changes that this shard tells: other copies may have seen them too."""
    if isinstance(router, GridRouter) and router.grid is not None:
        rows = objects.order[changes.order]
        told = tells(router.grid, shard, objects, rows, changes.slot, index.asked)
        if router.old is not None:
            by_old = index.parity(changes.slot) != router.both.parity
            also = tells(router.old, shard, objects, rows, changes.slot, index.asked)
            told = np.where(by_old, also, told)
    elif index.all_report:
        return changes
    else:
        told = index.reports(changes.slot)
    return changes if told.all() else changes.take(np.flatnonzero(told))
