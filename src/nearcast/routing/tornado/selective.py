"""What a routing unit sends where, with textual summaries (Tornado 3): by place, and by words.

An object goes to the evaluator of its place, unless none of its words is one that a query there
is posted under. The engine does not do so (docs/papers/tornado.md says why); experiments do.
"""

from __future__ import annotations

import numpy as np

from nearcast.kernels.ragged import frozen, places
from nearcast.routing.grid.costs import box_posting_words
from nearcast.routing.grid.survey import Numbers, Reals, RegionSurvey, Words
from nearcast.routing.grid.table import GridTable, Pairs, place_rows, route_rows
from nearcast.routing.tornado.keyword_summary import Joined, KeywordSummary, may_match


class Summaries:
    """The summary of each evaluator of a table."""

    def __init__(self, table: GridTable, shards: int) -> None:
        self.table = table
        self.of = [KeywordSummary() for _ in range(shards)]
        self._joined: Joined | None = None  # None: some summary has changed

    def add(self, survey: RegionSurvey) -> None:
        """Queries begin."""
        self._joined = None
        for summary, words in zip(self.of, self._words(survey), strict=True):
            summary.add(words)

    def ended(self, shard: int, survey: RegionSurvey) -> None:
        """An evaluator reports queries that were there and ended, each once, however late."""
        self._joined = None
        every = frozen(np.arange(len(survey.conjunction)))
        self.of[shard].remove(box_posting_words(self.table, survey, every)[1])

    @property
    def bytes(self) -> int:
        """Memory of all summaries."""
        return sum(summary.bytes for summary in self.of)

    def wanted(self, x: Reals, y: Reals, word_offsets: Numbers, words: Words) -> Pairs:
        """(rows, shards) as `route_rows` has them, without what summaries say to drop."""
        rows, shards = route_rows(self.table, x, y, word_offsets, words)
        if self._joined is None:
            offsets = np.cumsum([0, *(len(s.table) for s in self.of)], dtype=np.int64)
            self._joined = Joined(np.concatenate([s.table for s in self.of]), offsets)
        keep = may_match(self._joined, rows, shards, frozen(word_offsets), frozen(words))
        n = len(self.of)
        looked_up, sent = (np.bincount(s, minlength=n).tolist() for s in (shards, shards[keep]))
        for summary, checked, kept in zip(self.of, looked_up, sent, strict=True):
            summary.checked += checked
            summary.dropped += checked - kept
        return rows[keep], shards[keep]

    def _words(self, survey: RegionSurvey) -> list[Words]:
        """The words that queries are posted under, of those at each evaluator."""
        rows, shards = place_rows(self.table, survey)
        every = frozen(np.arange(len(survey.conjunction)))
        offsets, words = box_posting_words(self.table, survey, every)
        out = []
        for shard in range(len(self.of)):
            mine = rows[shards == shard]
            out.append(words[places(offsets[mine], np.diff(offsets)[mine])[1]])
        return out
