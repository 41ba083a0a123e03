"""What a new tree or mapping table makes a shard send and drop: continuous queries only (5.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nearcast.index import LocalIndex
from nearcast.routing.grid.survey import survey_at
from nearcast.routing.orders import Leaving, Slots
from nearcast.routing.sstd.qt_tree import QtTree, leaves_of
from nearcast.routing.sstd.query_routing import Mask, queries_at

if TYPE_CHECKING:
    from nearcast.routing.sstd.qt_router import QtRouter


def leaving_by_tree(
    router: QtRouter, following: QtRouter, shard: int, index: LocalIndex, slots: Slots
) -> Leaving:
    """Which copies here the next tree moves; the shard of a subscription's first copy sends it.

    Only subscriptions that overlap a leaf which is gone, or has another worker, are dealt anew.
    """
    n = router.shards
    if router.tree is not None and following.tree is not None:
        gone = changed_leaves(router.tree, following.tree)
        slots = slots[queries_at(router.tree, gone, *index.boxes(slots))]
    survey = survey_at(index, slots)
    if router.tree is None:  # it was placed by its id
        survey = survey._replace(id_hash=index.id_hashes(slots))
    before, after = router.copies(survey), following.copies(survey)
    first = np.full(len(slots), n)
    np.minimum.at(first, *before)
    comes, stays = np.zeros((2, len(slots) * n), bool)  # by slot and shard
    comes[after[0] * n + after[1]] = True
    stays[before[0] * n + before[1]] = True
    sent = np.flatnonzero(comes & ~stays)
    sent = sent[first[sent // n] == shard]
    return Leaving(slots[~comes[shard::n]], slots[sent // n], sent % n)


def changed_leaves(old: QtTree, new: QtTree) -> Mask:
    """By node of `old`: leaves that are none in `new`, or have another worker there.

    Wherever `new` has other leaves, `old` has such ones: both trees tile the same space.
    """
    of_old, of_new = leaves_of(old), leaves_of(new)
    worker = dict(zip(new.key[of_new].tolist(), new.shard[of_new].tolist(), strict=True))
    out = np.zeros(len(old.kind), bool)
    for leaf in of_old.tolist():
        out[leaf] = worker.get(int(old.key[leaf])) != old.shard[leaf]
    return out
