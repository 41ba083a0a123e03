"""What a new table of cells and words makes a shard send and drop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nearcast.index import LocalIndex
from nearcast.routing.grid.cells import changed, touching
from nearcast.routing.grid.survey import survey_at
from nearcast.routing.orders import Leaving, Slots

if TYPE_CHECKING:
    from nearcast.routing.grid.router import GridRouter


def leaving_by_table(
    router: GridRouter, following: GridRouter, shard: int, index: LocalIndex, slots: Slots
) -> Leaving:
    """Which copies here the next table moves; the shard of a subscription's first copy sends it.

    Where only some cells change owners, only subscriptions that touch them are dealt anew. When the
    old strategy ends, its subscriptions get the parity of the new one: each copy is dropped, and
    sent even to the shard that it is on.
    """
    n = router.shards
    slots = _concerned(router, following, index, slots)
    survey, parity = survey_at(index, slots), index.parity(slots)
    if router.grid is None:
        survey = survey._replace(id_hash=index.id_hashes(slots))
    before, after = router.stand(survey, parity), following.stand(survey, parity)
    alone = following.old is None
    renamed = (parity != following.both.parity) & alone
    old, new = before[0] * n + before[1], after[0] * n + after[1]
    first = np.full(len(slots), n)
    np.minimum.at(first, *before)
    comes, stays = np.zeros((2, len(slots) * n), bool)  # by slot and shard
    comes[new] = True
    stays[old[~renamed[before[0]]]] = True
    sent = np.flatnonzero(comes & ~stays)
    sent = sent[first[sent // n] == shard]
    drops = slots[renamed | ~comes[shard::n]]
    return Leaving(drops, slots[sent // n], sent % n, following.both.parity if alone else None)


def _concerned(router: GridRouter, following: GridRouter, index: LocalIndex, slots: Slots) -> Slots:
    """The slots whose copies may stand elsewhere afterwards, or need another parity."""
    if router.grid is None:
        return slots
    parity = index.parity(slots)
    chosen = np.zeros(len(slots), bool)
    for value in (False, True):
        rows = np.flatnonzero(parity == value)
        before, after = router.table_of(value), following.table_of(value)
        assert before is not None
        assert after is not None
        cells = changed(before, after)
        if cells is None or (following.old is None and value != following.both.parity):
            chosen[rows] = True
        else:
            chosen[rows] = touching(after, cells, *index.boxes(slots[rows]))
    return slots[chosen]
