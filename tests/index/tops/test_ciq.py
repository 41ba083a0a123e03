"""`ciq`: covering cells cover, MinT is low enough, lists are in order."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.index.tops.igpt.pairs import pair
from tests.index.tops.logs import Watched, crowd

from nearcast.index.tops import state as ts
from nearcast.index.tops.ciq import cover as cv
from nearcast.index.tops.ciq import lists as ls
from nearcast.index.tops.ciq.index import Ciq, Covered
from nearcast.index.tops.igpt import bounds
from nearcast.kernels import postings as pl
from nearcast.model.space import Space
from nearcast.testing.drive import plan


@pytest.mark.parametrize("side", [(column, row) for column in range(4) for row in range(4)])
def test_covering_cells_are_disjoint_and_cover_everything(side: tuple[int, int]) -> None:
    """Each of the finest cells is under exactly one of the seven."""
    out = np.empty(cv.COVER, np.int64)
    cv.cover(*side, out)
    assert len(set(out.tolist())) == cv.COVER == 7
    for column in range(cv.SIDE):
        for row in range(cv.SIDE):
            path = {
                cv.cell_number(level, column >> (cv.DEPTH - level), row >> (cv.DEPTH - level))
                for level in range(1, cv.DEPTH + 1)
            }
            assert len(path & set(out.tolist())) == 1
    assert cv.cell_number(cv.DEPTH, *side) in out


@given(st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_min_t_is_never_too_high(seed: int) -> None:
    """A message with exactly the threshold as its score has the similarity of its cell."""
    one = pair(seed)
    globe = one.space is Space.GEOGRAPHIC
    root = np.array([-180.0, -90.0, 180.0, 90.0] if globe else [-3.0, -2.0, 5.0, 6.0])
    boxes = cv.boxes(one.space.code, root)
    column, row = cv.finest(one.space.code, *one.m_at, root)
    kscore, alpha = bounds.kscore_star(one.score, one.alpha), bounds.alpha_star(one.alpha)
    for level in range(1, cv.DEPTH + 1):
        cell = cv.cell_number(level, column >> (cv.DEPTH - level), row >> (cv.DEPTH - level))
        least = cv.min_t(one.space.code, *one.s_at, one.maxdist, kscore, alpha, boxes[cell])
        assert not bounds.lemma_1(one.cosine, least)


def test_lists_are_in_order_with_the_present_min_t() -> None:
    """A subscription is once on each list of its cells and keywords; MinT fits a floor of it."""
    kind, log = crowd(600, 60)
    held = Watched(kind, Space.PLANAR, Ciq)
    for batch in plan(log, kind, Space.PLANAR, cuts=(60, 360, 660, 700)):
        held.step(batch)
    lists, t = cast("Covered", held.index._found_by).lists, held.index._tops.state
    posted = np.zeros(600, np.int64)
    for row in np.flatnonzero(lists.table[:, ls.HELD]).tolist():
        first = ls.first_of(lists, row)
        slots = lists.entries[first : first + ls.count_of(lists, row), ls.SLOT]
        assert np.all(np.diff(slots) > 0)
        posted[slots] += 1
    assert np.all(posted == cv.COVER * t.half[:600, ts.KEYWORDS])
    out = np.empty(cv.COVER, np.int64)
    for slot in range(0, 600, 7):
        x, y, alpha = (float(t.rows[slot, c]) for c in (ts.X, ts.Y, ts.ALPHA))
        kscore = bounds.kscore_star(float(t.rows[slot, ts.FLOOR]), alpha)
        cv.cover(*cv.finest(1, x, y, lists.root), out)
        for cell in out.tolist():
            right = cv.min_t(
                1, x, y, float(t.rows[slot, ts.MAXDIST]), kscore, bounds.alpha_star(alpha),
                lists.boxes[cell],
            )  # fmt: skip
            for j in range(int(t.half[slot, ts.KEYWORDS])):
                word = t.heap[t.half[slot, ts.HEAP] + j]
                row = pl.find(lists.table, np.uint64(ls.key_of(cell, word)))
                first = ls.first_of(lists, row)
                own = lists.entries[first : first + ls.count_of(lists, row), ls.SLOT]
                entry = first + int(np.searchsorted(own, slot))
                assert lists.entries[entry, ls.SLOT] == slot
                assert lists.bounds[entry, ls.MIN_T] <= right
