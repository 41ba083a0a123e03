"""No bound of Skype is too tight: thresholds are the exact scores, which must never be skipped."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.index.tops.igpt.pairs import Pair, pair, place, suffixes, unit

from nearcast.index.tops.igpt import bounds, places
from nearcast.index.tops.igpt.state import down, up
from nearcast.index.tops.places import point
from nearcast.model.space import Space, distance

seeds = st.integers(0, 2**32)
EACH = settings(max_examples=60, deadline=None)


def test_quotients_of_alpha() -> None:
    """5.2.1: kScore* and alpha*; an alpha of 1 stands as one below, with a lower threshold."""
    assert bounds.alpha_star(0.5) == 1.0
    assert bounds.kscore_star(0.6, 0.5) == 1.2
    assert bounds.alpha_star(1.0) == 2.0**20 - 1.0
    assert bounds.kscore_star(0.5, 1.0) == (0.5 - 2.0**-20) * 2.0**20
    assert bounds.kscore_star(-np.inf, 1.0) == -np.inf


def test_example_2_and_example_5_of_the_paper() -> None:
    """lambda_T is 0.28 there, and 0.20 and 0.55 with and without spatial bounds."""
    for threshold, alpha, ssim, right in (
        (0.7, 0.6, 0.98, 0.28), (0.6, 0.5, 1.0, 0.20), (0.6, 0.5, 0.65, 0.55),
    ):  # fmt: skip
        star = bounds.kscore_star(threshold, alpha)
        found = bounds.lambda_t(star, bounds.alpha_star(alpha), ssim)
        assert 0.0 < right - found < 1e-8
    assert bounds.ssim_ub(0.25 + 0.3, 1.6) == 1.0 - 0.55 / 1.6
    assert abs(bounds.tsim_ub(0.3, 0.4, 0.5, 0.3) - 0.12) < 1e-12  # example 6


def test_equations_3_and_4() -> None:
    words, sums, maxima = suffixes({3: 0.5, 1: 0.25, 7: 0.125})
    assert words == [1, 3, 7]
    assert sums.tolist() == [0.875, 0.625, 0.125, 0.0]
    assert maxima.tolist() == [0.5, 0.5, 0.125, 0.0]


@given(seeds)
@EACH
def test_lemma_1_and_lemma_6(seed: int) -> None:
    one = pair(seed)
    for threshold in (one.score, one.score / 2, -np.inf):
        for ssim in (one.near, 1.0):
            assert not bounds.lemma_1(one.cosine, one.needed(threshold, ssim))
            assert not bounds.lemma_6(bounds.lambda_s(threshold, one.alpha), ssim)


@given(seeds)
@EACH
def test_prefixes_hold_the_first_shared_keyword(seed: int) -> None:
    """Theorem 1 (with 1 in place of maxwt(m): lemmas 2 and 3) and lemma 4."""
    one = pair(seed)
    needed, word = one.needed(one.score), one.shared[0]
    (s, s_sums, s_max), (m, m_sums, m_max) = suffixes(one.s), suffixes(one.m)
    i, j = s.index(word), m.index(word)
    assert not bounds.theorem_1(m_max[j], s_sums[i], needed)
    assert not bounds.theorem_1(1.0, s_sums[i], needed)
    assert not bounds.lemma_4(s_max[i], m_sums[j], needed)


@given(seeds)
@EACH
def test_theorem_2_at_every_shared_keyword(seed: int) -> None:
    """What is known and what may come is never less than what is needed."""
    one, partial = pair(seed), 0.0
    needed = one.needed(one.score)
    (s, s_sums, s_max), (m, m_sums, m_max) = suffixes(one.s), suffixes(one.m)
    for word in one.shared:
        i, j = s.index(word), m.index(word)
        partial += one.s[word] * one.m[word]
        unseen = bounds.tsim_ub(s_sums[i + 1], m_max[j + 1], m_sums[j + 1], s_max[i + 1])
        assert not bounds.theorem_2(partial, unseen, needed)


def test_skipped_once_is_skipped_ever_after() -> None:
    """What theorem 1 or lemma 4 skips at a keyword, they skip at later ones: sums lack nothing."""
    skipped = 0
    for seed in range(300):
        one, before = pair(seed), False
        needed = one.needed(one.score + 0.2)
        (s, s_sums, s_max), (m, m_sums, m_max) = suffixes(one.s), suffixes(one.m)
        for word in one.shared:
            i, j = s.index(word), m.index(word)
            now = bounds.theorem_1(m_max[j], s_sums[i], needed)
            now = now or bounds.lemma_4(s_max[i], m_sums[j], needed)
            assert now or not before
            before = before or now
        skipped += before
    assert 30 < skipped < 270


def test_algorithm_1_as_printed_would_lose_this_message() -> None:
    """Passed over with its group at the third keyword, then wrongly skipped by theorem 2."""
    needed = 0.72
    s = unit(dict(enumerate((1.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0))))
    m = unit({0: 1.0, 1: 3.0, 2: 1.0, 3: 1.0, 5: 1.0, 6: 4.0})
    assert sum(w * m.get(word, 0.0) for word, w in s.items()) > needed
    (_, s_sums, s_max), (words, m_sums, m_max) = suffixes(s), suffixes(m)
    assert words[:4] == [0, 1, 2, 3]
    assert bounds.lemma_4(s_max[2], m_sums[2], needed)  # and theorem 3, of a group of its like
    assert not bounds.theorem_1(m_max[3], s_sums[3], needed)  # all that is printed for the next
    partial = sum(s[word] * m[word] for word in (0, 1, 3))
    unseen = bounds.tsim_ub(s_sums[4], m_max[4], m_sums[4], s_max[4])
    assert bounds.theorem_2(partial, unseen, needed)
    assert bounds.lemma_4(s_max[3], m_sums[3], needed)  # which we ask too: it is not looked at


@given(seeds)
@EACH
def test_groups(seed: int) -> None:
    """Theorems 3 and 4 (lemma 5, equations 6, 7): all that is skipped is skipped by lemma 4."""
    rng = Random(seed)
    ones = [pair(rng.randrange(2**32)) for _ in range(12)]
    message, word = ones[0], ones[0].shared[0]
    m, m_sums, _ = suffixes(message.m)
    wtsum, ssim = m_sums[m.index(word)], rng.choice((message.near, 1.0, rng.random()))
    rows: list[tuple[Pair, float, float, float]] = []  # with kScore*, maxwt, exact threshold
    for one in ones:
        if word in one.s:
            threshold = rng.random()
            s, _, s_max = suffixes(one.s)
            star = bounds.kscore_star(threshold, one.alpha)
            rows.append((one, star, s_max[s.index(word)], threshold))
    rows.sort(key=lambda row: row[1])
    kscore = np.array([down(row[1]) for row in rows], np.float32)
    own = np.array([up(row[2]) for row in rows], np.float32)
    alphas = np.array([up(bounds.alpha_star(row[0].alpha)) for row in rows], np.float32)
    maxwt = np.maximum.accumulate(own[::-1])[::-1].copy()
    alpha = np.maximum.accumulate(alphas[::-1])[::-1].copy()
    n = len(rows)

    def skips(at: int) -> bool:
        return bounds.theorem_3(maxwt[at], wtsum, float(kscore[at]), float(alpha[at]), ssim)

    stop = bounds.theorem_4(maxwt, kscore, alpha, 0, n, wtsum, ssim)
    assert [skips(at) for at in range(n)] == [at >= stop for at in range(n)]
    for one, _, heaviest, threshold in rows[stop:]:
        assert bounds.lemma_4(heaviest, wtsum, one.needed(threshold, ssim))


@given(seeds)
@EACH
def test_spatial_bounds(seed: int) -> None:
    """Definitions 6, 7 and 8: of places inside and outside of a cell, in both spaces."""
    rng = Random(seed)
    space = rng.choice(list(Space))
    (a, b), (c, d) = place(rng, space), place(rng, space)
    rect = np.array([min(a, c), min(b, d), max(a, c), max(b, d)])
    box = np.empty(6)
    places.set_box(space.code, rect, box)
    for _ in range(20):
        part, other = rng.choice((0.0, 1.0, rng.random())), rng.choice((0.0, 1.0, rng.random()))
        x = min(rect[0] + part * (rect[2] - rect[0]), rect[2])
        y = min(rect[1] + other * (rect[3] - rect[1]), rect[3])
        m = place(rng, space)
        away = distance(space.code, x, y, *m)
        outer = places.outer_distance(space.code, *point(space.code, *m), box)
        inside = places.inner_distance(space.code, x, y, rect)
        assert outer <= away
        if outer > 0.0:  # it is outside
            assert not (rect[0] <= m[0] <= rect[2] and rect[1] <= m[1] <= rect[3])
            assert inside + outer <= away
            maxdist = rng.choice((away + 1e-9, 3 * away, away / 2 + 1e-9))
            exact = min(max(1.0 - away / maxdist, 0.0), 1.0)
            assert bounds.ssim_ub(inside + outer, maxdist) >= exact


def test_bounds_of_far_cells_are_close() -> None:
    """They are no more than 2 % below a fifth of the globe, and exact in the plane."""
    for space, far, loss in ((Space.PLANAR, 7.0, 1e-9), (Space.GEOGRAPHIC, 60.0, 0.02)):
        rect, box = np.array([0.0, 0.0, 1.0, 1.0]), np.empty(6)
        places.set_box(space.code, rect, box)
        for x in (3.0, far):
            away = distance(space.code, x, 0.5, 1.0, 0.5)
            found = places.outer_distance(space.code, *point(space.code, x, 0.5), box)
            assert away * (1.0 - loss) <= found <= away
        edge = distance(space.code, 0.5, 0.5, 0.5, 1.0)
        assert places.inner_distance(space.code, 0.5, 0.5, rect) > 0.99 * edge
