"""Objects and queries for tests of stores, from plain Python values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.hashing import word_hash
from nearcast.model.region import Region, encode, outer_boxes
from nearcast.model.space import Space
from nearcast.objects.base import Centres, Fields, Objects, Queries, Regions, Wishes
from nearcast.wire.programs import compile_where

FOREVER = 2**60


class Post(NamedTuple):
    """An object; `words` in the order of first use, with their counts."""

    x: float = 0.0
    y: float = 0.0
    time: int = 0
    words: Mapping[str, int] = {}
    id: str = "o"
    text: bytes = b""
    keywords: bytes = b""


class Query(NamedTuple):
    """A query of any search; a search looks at what it needs."""

    after: int = -FOREVER
    until: int = FOREVER
    before_rank: int = FOREVER
    where: str = ""
    region: Region | None = None
    limit: int = 0
    at: tuple[float, float] = (0.0, 0.0)
    k: int = 1
    keywords: Mapping[str, float] = {}
    alpha: float = 0.5
    maxdist: float = 1000.0
    exclude: tuple[str, ...] = ()


def ragged(rows: Sequence[Sequence[Any]], dtype: Any) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Offsets and values."""
    offsets = np.concatenate([[0], np.cumsum([len(r) for r in rows])]).astype(np.int64)
    return offsets, np.array([v for r in rows for v in r], dtype)


def strings(rows: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Offsets and bytes."""
    return ragged([list(r) for r in rows], np.uint8)


def objects_of(posts: Sequence[Post], first_rank: int = 0) -> tuple[Objects, Fields]:
    """Objects in the order of their ranks."""
    held = []
    for post in posts:
        hashed = [(word_hash(w), n, i) for i, (w, n) in enumerate(post.words.items())]
        held.append(sorted(hashed))
    offsets, words = ragged([[w for w, _, _ in row] for row in held], np.uint64)
    objects = Objects(
        np.array([p.x for p in posts], float),
        np.array([p.y for p in posts], float),
        np.array([p.time for p in posts], np.int64),
        np.arange(first_rank, first_rank + len(posts)),
        offsets,
        words,
        ragged([[n for _, n, _ in row] for row in held], np.int32)[1],
        ragged([[i for _, _, i in row] for row in held], np.int32)[1],
        *strings([p.id.encode() for p in posts]),
    )
    return objects, Fields(*strings([p.text for p in posts]), *strings([p.keywords for p in posts]))


def queries_of(queries: Sequence[Query]) -> Queries:
    """What all searches have in common."""
    programs, covers, conjunctions = [], [], []
    for q in queries:
        program, cover, conjunction = compile_where(q.where)
        programs.append([t if isinstance(t, int) else word_hash(t) for t in program])
        covers.append(sorted(word_hash(str(w)) for w in cover))
        conjunctions.append(conjunction)
    return Queries(
        np.array([q.after for q in queries], np.int64),
        np.array([q.until for q in queries], np.int64),
        np.array([q.before_rank for q in queries], np.int64),
        *ragged(programs, np.uint64),
        *ragged(covers, np.uint64),
        np.array(conjunctions, np.bool_),
    )


def regions_of(queries: Sequence[Query], space: Space) -> Regions:
    """Their regions, as `kinds.range` compiles them: a plain bbox has no boxes."""
    codes, numbers, boxes = [], [], []
    for q in queries:
        assert q.region is not None
        code, data = encode(q.region)
        outer = [v for box in outer_boxes(space, q.region) for v in box]
        codes.append(code)
        numbers.append(data)
        boxes.append([] if outer == data else outer)
    return Regions(
        np.array(codes, np.int64), *ragged(numbers, np.float64), *ragged(boxes, np.float64)
    )


def centres_of(queries: Sequence[Query]) -> Centres:
    """Their places."""
    at = np.array([q.at for q in queries], float).reshape(-1, 2)
    return Centres(at[:, 0], at[:, 1], np.array([q.k for q in queries], np.int64))


def wishes_of(queries: Sequence[Query]) -> Wishes:
    """What they want by score."""
    hashed = [[word_hash(w) for w in q.keywords] for q in queries]
    return Wishes(
        *ragged(hashed, np.uint64),
        ragged([list(q.keywords.values()) for q in queries], np.float64)[1],
        np.array([q.alpha for q in queries], float),
        np.array([q.maxdist for q in queries], float),
    )


def excluded_of(queries: Sequence[Query]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """The words they do not want counted."""
    return ragged([[word_hash(w) for w in q.exclude] for q in queries], np.uint64)
