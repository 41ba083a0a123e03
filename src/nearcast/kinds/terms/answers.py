"""Asks of `terms`: each shard counts the words of its objects, and the sink adds up.

A word may be seldom on each shard and frequent on all, so a shard hands on all of its counts. The
store has only hashes of words; texts are found again in the fields of objects that hold them, and
only those that can matter. If the k-th word of a shard is held by n of its objects, the k-th word
of all is held by n or more, and of a word with so many some shard of m has n/m or more. So it is
enough that each shard finds the texts of the words of which it counts n/m or more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index.base import boxes_by
from nearcast.kernels.hashing import word_hash
from nearcast.kernels.program import TAG_AND
from nearcast.kinds.answers import Answers, Rows, queries_of, regions_of
from nearcast.kinds.terms.definition import ranked
from nearcast.model.words import keyword_counts
from nearcast.objects.base import ObjectStore, Queries, Regions
from nearcast.wire.tables import lists, numbers

__all__ = ["MostHeldWords", "keywords_of"]

Ask = dict[str, Any]
Words = NDArray[np.uint64]
_SAMPLE = 64  # objects of an ask whose fields are read first: they hold most words that matter
_WORDS = 1024  # looked for at once


class _Part(msgspec.Struct, array_like=True):
    """What one shard counted for one answer."""

    words: bytes
    counts: bytes
    texts: dict[int, str]


class MostHeldWords(Answers):
    """The k words that most objects of the period hold."""

    field = "terms"

    def search(
        self, store: ObjectStore, asks: pa.RecordBatch, before: Rows, /, shards: int
    ) -> list[bytes]:
        """All counts of the store, with the texts of words that can be among the k."""
        queries, regions = queries_of(asks, before), regions_of(asks)
        exclude = lists(asks["exclude"], np.uint64)
        every = np.zeros(asks.num_rows, np.int64)
        found = store.word_counts(queries, regions, every, *exclude)
        parts = []
        for n, k in enumerate(_wanted(asks)):
            own = slice(found.offsets[n], found.offsets[n + 1])
            words, counts = found.words[own], found.counts[own]
            needed = counts[min(k, len(counts)) - 1] / shards if len(counts) else 0
            texts = texts_of(store, queries, regions, n, words[counts >= needed])
            parts.append(msgspec.msgpack.encode(_Part(words.tobytes(), counts.tobytes(), texts)))
        return parts

    def places(self, asks: pa.RecordBatch) -> NDArray[np.float64]:
        """The outer boxes of the regions."""
        return boxes_by(asks)[1]

    def merge(self, ask: Ask, parts: list[bytes]) -> bytes:
        """`"terms":[…]`."""
        read = [msgspec.msgpack.decode(part, type=_Part) for part in parts]
        words = np.frombuffer(b"".join(part.words for part in read), np.uint64)
        counts = np.frombuffer(b"".join(part.counts for part in read), np.int64)
        texts = {word: text for part in read for word, text in part.texts.items()}
        k = min(ask["k"], ask["limit"] or ask["k"])
        distinct, place = np.unique(words, return_inverse=True)
        total = np.zeros(len(distinct), np.int64)
        np.add.at(total, place, counts)
        kth = np.sort(total)[-min(k, len(total))] if len(total) else 0
        best = np.flatnonzero(total >= kth)
        chosen = Counter({texts[int(distinct[i])]: int(total[i]) for i in best.tolist()})
        return b'"terms":' + msgspec.json.encode(ranked(chosen, k))


def _wanted(asks: pa.RecordBatch) -> list[int]:
    k, limit = numbers(asks["k"]), numbers(asks["limit"])
    return np.where(limit > 0, np.minimum(k, limit), k).tolist()  # type: ignore[no-any-return]


def texts_of(
    store: ObjectStore, queries: Queries, regions: Regions, n: int, words: Words
) -> dict[int, str]:
    """The texts of words that objects found by query `n` hold, each hash with its text."""
    missing = set(words.tolist())
    texts: dict[int, str] = {}
    if missing:
        _read(store, _some(queries, n), _same(regions, n, 1), _SAMPLE, missing, texts)
    for start in range(0, len(left := sorted(missing)), _WORDS):
        words = np.array(left[start : start + _WORDS], np.uint64)
        _read(store, _some(queries, n, words), _same(regions, n, len(words)), 1, missing, texts)
    return texts


def _read(
    store: ObjectStore,
    queries: Queries,
    regions: Regions,
    limit: int,
    missing: set[int],
    texts: dict[int, str],
) -> None:
    """Look for missing words in the fields of the latest objects that queries find."""
    found = store.within(queries, regions, np.full(len(queries.after), limit))
    for held in keywords_of(store, found.handles):
        for keyword in held:
            if (word := word_hash(keyword)) in missing:
                missing.remove(word)
                texts[word] = keyword


def keywords_of(store: ObjectStore, handles: Rows) -> Iterator[Iterable[str]]:
    """The keywords of objects, each once, read from their fields."""
    fields = store.fields(handles)
    for row in range(len(handles)):
        text = fields.text_bytes[fields.text_offsets[row] : fields.text_offsets[row + 1]]
        at = slice(fields.keyword_offsets[row], fields.keyword_offsets[row + 1])
        keywords = fields.keyword_bytes[at]
        yield keyword_counts(
            msgspec.json.decode(text.tobytes(), type=str) if len(text) else None,
            msgspec.json.decode(keywords.tobytes(), type=list[str]) if len(keywords) else (),
        )


def _some(q: Queries, n: int, words: Words | None = None) -> Queries:
    """Query `n`; for each of the words, if there are any, with that word as one more condition."""
    program = q.program[q.program_offsets[n] : q.program_offsets[n + 1]]
    cover = q.cover[q.cover_offsets[n] : q.cover_offsets[n + 1]]
    conjunction = bool(q.conjunction[n])
    if words is not None:
        both = [] if conjunction or not len(program) else [np.uint64(2 << 2) | TAG_AND]
        conjunction = not both
        programs = [np.append(program, np.array([word, *both], np.uint64)) for word in words]
        covers = [words[i : i + len(both)] for i in range(len(words))]
    else:
        programs, covers = [program], [cover]
    many = len(programs)
    after, until, rank = (np.repeat(c[n : n + 1], many) for c in (q.after, q.until, q.before_rank))
    return Queries(
        after,
        until,
        rank,
        *_lists(programs),
        *_lists(covers),
        np.full(many, conjunction),
    )


def _same(r: Regions, n: int, many: int) -> Regions:
    """The region of query `n`, so many times."""
    numbers_ = r.numbers[r.offsets[n] : r.offsets[n + 1]]
    boxes = r.boxes[r.box_offsets[n] : r.box_offsets[n + 1]]
    return Regions(
        np.repeat(r.code[n : n + 1], many), *_lists([numbers_] * many), *_lists([boxes] * many)
    )


def _lists(parts: Sequence[NDArray[Any]]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    offsets = np.cumsum([0, *(len(part) for part in parts)]).astype(np.int64)
    return offsets, np.concatenate(parts)
