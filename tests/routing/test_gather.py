"""What shards report for the balance, against counts in plain Python."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.routing.test_grid_cells import SHARDS, WORDS, pairs

from nearcast.index.posting import UNIVERSAL
from nearcast.routing.balance import Counts
from nearcast.routing.base import Sample
from nearcast.routing.grid.costs import sample_costs
from nearcast.routing.grid.live import Period
from nearcast.routing.grid.survey import RegionSurvey, take
from nearcast.routing.grid.table import (
    GridTable,
    column_of,
    line_of,
    owner_in,
    posting_words,
    route_rows,
    sealed,
)
from nearcast.routing.ps2stream.adjust.gather import (
    gather_cells,
    join_samples,
    pack_cells,
    sizes_of,
    unpack_cells,
)
from nearcast.routing.tornado.gather import (
    aggregates_of,
    gather_aggregates,
    loads_of,
    weights_of,
)
from nearcast.routing.tornado.gather import gather_cells as gather_costs


@st.composite
def cases(draw: st.DrawFn) -> tuple[GridTable, RegionSurvey, Sample]:
    _, table, survey = draw(pairs())
    n = draw(st.integers(0, 12))
    at = [draw(st.floats(-0.1, 1.1)) for _ in range(2 * n)]
    counts = [draw(st.integers(0, 3)) for _ in range(n)]
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    words = [sorted(draw(st.permutations(WORDS.tolist()))[:c]) for c in counts]
    flat = np.array([w for each in words for w in each], np.uint64)
    return table, survey, Sample(np.array(at[:n]), np.array(at[n:]), offsets, flat)


def posting_words_of(t: GridTable, s: RegionSurvey, row: int) -> list[int]:
    first, stop = posting_words(
        t, s.words, s.word_offsets[row], s.word_offsets[row + 1], s.conjunction[row]
    )
    return s.words[first:stop].tolist() or [int(UNIVERSAL)]


def cells_of(t: GridTable, s: RegionSurvey, row: int) -> list[tuple[int, int]]:
    box = s.boxes[row].tolist()
    return [
        (line, column)
        for line in range(line_of(t, box[1]), line_of(t, box[3]) + 1)
        for column in range(column_of(t, box[0]), column_of(t, box[2]) + 1)
    ]


def seen_by(t: GridTable, sample: Sample, shard: int) -> Sample:
    rows, shards = route_rows(t, sample.x, sample.y, sample.word_offsets, sample.words)
    mine = rows[shards == shard]
    words = [sample.words[sample.word_offsets[i] : sample.word_offsets[i + 1]] for i in mine]
    offsets = np.concatenate([[0], np.cumsum([len(w) for w in words])]).astype(np.int64)
    flat = np.concatenate([np.empty(0, np.uint64), *words])
    return Sample(sample.x[mine], sample.y[mine], offsets, flat)


@settings(deadline=None)
@given(cases())
def test_rows_of_cells(case: tuple[GridTable, RegionSurvey, Sample]) -> None:
    table, survey, sample = case
    none = take(survey, np.empty(0, np.int64))
    side, reported = len(table.cells), []
    for shard in range(SHARDS):
        objects = seen_by(table, sample, shard)
        period = Period(objects, survey, survey, none)
        stats, chosen = unpack_cells(pack_cells(*gather_cells(table, shard, period, 1000)))
        reported.append(chosen)
        held: Counter[int] = Counter()
        size: Counter[int] = Counter()
        words: Counter[tuple[int, int]] = Counter()
        for row, bytes_ in enumerate(sizes_of(survey).tolist()):
            for line, column in cells_of(table, survey, row):
                cell, mine = line * side + column, False
                for word in posting_words_of(table, survey, row):
                    if owner_in(table, table.cells[line, column], np.uint64(word)) == shard:
                        words[cell, word] += 1
                        mine = True
                held[cell] += mine
                size[cell] += bytes_ * mine
        came = Counter(
            line_of(table, y) * side + column_of(table, x)
            for x, y in zip(objects.x, objects.y, strict=True)
        )
        assert dict(zip(stats.cells.tolist(), stats.inserted.tolist(), strict=True)) == {
            c: held[c] for c in stats.cells.tolist()
        }
        assert dict(zip(stats.cells.tolist(), stats.size.tolist(), strict=True)) == {
            c: size[c] for c in stats.cells.tolist()
        }
        assert stats.cells.tolist() == sorted({c for c in held if held[c]} | set(came))
        assert stats.objects.tolist() == [came[c] for c in stats.cells.tolist()]
        assert not stats.deleted.any()
        rows = np.repeat(stats.cells, np.diff(stats.word_offsets)).tolist()
        found = zip(rows, stats.words.tolist(), stats.word_held.tolist(), strict=True)
        assert {(cell, word): n for cell, word, n in found} == dict(words)
        checks = sample_costs(table, objects, survey, 0)
        assert np.isclose((stats.objects * stats.held).sum(), checks.sum())
    # Every object is reported by one shard.
    assert len(join_samples(reported).cells) == len(sample.x)


@settings(deadline=None)
@given(cases(), st.integers(1, 5), st.integers(1, 5))
def test_aggregates_of_evaluators(
    case: tuple[GridTable, RegionSurvey, Sample], scanned: int, lookups: int
) -> None:
    table, survey, sample = case
    side = len(table.cells)
    table = sealed(table._replace(cells=np.zeros((side, side), np.int32)))
    whole = np.array([[0, 0, side - 1, side - 1]], np.int32)
    period = Period(sample, survey, survey, survey)
    reported = gather_aggregates(table, whole, 0, period)
    counts = [Counts(len(sample.x), 0, lookups, scanned)]
    weights = weights_of([reported], counts)
    found = aggregates_of(reported, weights)
    by_cell = gather_costs(table, 0, period)
    assert weights_of([by_cell], counts) == weights
    costs, queries = loads_of([by_cell], side, weights)
    begin = [cells_of(table, survey, row)[0] for row in range(len(survey.boxes))]
    assert {c: n for c, n in np.ndenumerate(queries) if n} == dict(Counter(begin))
    assert found.columns.tolist() == costs.sum(axis=0).tolist()
    assert found.rows.tolist() == costs.sum(axis=1).tolist()
    assert found.overall.tolist() == [costs.sum(), len(survey.boxes)]
    checks = sample_costs(table, sample, survey, 0).sum()
    assert costs.sum() == weights.each * len(sample.x) + weights.check * checks
