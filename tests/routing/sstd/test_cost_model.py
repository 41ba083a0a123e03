"""Statistics J and the six cost models of SSTD, against plain counts."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from tests.routing.sstd.sstd_twins import WORDS, overlap, ragged, town, unit

from nearcast.routing.base import Sample
from nearcast.routing.sstd.cells import LEVELS, WHOLE, Cell, units_of
from nearcast.routing.sstd.cost_model import covered, prices, workload
from nearcast.routing.sstd.draft import Node
from nearcast.routing.sstd.partitioning import Workloads
from nearcast.routing.sstd.queries import CKQ, CRQ, CTQ, SKQ, SRQ, STQ, Queries, joined, queries_of
from nearcast.routing.sstd.statistics import QueryStatistics

UNIT = np.array([0.0, 0.0, 1.0, 1.0])
CELLS = [WHOLE, Cell(1, 0, 0), Cell(2, 1, 2), Cell(5, 7, 9), Cell(LEVELS, 300_000, 300_000)]


def all_types(rng: np.random.Generator, n: int = 240) -> Queries:
    """Queries of all six types, some of two boxes, some heavier than others."""
    _, survey = town(rng, n)
    two = np.arange(0, n + 1, 2)
    words = ragged(
        [np.unique(WORDS[row])[: rng.integers(0, 4)] for row in rng.integers(0, 9, (n // 2, 3))]
    )
    return Queries(
        rng.integers(0, 6, n // 2).astype(np.int8),
        rng.choice([0.5, 1.0, 3.0], n // 2),
        rng.integers(1, 9, n // 2).astype(float),
        two,
        survey.boxes,
        *words,
        rng.random(n // 2) < 0.6,
    )


def plain_rows(q: Queries, cell: Cell) -> list[int]:
    """The queries of which a box overlaps a cell, by looking at each."""
    found = []
    for row in range(len(q.type)):
        boxes = q.boxes[q.box_offsets[row] : q.box_offsets[row + 1]].tolist()
        if any(overlap(cell, tuple(unit(v, 0.0, 1.0) for v in b)) for b in boxes):  # type: ignore[arg-type]
            found.append(row)
    return found


@pytest.mark.parametrize("cell", CELLS)
def test_statistics_of_a_cell(cell: Cell, rng: np.random.Generator) -> None:
    q = all_types(rng)
    j = QueryStatistics(UNIT, q)
    rows = plain_rows(q, cell)
    total, found = defaultdict[int, float](float), defaultdict[int, float](float)
    for row in range(len(q.type)):
        total[int(q.type[row])] += q.weight[row]
        found[int(q.type[row])] += q.weight[row] if row in rows else 0.0
    assert j.probabilities(cell).tolist() == pytest.approx([found[t] / total[t] for t in range(6)])
    assert j.share.tolist() == pytest.approx([total[t] / sum(total.values()) for t in range(6)])
    assert j.continuous(cell) == pytest.approx(found[CRQ] + found[CKQ] + found[CTQ])
    for i, type_ in enumerate((SRQ, SKQ)):
        seen = defaultdict[int, float](float)
        for row in rows:
            words = q.words[q.word_offsets[row] : q.word_offsets[row + 1]].tolist()
            for word in words if q.type[row] == type_ else []:
                seen[word] += q.weight[row] / (1 if q.conjunction[row] else len(words))
        m = dict(zip(j.vocabulary.tolist(), j.keywords(cell)[i].tolist(), strict=True))
        everything = sum(seen.values())
        assert {w: p for w, p in m.items() if p} == pytest.approx(
            {w: n / everything for w, n in seen.items()}
        )


def test_lengths_and_durations(rng: np.random.Generator) -> None:
    q = all_types(rng)
    j = QueryStatistics(UNIT, q)
    for i, type_ in enumerate((SRQ, SKQ)):
        lengths = defaultdict[int, float](float)
        for row in np.flatnonzero(q.type == type_).tolist():
            words = int(q.word_offsets[row + 1] - q.word_offsets[row])
            lengths[words if q.conjunction[row] else min(words, 1)] += q.weight[row]
        everything = sum(lengths.values())
        assert {n: p for n, p in enumerate(j.lengths[i].tolist()) if p} == pytest.approx(
            {n: w / everything for n, w in lengths.items()}
        )
    lasting = q.type >= CRQ
    mean = (q.weight * q.duration)[lasting].sum() / q.weight[lasting].sum()
    assert j.duration == pytest.approx(mean)


def test_equation_1() -> None:
    assert covered(0.5, np.array([0.1, 0.2, 0.3, 0.4])) == pytest.approx(0.1 + 0.1 + 0.075 + 0.05)
    assert covered(0.0, np.array([0.25, 0.75])) == 0.25
    assert covered(1.0, np.array([0.25, 0.75])) == 1.0


@pytest.mark.parametrize("type_", range(6))
def test_each_cost_model(type_: int, rng: np.random.Generator) -> None:
    """W(P) under queries of one type, term by term as the paper has it."""
    q = all_types(rng)
    keep = np.full(len(q.type), type_, np.int8)
    j = QueryStatistics(UNIT, q._replace(type=keep))
    cell, objects, h, period = Cell(2, 1, 1), 40.0, 0.3, 5.0
    found = workload(prices(j, cell, period), j.lengths, objects, h, h)
    p = j.probabilities(cell)[type_]
    assert 0 < p < 1
    if type_ in (SRQ, SKQ):
        words = sum(share * h**n for n, share in enumerate(j.lengths[int(type_ == SKQ)].tolist()))
        wanted = p * words * objects
    elif type_ == STQ:
        wanted = p * objects
    else:  # E_{P,O}: the mean of T, times objects per time unit
        wanted = p * float((q.weight * q.duration).sum() / q.weight.sum()) * objects / period
    assert found == pytest.approx(wanted)


def test_equation_2_adds_all_types_by_their_shares(rng: np.random.Generator) -> None:
    q = all_types(rng)
    j = QueryStatistics(UNIT, q)
    cell = Cell(1, 0, 0)
    total = 0.0
    for type_ in range(6):
        mine = np.flatnonzero(q.type == type_)
        alone = QueryStatistics(UNIT, taken(q, mine))
        # Lifetimes are those of all continuous queries.
        alone.duration = j.duration
        total += j.share[type_] * workload(prices(alone, cell), j.lengths, 7.0, 0.4, 0.6)
    assert workload(prices(j, cell), j.lengths, 7.0, 0.4, 0.6) == pytest.approx(total)


def taken(q: Queries, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Queries:
    parts = []
    for row in rows.tolist():
        b, w = slice(*q.box_offsets[row : row + 2]), slice(*q.word_offsets[row : row + 2])
        parts.append(
            Queries(
                q.type[row : row + 1],
                q.weight[row : row + 1],
                q.duration[row : row + 1],
                np.array([0, b.stop - b.start]),
                q.boxes[b],
                np.array([0, w.stop - w.start]),
                q.words[w],
                q.conjunction[row : row + 1],
            )
        )
    return joined(parts)


# -- figures 2 and 3 of the paper ----------------------------------------------------------------


def five_objects() -> Workloads:
    """Figure 2: five objects in P and one SRQ; which words they have is ours, the figure is lost.

    The query overlaps the two right quarters, which have three objects; two objects have its word.
    """
    x, y = np.array([0.2, 0.3, 0.7, 0.8, 0.9]), np.array([0.2, 0.8, 0.3, 0.4, 0.8])
    a, b = WORDS[:1], WORDS[1:2]
    offsets, words = ragged([b, a, b, b, a])
    survey = town(np.random.default_rng(0), 1)[1]._replace(
        boxes=np.array([[0.6, 0.1, 0.95, 0.9]]),
        word_offsets=np.array([0, 1]),
        words=a,
        conjunction=np.array([True]),
    )
    return Workloads(
        QueryStatistics(UNIT, queries_of(survey, asks=1.0)),
        Sample(x, y, offsets, words),
        np.ones(5),
    )


def test_partitioning_of_figure_3() -> None:
    """5 visits unpartitioned, 1 by place (of the parts that q overlaps, one has its word), 2 by
    words."""
    workloads = five_objects()
    root = workloads.root()
    assert root.load == pytest.approx(5.0)
    by_place = workloads.spatial_partitioning(root)
    assert by_place is not None
    assert [len(c.rows) for c in by_place] == [1, 2, 1, 1]
    assert [c.load for c in by_place] == pytest.approx([0.0, 0.0, 0.0, 1.0])
    found = workloads.textual_partitioning(root)
    assert found is not None
    by_words, lists = found
    assert sorted(c.load for c in by_words) == pytest.approx([0.0, 0.0, 0.0, 2.0])
    [with_a] = [c for c in by_words if c.load]
    assert with_a.rows.tolist() == [1, 4]
    assert lists.words.tolist() == WORDS[:1].tolist()
    assert int(lists.held[0]) == 1 << by_words.index(with_a)


def test_objects_divide_among_children(rng: np.random.Generator) -> None:
    sample, survey = town(rng, 300)
    j = QueryStatistics(UNIT, queries_of(survey, asks=0.7))
    workloads = Workloads(j, sample, np.full(300, 2.0))
    node = Node(Cell(1, 0, 0), rows=np.flatnonzero((sample.x < 0.5) & (sample.y < 0.5)))
    workloads.measure(node)
    assert node.count == 2.0 * len(node.rows)
    by_place = workloads.spatial_partitioning(node)
    by_words = workloads.textual_partitioning(node)
    assert by_place is not None
    assert by_words is not None
    across, up = units_of(UNIT, sample.x, sample.y)
    for child in by_place:
        left, low, right, high = child.cell.units
        inside = (left <= across) & (across <= right) & (low <= up) & (up <= high)
        assert child.rows.tolist() == np.flatnonzero(inside).tolist()
    m = j.keywords(node.cell)
    for c, child in enumerate(by_words[0]):
        held = np.isin(j.vocabulary, np.concatenate([words_of(sample, r) for r in child.rows]))
        assert child.h_srq == pytest.approx(m[0, held].sum())
        lists = by_words[1]
        on_list = lists.words[lists.held >> c & 1 > 0]
        assert on_list.tolist() == j.vocabulary[held & m.any(axis=0)].tolist()
    rows = np.concatenate([child.rows for child in by_words[0]])
    assert sorted(rows.tolist()) == node.rows.tolist()


def words_of(sample: Sample, row: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    words: np.ndarray[tuple[int], np.dtype[np.uint64]] = sample.words[
        sample.word_offsets[row] : sample.word_offsets[row + 1]
    ]
    return words
