"""Results while slices are searched, against plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.objects.results import found_by, latest, most_held, new_best, offer, worst

SMALL = st.integers(0, 3)


@given(
    k=st.lists(st.integers(0, 6), min_size=1, max_size=3),
    offers=st.lists(st.tuples(SMALL, st.sampled_from([0.0, 1.5, 2.0, np.inf]), st.integers(0, 99))),
)
def test_the_k_least_are_kept(k: list[int], offers: list[tuple[int, float, int]]) -> None:
    best = new_best(np.array(k), 1000)
    offers = [o for o in dict.fromkeys(offers) if o[0] < len(k)]
    for q, key, tie in offers:
        offer(best, q, key, tie, tie * 7, tie * 3)
    found = found_by(best, 1, 0)
    for q, size in enumerate(k):
        own = slice(found.offsets[q], found.offsets[q + 1])
        wanted = sorted((key, tie) for who, key, tie in offers if who == q)[:size]
        assert list(zip(found.value[own], found.rank[own], strict=True)) == wanted
        assert found.handles[own].tolist() == [tie * 7 for _, tie in wanted]
        full = len(wanted) == size
        assert worst(best, q) == ((wanted[-1][0] if size else -np.inf) if full else np.inf)


def test_room_is_for_no_more_objects_than_there_are() -> None:
    assert len(new_best(np.array([10**12, 2]), 5).keys) == 7


@pytest.mark.parametrize("far", [0, 2**61])
@given(
    rows=st.lists(st.tuples(SMALL, SMALL, st.integers(0, 50))), limit=st.lists(SMALL, min_size=4)
)
def test_only_the_latest_are_kept(
    far: int, rows: list[tuple[int, int, int]], limit: list[int]
) -> None:
    rows = list({rank: (q, time - far * (time > 1), rank) for q, time, rank in rows}.values())
    owner, time, rank = np.array(rows, np.int64).reshape(-1, 3).T
    order = latest(owner, time, rank, np.array(limit))
    expected = []
    for q in range(4):
        own = sorted(r for r in rows if r[0] == q)
        expected += own[-limit[q] :] if limit[q] else own
    assert [rows[i] for i in order.tolist()] == expected


@given(
    parts=st.lists(st.tuples(SMALL, st.integers(1, 5), st.integers(1, 4)), max_size=30),
    k=st.lists(SMALL, min_size=4, max_size=4),
)
def test_counts_add_up_and_ties_of_the_last_stay(
    parts: list[tuple[int, int, int]], k: list[int]
) -> None:
    owner, words, counts = np.array(parts, np.int64).reshape(-1, 3).T
    found = most_held(4, owner, words.astype(np.uint64), counts, np.array(k), 0)
    for q in range(4):
        sums: dict[int, int] = {}
        for who, word, count in parts:
            if who == q:
                sums[word] = sums.get(word, 0) + count
        ordered = sorted(sums.items(), key=lambda item: (-item[1], item[0]))
        if k[q] and k[q] < len(ordered):
            ordered = [item for item in ordered if item[1] >= ordered[k[q] - 1][1]]
        own = slice(found.offsets[q], found.offsets[q + 1])
        pairs = zip(found.words[own].tolist(), found.counts[own].tolist(), strict=True)
        assert list(pairs) == ordered
