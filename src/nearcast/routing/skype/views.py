"""What a shard knows of a batch of messages, when others see some of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.kernels.ragged import gather
from nearcast.objects.base import Objects
from nearcast.routing.skype.deals import Messages
from nearcast.routing.skype.kd_tree import Longs
from nearcast.wire.carried import Carried
from nearcast.wire.tables import ObjectColumns

__all__ = ["View", "messages_of", "some_objects", "view_of"]


class View(NamedTuple):
    """A batch as one shard has it: all messages, but of those of others nothing but the time."""

    columns: ObjectColumns
    carried: Carried
    seen: Objects


def messages_of(o: Objects) -> Messages:
    """Messages as deals take them."""
    return Messages(o.x, o.y, o.word_offsets, o.words)


def some_objects(o: Objects, rows: Longs) -> Objects:
    """Some objects, by row."""
    lengths, starts = np.diff(o.word_offsets)[rows], o.word_offsets[rows]
    offsets, words = gather(o.words, starts, lengths)
    counts, firsts = (gather(a, starts, lengths)[1] for a in (o.counts, o.firsts))
    ids = gather(o.id_bytes, o.id_offsets[rows], np.diff(o.id_offsets)[rows])
    own = (o.x[rows], o.y[rows], o.time[rows], o.rank[rows])
    return Objects(*own, offsets, words, counts, firsts, *ids)


def view_of(o: Objects, clock: Longs, rows: Longs) -> View:
    """All messages of a batch, with the words and ids of some."""
    seen = some_objects(o, rows)
    n = len(o.x)
    words, ids = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    words[rows + 1], ids[rows + 1] = np.diff(seen.word_offsets), np.diff(seen.id_offsets)
    columns = ObjectColumns(
        np.arange(n), o.time, clock, o.time, o.x, o.y, np.cumsum(ids), seen.id_bytes,
        np.cumsum(words), seen.words,
    )  # fmt: skip
    return View(columns, Carried(seen.counts, seen.firsts, o.rank), seen)
