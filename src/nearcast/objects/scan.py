"""`scan`: every query against every object, in plain Python; what all other stores must equal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.model.expression import evaluate
from nearcast.model.predicate import contains
from nearcast.model.region import decode
from nearcast.model.score import blend, cosine, near
from nearcast.model.space import distance
from nearcast.objects.base import Centres, Queries, Regions, Wishes
from nearcast.objects.coded import Coded
from nearcast.objects.results import Best, offer
from nearcast.objects.searching import Counted, CountsAll, Rows
from nearcast.objects.slices import Slice, count_at
from nearcast.wire.programs import expression_of

__all__ = ["Scan"]


class _Object(NamedTuple):
    row: int
    x: float
    y: float
    time: int
    rank: int
    words: dict[int, int]  # by hash, in the order of first use


class Scan(CountsAll):
    """Looks at each object."""

    name = "scan"
    paper = "baseline"
    about = "looks at each object; the oracle"

    def _order(self, rows: Coded) -> NDArray[np.int64]:
        return np.arange(rows.size)

    def _index(self, rows: Coded, sealed: bool) -> Sequence[NDArray[Any]]:
        del rows, sealed  # it has none
        return ()

    def _attach_index(self, arrays: list[Any]) -> list[_Object]:
        del arrays
        return []  # what was read of the slice

    def _within(
        self, s: Slice, queries: Queries, regions: Regions, which: NDArray[np.int64]
    ) -> tuple[Rows, int]:
        found = [(q, o.row) for q in which.tolist() for o in self._inside(s, queries, regions, q)]
        pairs = np.array(found, np.int64).reshape(-1, 2)
        return (pairs[:, 0], pairs[:, 1]), len(which) * len(s.columns.at)

    def _inside(self, s: Slice, queries: Queries, regions: Regions, q: int) -> Iterator[_Object]:
        numbers = regions.numbers[regions.offsets[q] : regions.offsets[q + 1]]
        region = decode(int(regions.code[q]), numbers.tolist())
        for o in _matching(s, queries, q):
            if contains(self.space, region, o.x, o.y):
                yield o

    def _count(
        self, s: Slice, queries: Queries, regions: Regions, which: NDArray[np.int64]
    ) -> tuple[Counted, int]:
        found = []
        for q in which.tolist():
            counts = Counter(w for o in self._inside(s, queries, regions, q) for w in o.words)
            found += [(q, word, n) for word, n in counts.items()]
        owner, words, counts_of = zip(*found, strict=True) if found else ((), (), ())
        return (
            np.array(owner, np.int64),
            np.array(words, np.uint64),
            np.array(counts_of, np.int64),
        ), len(which) * len(s.columns.at)

    def _offer(
        self,
        s: Slice,
        handle: int,
        queries: Queries,
        centres: Centres,
        wishes: Wishes,
        which: NDArray[np.int64],
        best: Best,
    ) -> int:
        by_score = len(wishes.alpha) > 0
        for q in which.tolist():
            x, y = float(centres.x[q]), float(centres.y[q])
            for o in _matching(s, queries, q):
                far = distance(self.space.code, x, y, o.x, o.y)
                if not by_score:
                    offer(best, q, far, o.rank, handle + o.row, o.time)
                    continue
                score = self._score(wishes, q, o, far)
                if score is not None:
                    offer(best, q, -score, -o.rank, handle + o.row, o.time)
        return len(which) * len(s.columns.at)

    def _score(self, wishes: Wishes, q: int, o: _Object, far: float) -> float | None:
        """The score as SPEC section 4 defines it; None: it shares no keyword."""
        own = slice(wishes.keyword_offsets[q], wishes.keyword_offsets[q + 1])
        wanted = dict(zip(wishes.keywords[own].tolist(), wishes.weights[own].tolist(), strict=True))
        if not wanted.keys() & o.words.keys():
            return None
        held = {w: tf * self._idf(w) for w, tf in o.words.items()}
        nearness = near(far, float(wishes.maxdist[q]))
        return float(blend(float(wishes.alpha[q]), nearness, cosine(wanted, held)))

    def _idf(self, word: int) -> float:
        at = int(np.searchsorted(self.idf.words, np.uint64(word)))
        known = at < len(self.idf.words) and int(self.idf.words[at]) == word
        return float(self.idf.values[at]) if known else self.idf.other


def _matching(s: Slice, queries: Queries, q: int) -> Iterator[_Object]:
    """Objects of the period whose words make the expression true."""
    tokens = queries.program[queries.program_offsets[q] : queries.program_offsets[q + 1]]
    where = expression_of(tokens.tolist())
    if not s.index:
        s.index.extend(_objects(s))
    for o in s.index:
        after = queries.after[q]
        if len(queries.from_rank) and o.rank < queries.from_rank[q]:
            after = queries.early[q]
        if (
            after < o.time <= queries.until[q]
            and o.rank < queries.before_rank[q]
            and evaluate(where, o.words)
        ):
            yield o


def _objects(s: Slice) -> Iterator[_Object]:
    c = s.columns
    for row in range(len(c.at)):
        held = range(int(c.starts[row]), int(c.starts[row + 1]))
        words = {int(c.words[c.codes[i]]): int(count_at(c, i)) for i in held}
        x, y = c.at[row].tolist()
        time, rank = c.when[row].tolist()
        yield _Object(row, x, y, time, rank, words)
