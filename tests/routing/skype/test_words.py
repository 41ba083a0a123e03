"""Keywords and prefixes: Algorithm 4, the owner of a word, and that a prefix truly covers."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.model.score import blend, cosine
from nearcast.routing.skype.deals import ByHash, ByLocation, Messages
from nearcast.routing.skype.keyword_partition import costs, keyword_partition, variance
from nearcast.routing.skype.loose_prefix import Wanted, in_order, prefix_lengths, prefixes
from nearcast.routing.skype.word_deals import ByKeyword, ByPrefix, KeywordFirst, SpatialFirst
from nearcast.routing.skype.words import Ragged, set_of
from nearcast.wire.words import hash_words

NO = np.empty(0)
rows_of_words = st.lists(st.lists(st.integers(0, 15), max_size=5, unique=True), max_size=20)


def hashed(words: list[str]) -> np.ndarray:
    """Hashes of keywords as objects and subscriptions have them: 64 bits, the top one in use."""
    return hash_words(words)


W = hashed([f"w{n}" for n in range(16)])


def ragged(rows: list[list[int]]) -> Ragged:
    offsets = np.append(0, np.cumsum([len(r) for r in rows])).astype(np.int64)
    return Ragged(offsets, W[[w for r in rows for w in r]] if offsets[-1] else W[:0])


def wanted(rows: list[list[int]], weights: list[list[float]], alpha: float = 0.5) -> Wanted:
    n, words = len(rows), ragged(rows)
    flat = np.array([w for r in weights for w in r], np.float64)
    places = np.arange(n, dtype=np.float64)
    return Wanted(places, places, np.full(n, alpha), *words, flat, np.arange(n).astype(np.uint64))


def messages(rows: list[list[int]]) -> Messages:
    n = len(rows)
    return Messages(np.arange(n, dtype=np.float64), np.zeros(n), *ragged(rows))


def test_hashes_are_large() -> None:
    assert (np.uint64(2**53) < W).sum() > 12


def test_algorithm_4_on_four_words() -> None:
    """Word n is in n + 1 of ten messages; each is in one subscription. The third cut costs less
    than the first, the second least: 2·3/10 to 2·7/10."""
    sample = ragged([[n] for n in range(4) for _ in range(n + 1)])
    subs = ragged([[0], [1], [2], [3]])
    two = keyword_partition(subs, sample, 2)
    assert set_of(two, W[:4], 2).tolist() == [0, 0, 1, 1]
    cost = costs(two, subs, sample, 2)
    assert cost.tolist() == [pytest.approx(0.6), pytest.approx(1.4)]
    assert variance(cost) == pytest.approx(0.16)
    four = keyword_partition(subs, sample, 4)
    assert set_of(four, W[:4], 4).tolist() == [0, 1, 2, 3]


@given(rows_of_words, rows_of_words, st.integers(1, 6))
@settings(max_examples=60)
def test_sets_are_runs_of_the_words_by_frequency_and_every_cut_is_the_best(
    subs: list[list[int]], sample: list[list[int]], number: int
) -> None:
    sets = keyword_partition(ragged(subs), ragged(sample), number)
    order = np.lexsort((sets.words, sets.frequency))
    dealt = sets.set[order]
    assert (np.diff(dealt) >= 0).all()
    assert set(dealt.tolist()) <= set(range(number))
    held = [int((ragged(sample).words == w).sum()) for w in sets.words]
    assert sets.frequency.tolist() == held
    if number != 2 or len(order) < 2:
        return

    def uneven(before: int) -> float:
        """|C(W1) - C(W2)|, counted plainly."""
        first = {int(w) for w in sets.words[order[:before]]}
        cost = []
        for part in (first, {int(w) for w in sets.words} - first):
            n, m = (
                sum(any(int(W[w]) in part for w in row) for row in side) for side in (subs, sample)
            )
            cost.append(n * m / max(len(sample), 1))
        return abs(cost[0] - cost[1])

    best = min(uneven(n) for n in range(1, len(order)))
    assert uneven(int((dealt == 0).sum())) == pytest.approx(best)


def test_a_word_that_is_new_is_dealt_by_its_hash() -> None:
    sets = keyword_partition(ragged([[0], [1]]), ragged([[0], [1]]), 4)
    new = hashed([f"new{n}" for n in range(4000)])
    share = np.bincount(set_of(sets, new, 4), minlength=4)
    assert share.min() > 900
    none = keyword_partition(ragged([]), ragged([]), 4)
    assert np.bincount(set_of(none, new, 4), minlength=4).min() > 900


def test_example_8_of_the_paper() -> None:
    """k-th score 0.8, alpha 0.6: the threshold is 0.5, and the prefix has two words."""
    of = wanted([[0, 1, 2, 3]], [[0.6, 0.5, 0.3, 0.1]], alpha=0.6)
    sets = keyword_partition(of.ragged, ragged([[1], [2], [2], [3], [3], [3]]), 4)
    ordered = in_order(of, sets)
    assert ordered.words.tolist() == W[:4].tolist()  # the rarest first
    assert prefix_lengths(ordered, np.array([0.8])).tolist() == [2]
    assert prefixes(ordered, np.array([0.8])).words.tolist() == W[:2].tolist()
    assert prefix_lengths(ordered, np.array([0.8 - 0.4 * 0.1 - 1e-9])).tolist() == [3]
    for kscore, length in ((-np.inf, 4), (0.0, 4), (0.6, 4), (0.999, 1)):
        found = np.minimum(prefix_lengths(ordered, np.array([kscore])), 4)
        assert found.tolist() == [length]


def test_with_alpha_1_words_say_nothing() -> None:
    of = wanted([[0, 1, 2]], [[0.9, 0.3, 0.3]], alpha=1.0)
    for kscore in (-np.inf, 0.5, 1.0):
        assert np.minimum(prefix_lengths(of, np.array([kscore])), 3).tolist() == [3]


@given(st.integers(0, 10**6))
@settings(max_examples=60)
def test_what_may_beat_the_threshold_shares_a_word_of_the_prefix(seed: int) -> None:
    """Scores as SPEC writes them, at the best place there is; thresholds hit to the bit."""
    rng = Random(seed)
    idf = {w: rng.choice((1.0, 1.0, rng.uniform(0.2, 9))) for w in range(16)}
    alpha = rng.choice((0.0, 0.2, 0.5, 0.9, 1.0))
    own = rng.sample(range(16), rng.randint(1, 6))
    norm = sum(idf[w] ** 2 for w in own) ** 0.5
    of = wanted([own], [[idf[w] / norm for w in own]], alpha)
    sample = [rng.sample(range(16), rng.randint(1, 4)) for _ in range(20)]
    ordered = in_order(of, keyword_partition(of.ragged, ragged(sample), 3))
    scores = []
    for _ in range(30):
        held = rng.sample(range(16), rng.randint(1, 4))
        if set(held) & set(own):
            weights = {w: rng.randint(1, 3) * idf[w] for w in held}
            score = float(blend(alpha, 1.0, cosine({w: idf[w] for w in own}, weights)))
            scores.append((score, held))
    for kscore, _ in scores:
        prefix = set(prefixes(ordered, np.array([kscore])).words.tolist())
        for score, held in scores:
            assert score < kscore or prefix & {int(W[w]) for w in held}


def test_copies_of_table_2() -> None:
    """|s| and |m| bound the copies by keyword, |pref(s)| those by prefix; whole ones have one."""
    subs = [[0, 1, 2], [3], [0, 3], [1, 2]]
    of = wanted(subs, [[0.577] * 3, [1.0], [0.707] * 2, [0.707] * 2])
    sample = messages([[0], [1, 2], [3], [0, 1, 2, 3], [2, 3], [3], [2], [1]])
    none, high = np.full(4, -np.inf), np.full(4, 0.99)
    by_keyword = ByKeyword(4, of, none, sample)
    assert [set_of(by_keyword.sets, W[w : w + 1], 4).tolist() for w in range(4)] == [
        [0], [1], [2], [3],
    ]  # fmt: skip
    rows, shards = by_keyword.place(of, none)
    assert list(zip(rows.tolist(), shards.tolist(), strict=True)) == [
        (n, w) for n, sub in enumerate(subs) for w in sub
    ]
    rows, shards = by_keyword.route(sample)
    assert np.bincount(rows).tolist() == [1, 2, 1, 4, 2, 1, 1, 1]
    by_prefix = ByPrefix(4, of, high, sample)
    rows, _ = by_prefix.place(of, high)
    assert np.bincount(rows).tolist() == [2, 1, 1, 1]  # 1.98 - 1 is less than 2·0.577
    rows, _ = by_prefix.place(of, none)  # fewer than k: all words
    assert len(rows) == len(by_keyword.place(of, none)[0]) or len(rows) <= 8
    for whole in (ByHash(4), ByLocation(4, of, sample)):
        rows, shards = whole.place(of, none)
        assert rows.tolist() == [0, 1, 2, 3]
        rows, shards = whole.route(sample)
        assert np.bincount(rows).tolist() == [4] * 8
        assert np.bincount(shards).tolist() == [8] * 4


@pytest.mark.parametrize("seed", range(3))
def test_where_a_message_may_matter_there_is_a_copy(seed: int) -> None:
    """Whoever shares a word of the prefix with a message meets it on some shard, by each deal."""
    rng = Random(seed)
    subs = [rng.sample(range(16), rng.randint(1, 5)) for _ in range(60)]
    of = wanted(subs, [[len(s) ** -0.5] * len(s) for s in subs], 0.3)
    sample = messages([rng.sample(range(16), rng.randint(0, 5)) for _ in range(80)])
    scores = np.array([rng.choice((-np.inf, 0.5, 0.7, 0.9)) for _ in subs])
    made = (
        ByKeyword(5, of, scores, sample),
        ByPrefix(5, of, scores, sample),
        SpatialFirst(3, 2, of, scores, sample),
        KeywordFirst(2, 3, of, scores, sample),
    )
    copies = {}
    for deal in made:
        placed = set(zip(*(a.tolist() for a in deal.place(of, scores)), strict=True))
        copies[deal.name] = len(placed)
        sent: dict[int, set[int]] = {}
        for row, shard in zip(*(a.tolist() for a in deal.route(sample)), strict=True):
            assert 0 <= shard < deal.shards
            assert shard not in sent.setdefault(row, set())
            sent[row].add(shard)
        ordered, chosen = deal.dealt_by(of, scores)
        for row in range(len(sample.x)):
            held = set(sample.words[sample.offsets[row] : sample.offsets[row + 1]].tolist())
            for s in range(len(subs)):
                first, last = ordered.offsets[s], ordered.offsets[s + 1]
                prefix = set(ordered.words[first:last][chosen[first:last]].tolist())
                if held & prefix:
                    assert any((s, shard) in placed for shard in sent[row])
    assert copies["prefix"] < copies["keyword"]
