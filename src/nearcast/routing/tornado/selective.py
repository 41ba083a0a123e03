"""What a routing unit sends where, with textual summaries (Tornado 3): by place, and by words.

An object goes to the evaluator of its place, unless none of its words is one that a query there
hangs under. The engine does not do so (docs/papers/tornado.md says why); experiments do.
"""

from __future__ import annotations

import numpy as np

from nearcast.kernels.ragged import frozen, places
from nearcast.routing.grid.survey import Numbers, RangeSurvey, Reals, Words
from nearcast.routing.grid.table import GridTable, Pairs, place_rows, route_rows
from nearcast.routing.tornado.keyword_summary import KeywordSummary
from nearcast.routing.tornado.table import box_hooks


class Summaries:
    """The summary of each evaluator of a table."""

    def __init__(self, table: GridTable, shards: int) -> None:
        self.table = table
        self.of = [KeywordSummary() for _ in range(shards)]

    def add(self, survey: RangeSurvey) -> None:
        """Queries begin."""
        for summary, words in zip(self.of, self._words(survey), strict=True):
            summary.add(words)

    def remove(self, survey: RangeSurvey) -> None:
        """Queries end; they must have been added."""
        for summary, words in zip(self.of, self._words(survey), strict=True):
            summary.remove(words)

    @property
    def bytes(self) -> int:
        """Memory of all summaries."""
        return sum(summary.bytes for summary in self.of)

    def wanted(self, x: Reals, y: Reals, word_offsets: Numbers, words: Words) -> Pairs:
        """(rows, shards) as `route_rows` has them, without what summaries tell to drop."""
        rows, shards = route_rows(self.table, x, y, word_offsets, words)
        keep = np.zeros(len(rows), bool)
        for shard, summary in enumerate(self.of):
            mine = np.flatnonzero(shards == shard)
            offsets, at = places(word_offsets[rows[mine]], np.diff(word_offsets)[rows[mine]])
            keep[mine] = summary.may_match(offsets, words[at])
        return rows[keep], shards[keep]

    def _words(self, survey: RangeSurvey) -> list[Words]:
        """The words that queries hang under, of those at each evaluator."""
        rows, shards = place_rows(self.table, survey)
        every = frozen(np.arange(len(survey.conjunction)))
        offsets, words = box_hooks(self.table, survey, every)
        out = []
        for shard in range(len(self.of)):
            mine = rows[shards == shard]
            out.append(words[places(offsets[mine], np.diff(offsets)[mine])[1]])
        return out
