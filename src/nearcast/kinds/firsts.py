"""What `last` means for new subscriptions of a kind: how the objects of the past are found.

Objects of the past rest on all shards, whichever holds the subscription. Each shard looks for its
part. A kind either reports each object that is found at once, where it is found, or it has a result
that begins with the best of all parts; the subscription then waits for it until the next batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, insort
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Protocol

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index.base import ENTER, boxes_by
from nearcast.kernels.slots import CONJUNCTION
from nearcast.kinds.answers import centres_of, regions_of
from nearcast.objects.base import Centres, ObjectStore, Queries
from nearcast.wire.tables import lists, numbers

__all__ = ["EachMatches", "First", "FirstResults", "NearestOfAll", "Past", "past_of", "waits"]

Row = dict[str, Any]  # a subscription as a row of its kind's table
Ranks = NDArray[np.int64]


class Past(msgspec.Struct, array_like=True):
    """What one shard found for one subscription."""

    time: bytes  # int64
    rank: bytes  # int64
    value: bytes  # float64
    ids: list[bytes]  # of the objects; or whatever else the kind reads in `begin`


class First(NamedTuple):
    """The first result of a subscription."""

    result: Row  # a row of the kind's results, without its slot
    events: list[tuple[int, float, bytes]]  # what is reported: (event, value, id of the object)


class FirstResults(ABC):
    """How subscriptions of a kind look back."""

    at_once: ClassVar[bool] = False
    """Each shard reports what it finds, in object order, as the kind's first event."""

    @abstractmethod
    def search(
        self, store: ObjectStore, lasts: pa.RecordBatch, before: Ranks, /, shards: int
    ) -> list[Past]:
        """Objects of lower ranks than `before`, for each subscription: the part of one shard."""

    def places(self, lasts: pa.RecordBatch) -> NDArray[np.float64] | None:
        """Boxes (minx, miny, maxx, maxy) that hold all objects looked for; None: anywhere."""
        del lasts  # most look everywhere
        return None

    def begin(self, row: Row, parts: list[Past]) -> First:
        """The first result, from the parts of all shards; unless all is reported at once."""
        raise NotImplementedError(f"{type(self).__name__} reports at once")


class _Firsts(Protocol):
    @property
    def firsts(self) -> object | None: ...


def waits(kind: _Firsts) -> bool:
    """Whether new subscriptions that look back wait for their first results."""
    return isinstance(kind.firsts, FirstResults) and not kind.firsts.at_once


class EachMatches(FirstResults):
    """Every object inside a region is reported."""

    at_once = True

    def search(
        self, store: ObjectStore, lasts: pa.RecordBatch, before: Ranks, /, shards: int
    ) -> list[Past]:
        """Inside the regions."""
        del shards  # what is found does not depend on others
        none = np.zeros(lasts.num_rows, np.int64)
        found = store.within(queries_of(lasts, before), regions_of(lasts), none)
        query = np.repeat(np.arange(lasts.num_rows), np.diff(found.offsets))
        order = np.lexsort((found.rank, query))
        return past_of(store, query[order], found.handles[order], found.value[order], len(before))

    def places(self, lasts: pa.RecordBatch) -> NDArray[np.float64]:
        """The outer boxes of the regions."""
        return boxes_by(lasts)[1]


class NearestOfAll(FirstResults):
    """The k nearest; with a window also those that may move up when these have left."""

    def search(
        self, store: ObjectStore, lasts: pa.RecordBatch, before: Ranks, /, shards: int
    ) -> list[Past]:
        """The k nearest of the store; with a window its k-skyband.

        This is found by looks at ever younger objects: what is no younger than the oldest of the
        k nearest, and not one of them, is too far away as long as they stay.
        """
        del shards  # the best of each part are enough
        window, k = numbers(lasts["window"]), numbers(lasts["k"])
        after, time = numbers(lasts["after"]).copy(), numbers(lasts["time"])
        after = np.where(window > 0, np.maximum(after, time - window), after)
        looking = np.arange(lasts.num_rows)
        queries, handles, values = [], [], []
        while len(looking):
            some = lasts.take(pa.array(looking))
            centres = centres_of(some)
            most = np.minimum(centres.k, max(len(store), 1))
            wanted = queries_of(some, before[looking])._replace(after=after[looking])
            found = store.nearest(wanted, Centres(centres.x, centres.y, most))
            counts = np.diff(found.offsets)
            queries.append(np.repeat(looking, counts))
            handles.append(found.handles)
            values.append(found.value)
            more = (window[looking] > 0) & (counts == k[looking])
            if more.any():
                full = np.repeat(more, counts)
                starts = np.cumsum(counts[more]) - counts[more]
                after[looking[more]] = np.minimum.reduceat(found.time[full], starts)
            looking = looking[more]
        query, handle = np.concatenate(queries), np.concatenate(handles)
        _, once = np.unique(np.stack([query, handle]), axis=1, return_index=True)
        value = np.concatenate(values)
        return past_of(store, query[once], handle[once], value[once], lasts.num_rows)

    def begin(self, row: Row, parts: list[Past]) -> First:
        """By distance, then object order."""
        time = np.frombuffer(b"".join(p.time for p in parts), np.int64)
        rank = np.frombuffer(b"".join(p.rank for p in parts), np.int64)
        value = np.frombuffer(b"".join(p.value for p in parts), np.float64)
        ids = [id_ for p in parts for id_ in p.ids]
        order, k = np.lexsort((rank, value)), row["k"]
        if row["window"]:
            outlived = _outlived(time[order].tolist())
            kept = outlived < k
            order, outlived = order[kept], outlived[kept]
        else:
            order = order[:k]
            outlived = np.zeros(len(order), np.int64)
        names = [ids[n] for n in order.tolist()]
        result = {
            "distance": value[order].tolist(),
            "time": time[order].tolist(),
            "outlived": outlived.tolist(),
            "object": names,
        }
        entered = zip(value[order][:k].tolist(), names, strict=False)
        return First(result, [(ENTER, distance, name) for distance, name in entered])


def _outlived(times: list[int]) -> NDArray[np.int64]:
    """How many that stand before each in a list outlive it."""
    before: list[int] = []
    counts = []
    for time in times:
        counts.append(len(before) - bisect_left(before, time))
        insort(before, time)
    return np.array(counts, np.int64)


def queries_of(lasts: pa.RecordBatch, before: Ranks) -> Queries:
    """When subscriptions look back, and for which words: to their `after`, up to their end."""
    return Queries(
        numbers(lasts["after"]),
        numbers(lasts["end"]) - 1,
        before,
        *lists(lasts["program"], np.uint64),
        *lists(lasts["cover"], np.uint64),
        (numbers(lasts["flags"]) & CONJUNCTION) != 0,
    )


def past_of(
    store: ObjectStore,
    query: NDArray[np.int64],
    handles: NDArray[np.int64],
    value: NDArray[np.float64],
    queries: int,
) -> list[Past]:
    """What was found, by query; `query` ascends."""
    objects = store.rows(handles)
    data, at = objects.id_bytes.tobytes(), objects.id_offsets.tolist()
    bounds = np.searchsorted(query, np.arange(queries + 1)).tolist()
    return [
        Past(
            objects.time[a:b].tobytes(),
            objects.rank[a:b].tobytes(),
            value[a:b].tobytes(),
            [data[at[n] : at[n + 1]] for n in range(a, b)],
        )
        for a, b in pairwise(bounds)
    ]
