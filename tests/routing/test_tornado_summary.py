"""Textual summaries of Tornado against plain multisets."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nearcast.routing.tornado.keyword_summary import KeywordSummary

UNIVERSAL = 3
WORDS = [4, 8, 12, 1024, 2**62, 2**64 - 4, UNIVERSAL]


def array(words: list[int]) -> NDArray[np.uint64]:
    return np.array(words, np.uint64)


def ragged(rows: list[list[int]]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    offsets = np.append(0, np.cumsum([len(r) for r in rows])).astype(np.int64)
    return offsets, array([w for r in rows for w in r])


batches = st.lists(st.sampled_from(WORDS), max_size=6)
objects = st.lists(st.lists(st.sampled_from(WORDS[:-1]), max_size=3), max_size=4)


@settings(max_examples=80)
@given(st.data())
def test_words_of_queries_that_came_and_did_not_end(data: st.DataObject) -> None:
    summary, plain = KeywordSummary(), Counter[int]()
    for _ in range(data.draw(st.integers(1, 6))):
        came = data.draw(batches)
        before = {w for w, n in plain.items() if n}
        plain.update(came)
        assert set(summary.add(array(came)).tolist()) == set(came) - before
        running = sorted(plain.elements())
        ended = data.draw(st.permutations(running))[: data.draw(st.integers(0, len(running)))]
        plain.subtract(ended)
        gone = summary.remove(array(ended)).tolist()
        assert sorted(gone) == sorted({w for w in ended if not plain[w]})
        held = {w for w, n in plain.items() if n}
        assert summary.words == len(held)
        assert {w for w in WORDS if w in summary} == held
        some = data.draw(objects)
        wanted = [UNIVERSAL in held or bool(held & set(o)) for o in some]
        assert summary.may_match(*ragged(some)).tolist() == wanted


def test_counters() -> None:
    summary = KeywordSummary()
    summary.add(array([4, 8]))
    summary.may_match(*ragged([[4], [12], [], [12, 8]]))
    assert (summary.words, summary.checked, summary.dropped) == (2, 4, 2)


def test_a_late_report_does_not_take_a_word_that_came_again() -> None:
    summary = KeywordSummary()
    assert summary.add(array([4])).tolist() == [4]
    assert summary.add(array([4])).tolist() == []  # the first ends; the report is under way
    assert summary.remove(array([4])).tolist() == []
    assert 4 in summary
    assert summary.remove(array([4])).tolist() == [4]
    assert 4 not in summary


def test_words_that_go_make_room(rng: np.random.Generator) -> None:
    summary = KeywordSummary()
    for _ in range(50):
        words = rng.integers(1, 2**60, 200).astype(np.uint64) * np.uint64(4)
        summary.add(words)
        assert np.all(summary.may_match(np.arange(201), words))
        summary.remove(words)
    assert summary.words == 0
    assert summary.room <= 2048


def test_small_hashes_do_not_crowd_the_table(rng: np.random.Generator) -> None:
    """Queries are posted under the smallest of equally rare hashes."""
    words = rng.integers(1, 2**62, (20_000, 3)).astype(np.uint64).min(axis=1) * np.uint64(4)
    summary = KeywordSummary()
    summary.add(words)
    used = summary.table[:, 0] != 0
    free = np.flatnonzero(np.append(~used, True))
    longest = int(np.diff(free).max())
    assert longest < 200  # rows that a look-up may have to read


def test_an_end_without_a_beginning_does_nothing() -> None:
    summary = KeywordSummary()
    assert summary.remove(array([4])).tolist() == []
    summary.add(array([4]))
    assert 4 in summary
    assert summary.remove(array([8, 4])).tolist() == [4]
