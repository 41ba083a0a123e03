"""How asks of a kind are answered: each shard searches its store, then the parts are merged.

A shard finds the best of *its* objects. What is among the best of all objects is among the best of
its part, so the best of all parts together are the answer (docs/spec.md, section 5).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index.base import boxes_by
from nearcast.kernels.slots import CONJUNCTION, REGION_CODE
from nearcast.model.frame import Idf
from nearcast.objects.base import (
    Centres,
    Fields,
    Found,
    Objects,
    ObjectStore,
    Queries,
    Regions,
    Wishes,
)
from nearcast.wire.asks import AT, KEYWORDS, TEXT, TIME
from nearcast.wire.tables import lists, numbers

__all__ = ["Answers", "BestFirst", "InOrderOfTime", "NearestFirst"]

Ask = dict[str, Any]  # a row of the kind's asks
Rows = NDArray[np.int64]
_ENCODE = msgspec.json.Encoder().encode


class Answers(ABC):
    """How asks of a kind are answered."""

    field = "objects"
    """The field of an answer that holds it."""

    @abstractmethod
    def search(
        self, store: ObjectStore, asks: pa.RecordBatch, before: Rows, /, shards: int
    ) -> list[bytes]:
        """The part of one of `shards` in each answer; objects of lower ranks than `before`."""

    def places(self, asks: pa.RecordBatch) -> NDArray[np.float64] | None:
        """Boxes (minx, miny, maxx, maxy) that hold all objects asked for; None: anywhere."""
        del asks  # most look everywhere
        return None

    @abstractmethod
    def merge(self, ask: Ask, parts: list[bytes]) -> bytes:
        """The answer: what stands in its notification behind the time, as members of JSON."""


class _Part(msgspec.Struct, array_like=True):
    """Objects of one shard for one answer."""

    time: bytes
    rank: bytes
    value: bytes
    ids: list[bytes]
    shown: list[bytes]  # the fields that the ask wants to see, ready to be written


class _ObjectAnswers(Answers):
    """Answers that are lists of objects."""

    value = ""  # the name of the value that each object has; empty: none

    @abstractmethod
    def find(self, store: ObjectStore, asks: pa.RecordBatch, queries: Queries) -> Found:
        """The objects of the store."""

    @abstractmethod
    def choose(self, ask: Ask, found: _Objects) -> Rows:
        """Which objects of all shards are in the answer, in its order."""

    def search(
        self, store: ObjectStore, asks: pa.RecordBatch, before: Rows, /, shards: int
    ) -> list[bytes]:
        """The best of the store."""
        del shards  # the best of each part are enough
        found = self.find(store, asks, queries_of(asks, before))
        objects, fields = store.rows(found.handles), store.fields(found.handles)
        parts = []
        for n, bits in enumerate(asks["fields"].to_pylist()):
            own = slice(found.offsets[n], found.offsets[n + 1])
            rows = range(own.start, own.stop)
            ids = [_cut(objects.id_offsets, objects.id_bytes, row) for row in rows]
            shown = [_shown(objects, fields, row, bits) for row in rows] if bits else []
            time, rank, value = (c[own].tobytes() for c in (found.time, found.rank, found.value))
            parts.append(msgspec.msgpack.encode(_Part(time, rank, value, ids, shown)))
        return parts

    def merge(self, ask: Ask, parts: list[bytes]) -> bytes:
        """`"objects":[…]`."""
        read = [msgspec.msgpack.decode(part, type=_Part) for part in parts]
        found = _Objects(
            np.frombuffer(b"".join(p.time for p in read), np.int64),
            np.frombuffer(b"".join(p.rank for p in read), np.int64),
            np.frombuffer(b"".join(p.value for p in read), np.float64),
        )
        ids = [id_ for p in read for id_ in p.ids]
        shown = [text for p in read for text in p.shown] or [b""] * len(ids)
        values = [b""] * len(ids)
        if self.value:
            name = f',"{self.value}":'.encode()
            values = [name + _ENCODE(value) for value in found.value.tolist()]
        chosen = self.choose(ask, found).tolist()
        objects = (b'{"id":"' + ids[n] + b'"' + values[n] + shown[n] + b"}" for n in chosen)
        return b'"objects":[' + b",".join(objects) + b"]"


class _Objects(msgspec.Struct):
    """Columns of what all shards found."""

    time: NDArray[np.int64]
    rank: NDArray[np.int64]
    value: NDArray[np.float64]


class InOrderOfTime(_ObjectAnswers):
    """All objects inside a region, by time, then object order; with a limit the latest."""

    def find(self, store: ObjectStore, asks: pa.RecordBatch, queries: Queries) -> Found:
        """Inside the regions."""
        return store.within(queries, regions_of(asks), numbers(asks["limit"]))

    def places(self, asks: pa.RecordBatch) -> NDArray[np.float64]:
        """The outer boxes of the regions."""
        return boxes_by(asks)[1]

    def choose(self, ask: Ask, found: _Objects) -> Rows:
        """By time, then rank."""
        rows = np.lexsort((found.rank, found.time))
        return rows[-ask["limit"] :] if ask["limit"] else rows


class NearestFirst(_ObjectAnswers):
    """The k nearest objects; of equally near ones the earlier."""

    value = "distance"

    def find(self, store: ObjectStore, asks: pa.RecordBatch, queries: Queries) -> Found:
        """The nearest of the store."""
        return store.nearest(queries, centres_of(asks))

    def choose(self, ask: Ask, found: _Objects) -> Rows:
        """By distance, then rank."""
        most = min(ask["k"], ask["limit"] or ask["k"])
        return np.lexsort((found.rank, found.value))[:most]


class BestFirst(_ObjectAnswers):
    """The k objects of highest score; of equals the newer."""

    value = "score"

    def find(self, store: ObjectStore, asks: pa.RecordBatch, queries: Queries) -> Found:
        """The best of the store."""
        return store.best(queries, centres_of(asks), wishes_of(asks, store.idf))

    def choose(self, ask: Ask, found: _Objects) -> Rows:
        """By score, then rank."""
        most = min(ask["k"], ask["limit"] or ask["k"])
        return np.lexsort((-found.rank, -found.value))[:most]


def queries_of(asks: pa.RecordBatch, before: Rows) -> Queries:
    """When asks look, and for which words."""
    conjunction = (numbers(asks["flags"]) & CONJUNCTION) != 0
    return Queries(
        numbers(asks["end"]),
        numbers(asks["time"]),
        before,
        *lists(asks["program"], np.uint64),
        *lists(asks["cover"], np.uint64),
        conjunction,
    )


def regions_of(asks: pa.RecordBatch) -> Regions:
    """The regions of asks whose kind has the columns of REGIONS."""
    return Regions(
        (numbers(asks["flags"]) & REGION_CODE).astype(np.int64),
        *lists(asks["region"], np.float64),
        *lists(asks["boxes"], np.float64),
    )


def centres_of(asks: pa.RecordBatch) -> Centres:
    """The centres of asks whose kind has the columns of BALLS or TOPS."""
    return Centres(numbers(asks["x"]), numbers(asks["y"]), numbers(asks["k"]))


def wishes_of(tops: pa.RecordBatch, idf: Idf) -> Wishes:
    """What asks or subscriptions want whose kind has the columns of TOPS."""
    offsets, words = lists(tops["keywords"], np.uint64)
    alpha, maxdist = numbers(tops["alpha"]), numbers(tops["maxdist"])
    return Wishes(offsets, words, idf.of_words(words), alpha, maxdist)


def _cut(offsets: Rows, data: NDArray[np.uint8], row: int) -> bytes:
    return data[offsets[row] : offsets[row + 1]].tobytes()


def _shown(objects: Objects, fields: Fields, row: int, bits: int) -> bytes:
    """The fields of an object that an ask wants, as members of JSON; what it lacks is left out."""
    out = b""
    if bits & AT:
        out += b',"at":' + _ENCODE([float(objects.x[row]), float(objects.y[row])])
    if bits & TIME:
        out += b',"time":%d' % objects.time[row]
    if bits & TEXT and (text := _cut(fields.text_offsets, fields.text_bytes, row)):
        out += b',"text":' + text
    words = _cut(fields.keyword_offsets, fields.keyword_bytes, row) if bits & KEYWORDS else b""
    return out + b',"keywords":' + words if words else out
