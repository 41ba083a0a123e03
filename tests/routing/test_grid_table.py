"""The routing table: the compiled one is the plain one; no match is missed or reported twice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.routing.grid_twins import (
    Log,
    PlainTable,
    check_exact,
    log_of,
    logs,
    near,
    places,
    tables,
)

from nearcast.index.posting import UNIVERSAL
from nearcast.kernels.hashing import word_hash
from nearcast.model.space import Space
from nearcast.routing.grid import survey as sv
from nearcast.routing.grid import table as gt

usual = settings(max_examples=60, deadline=None)


@usual
@given(tables(), logs())
def test_no_match_is_missed_or_told_twice(plain: PlainTable, log: Log) -> None:
    check_exact(plain, log)


@usual
@given(tables())
def test_bytes_are_the_table(plain: PlainTable) -> None:
    table = plain.compiled()
    again = gt.unpack(gt.pack(table))
    for name in gt.GridTable._fields:
        a, b = np.asarray(getattr(table, name)), np.asarray(getattr(again, name))
        assert a.dtype == b.dtype
        assert a.tolist() == b.tolist()


@usual
@given(logs(), st.data())
def test_surveys_hold_what_subscriptions_ask(log: Log, data: st.DataObject) -> None:
    n = len(log.queried)
    ids = np.array(data.draw(st.permutations(range(n))), np.uint64)
    survey = sv.survey_of(log.controls, ids)
    rows = np.array(data.draw(st.lists(st.integers(0, n - 1)) if n else st.just([])), np.int64)
    joined = sv.join([survey, sv.take(survey, rows)])  # copies of the same
    assert joined.id_hash.tolist() == sorted(ids.tolist())
    for i, row in enumerate(np.argsort(ids)):
        boxes = joined.boxes[joined.box_offsets[i] : joined.box_offsets[i + 1]]
        words = joined.words[joined.word_offsets[i] : joined.word_offsets[i + 1]]
        assert [tuple(b) for b in boxes.tolist()] == log.queried[row].boxes
        assert words.tolist() == log.queried[row].words
        assert joined.conjunction[i] == log.queried[row].conjunction
    assert len(sv.join([]).id_hash) == 0


@usual
@given(tables(), st.lists(st.floats(allow_nan=False), min_size=2), st.integers(0, 1))
def test_a_box_touches_the_cells_of_all_its_positions(
    plain: PlainTable, values: list[float], axis: int
) -> None:
    table = plain.compiled()
    find = gt.line_of if axis else gt.column_of
    cuts = [plain.bounds[axis] / 2 + plain.bounds[axis + 2] / 2, *plain.bounds]
    values = sorted(values + [v for cut in cuts for v in near(cut)])
    found = [find(table, v) for v in values]
    assert found == sorted(found)
    assert found == [plain.at(v, axis) for v in values]
    assert 0 <= found[0] <= found[-1] < len(plain.cells)


def test_cells_hold_their_lower_edges() -> None:
    table = PlainTable((0, 0, 4, 4), [[0, 1, 2, 3]] * 4).compiled()
    at = [-1.0, 0.0, 0.5, 1.0, np.nextafter(1, 0), 3.0, 4.0, 9.0, np.inf, -np.inf]
    assert [gt.owner(table, x, 0.0, UNIVERSAL) for x in at] == [0, 0, 0, 1, 0, 3, 3, 3, 3, 0]


def test_bounds_of_a_point_are_one_cell_more_or_less() -> None:
    table = PlainTable((1, 1, 1, 1), [[0, 1], [2, 3]]).compiled()
    assert gt.owner(table, 0.0, 0.0, UNIVERSAL) == 0
    assert gt.owner(table, 1.0, 1.0, UNIVERSAL) == 0
    assert gt.owner(table, 2.0, 2.0, UNIVERSAL) == 3


@given(st.sets(st.integers(0, 2**64 - 1), max_size=300), st.data())
def test_words_are_found_wherever_they_stand(words: set[int], data: st.DataObject) -> None:
    line = np.array(sorted(words), np.uint64)
    for word in [*words, data.draw(st.integers(0, 2**64 - 1)), 0, 2**64 - 1]:
        at = gt.find_word(line, 0, len(line), np.uint64(word))
        assert at == (sorted(words).index(word) if word in words else -1)


def test_crowded_words_are_found() -> None:
    line = np.array([*range(0, 4000, 4), *(2**63 + i for i in range(0, 400, 4))], np.uint64)
    assert [gt.find_word(line, 0, len(line), w) for w in line] == list(range(len(line)))


def test_a_copy_for_another_cell_does_not_report() -> None:
    """`a AND b` is posted under a: a copy at 0 for the left cell, at 1 for the right.

    An object on the right goes to 0 as well, by b."""
    a, b = word_hash("a"), word_hash("b")
    plain = PlainTable((0, 0, 2, 1), [[0, -1]], [{a: 1, b: 0}], [[0, 1]], {a: 1, b: 2})
    query = {"kind": "range", "region": {"bbox": [0, 0, 2, 1]}, "where": "a AND b"}
    log = log_of(
        Space.PLANAR,
        [
            {"op": "subscribe", "id": "s", "time": 0, "query": query},
            {"op": "publish", "id": "o", "time": 1, "at": [1.5, 0.5], "text": "a b"},
        ],
    )
    table = plain.compiled()
    assert places(table, log.controls)[1].tolist() == [0, 1]
    assert gt.route(table, log.objects)[1].tolist() == [0, 1]
    assert gt.owner(table, 1.5, 0.5, np.uint64(a)) == 1
    check_exact(plain, log)


def test_boxes_over_the_antimeridian_touch_both_ends() -> None:
    plain = PlainTable((-180, -90, 180, 90), [[0, 1, 2, 3]])
    query = {"kind": "range", "region": {"bbox": [170, 0, -170, 1]}}
    events = [{"op": "subscribe", "id": "s", "time": 0, "query": query}]
    events += [
        {"op": "publish", "id": f"o{x}", "time": 1, "at": [x, 0.5]} for x in (180, -180, 175, -175)
    ]
    log = log_of(Space.GEOGRAPHIC, events)
    assert places(plain.compiled(), log.controls)[1].tolist() == [0, 3]
    check_exact(plain, log)


@pytest.mark.parametrize("rows", [0, 100])
def test_more_copies_than_rows(rows: int) -> None:
    query = {"kind": "range", "region": {"bbox": [-1e300, -1e300, 1e300, 1e300]}}
    log = log_of(
        Space.PLANAR,
        [{"op": "subscribe", "id": f"s{i}", "time": 0, "query": query} for i in range(rows)],
    )
    plain = PlainTable((0, 0, 1, 1), [[3, 1], [0, 2]])
    found = places(plain.compiled(), log.controls)
    assert found[0].tolist() == [r for r in range(rows) for _ in range(4)]
    assert found[1].tolist() == [0, 1, 2, 3] * rows
    assert gt.route(plain.compiled(), log.objects)[0].tolist() == []
