"""Subscriptions follow the papers' recipes."""

import dataclasses

import numpy as np
import pytest

from nearcast.workload import (
    AND,
    OR,
    PLACE,
    RANGE6,
    TWEETS_UK,
    Corpus,
    Objects,
    Subscriptions,
    calibrated_sides,
    knn_subscriptions,
    q3_regions,
    range_and_subscriptions,
    range_subscriptions,
)
from nearcast.workload.places import METRES_A_DEGREE, grid_cells
from nearcast.workload.ragged import Flags, Floats
from nearcast.workload.subscriptions import Group, at_most


def sides_m(subscriptions: Subscriptions) -> tuple[Floats, Floats]:
    assert subscriptions.bbox is not None
    west, south, east, north = subscriptions.bbox.T
    narrowing = np.cos(np.radians(subscriptions.lat))
    return (east - west) * narrowing * METRES_A_DEGREE, (north - south) * METRES_A_DEGREE


def test_knn_recipe(rng: np.random.Generator) -> None:
    subs = knn_subscriptions(PLACE, 20_000, 10, rng)
    assert subs.k is not None
    assert subs.bbox is None
    assert np.bincount(subs.k)[1:].min() > 0.8 * 2_000
    assert (subs.k.min(), subs.k.max()) == (1, 10)
    counts = np.diff(subs.offsets)
    assert (counts.min(), counts.max()) == (1, 5)
    assert (subs.operator == OR).all()


def test_at_most_five_are_chosen_uniformly(rng: np.random.Generator) -> None:
    rows = 4_000
    offsets = np.arange(rows + 1, dtype=np.int64) * 8
    values = np.tile(np.arange(8, dtype=np.int32), rows)
    kept, chosen = at_most(5, offsets, values, rng)
    assert (np.diff(kept) == 5).all()
    assert (np.diff(chosen.reshape(rows, 5)) > 0).all()  # distinct, in their order
    shares = np.bincount(chosen, minlength=8) / rows
    assert shares == pytest.approx(5 / 8, abs=0.06)


def test_short_rows_keep_all_they_have(rng: np.random.Generator) -> None:
    offsets = np.array([0, 2, 9, 10], dtype=np.int64)
    values = np.arange(10, dtype=np.int32)
    kept, chosen = at_most(5, offsets, values, rng)
    assert np.diff(kept).tolist() == [2, 5, 1]
    assert chosen[:2].tolist() == [0, 1]
    assert chosen[-1] == 9


def test_q2_by_the_other_reading(rng: np.random.Generator) -> None:
    subs = range_subscriptions(PLACE, 5_000, rng, "Q2", rare="uniform")
    assert not PLACE.frequent(subs.keywords).any()
    others = PLACE.infrequent()
    assert len(others) == PLACE.vocabulary - PLACE.vocabulary // 100
    # Uniform: as many of the first half of the infrequent words as of the second.
    assert np.mean(subs.keywords < others[len(others) // 2]) == pytest.approx(0.5, abs=0.03)
    rows = np.repeat(np.arange(len(subs)), np.diff(subs.offsets))
    assert len(set(zip(rows.tolist(), subs.keywords.tolist(), strict=True))) == len(rows)
    both = range_subscriptions(PLACE, 2_000, rng, "Q3", rare="uniform")
    assert PLACE.frequent(both.keywords).any()  # regions of kind Q1


@pytest.mark.parametrize(("group", "longest_m"), [("Q1", 50_000.0), ("Q2", 100_000.0)])
def test_range_recipe(group: Group, longest_m: float, rng: np.random.Generator) -> None:
    subs = range_subscriptions(TWEETS_UK, 10_000, rng, group)
    for side in sides_m(subs):
        assert side.min() > 999.0
        assert side.max() < longest_m + 1.0
        assert side.mean() == pytest.approx((1_000.0 + longest_m) / 2, rel=0.03)
    wide, tall = sides_m(subs)
    assert wide == pytest.approx(tall, abs=0.5)  # squares, but for the rounding to 6 decimals
    counts = np.bincount(np.diff(subs.offsets), minlength=4)
    assert counts[0] == 0
    assert counts[1:].min() > 3_000
    assert (subs.operator == AND).mean() == pytest.approx(0.5, abs=0.03)


def infrequent(corpus: Corpus, subs: Subscriptions) -> Flags:
    rare = ~corpus.frequent(subs.keywords)
    return np.add.reduceat(rare, subs.offsets[:-1], dtype=np.int64) > 0


def test_q2_holds_an_infrequent_keyword_and_q1_need_not(rng: np.random.Generator) -> None:
    assert infrequent(PLACE, range_subscriptions(PLACE, 5_000, rng, "Q2")).all()
    assert infrequent(PLACE, range_subscriptions(PLACE, 5_000, rng, "Q1")).mean() < 0.8


def test_q1_keywords_are_as_frequent_as_in_objects(rng: np.random.Generator) -> None:
    subs = range_subscriptions(PLACE, 20_000, rng, "Q1")
    queried = PLACE.frequent(subs.keywords).mean()
    used = PLACE.frequent(PLACE.objects(20_000, rng).keywords).mean()
    assert queried == pytest.approx(used, abs=0.02)


def test_q3_regions_are_of_one_kind_each(rng: np.random.Generator) -> None:
    subs = range_subscriptions(PLACE, 20_000, rng, "Q3")
    flags = q3_regions(PLACE)
    assert flags.shape == (100,)
    assert 20 < flags.sum() < 80
    is_q2 = flags[grid_cells(PLACE.bounds, 10, subs.lon, subs.lat)]
    assert infrequent(PLACE, subs)[is_q2].all()
    tall = sides_m(subs)[1]
    assert tall[~is_q2].max() < 50_001.0
    assert tall[is_q2].max() > 90_000.0


def test_q3_regions_may_be_given(rng: np.random.Generator) -> None:
    subs = range_subscriptions(PLACE, 2_000, rng, "Q3", q2_regions=np.ones(100, dtype=np.bool_))
    assert infrequent(PLACE, subs).all()


def test_centres_are_centres(rng: np.random.Generator) -> None:
    subs = range_and_subscriptions(RANGE6, 1_000, rng, (500.0, 5_000.0))
    assert subs.bbox is not None
    assert (subs.operator == AND).all()
    assert (subs.bbox[:, 0] + subs.bbox[:, 2]) / 2 == pytest.approx(subs.lon, abs=1e-6)
    assert (subs.bbox[:, 1] + subs.bbox[:, 3]) / 2 == pytest.approx(subs.lat, abs=1e-6)
    assert 499.0 < sides_m(subs)[1].min() < sides_m(subs)[1].max() < 5_001.0


def test_either_a_box_or_a_k() -> None:
    one = np.zeros(1)
    offsets = np.zeros(2, dtype=np.int64)
    with pytest.raises(ValueError, match="either"):
        Subscriptions(one, one, offsets, np.zeros(0, np.int32), np.zeros(1, np.uint8))


def count_matches(corpus: Corpus, subs: Subscriptions, objects: Objects) -> int:
    """Every subscription against every object."""
    assert subs.bbox is not None
    held = np.zeros((len(objects), corpus.vocabulary), dtype=np.bool_)
    held[np.repeat(np.arange(len(objects)), np.diff(objects.offsets)), objects.keywords] = True
    total = 0
    for i, (west, south, east, north) in enumerate(subs.bbox):
        inside = (objects.lon >= west) & (objects.lon <= east)
        inside &= (objects.lat >= south) & (objects.lat <= north)
        words = subs.keywords[subs.offsets[i] : subs.offsets[i + 1]]
        total += int((inside & held[:, words].all(axis=1)).sum())
    return total


@pytest.mark.parametrize("wanted", [1.0, 3.0])
def test_calibrated_sides_give_the_wanted_matches(wanted: float, rng: np.random.Generator) -> None:
    corpus = dataclasses.replace(RANGE6, vocabulary=400, clusters=50)
    low, high = calibrated_sides(corpus, 4_000, rng, matches_per_object=wanted)
    assert high == pytest.approx(10 * low)
    subs = range_and_subscriptions(corpus, 4_000, rng, (low, high))
    found = count_matches(corpus, subs, corpus.objects(3_000, rng))
    assert found / 3_000 == pytest.approx(wanted, rel=0.25)


def test_an_impossible_number_of_matches_is_refused(rng: np.random.Generator) -> None:
    with pytest.raises(ValueError, match="use more subscriptions"):
        calibrated_sides(RANGE6, 10, rng, matches_per_object=5.0)
    with pytest.raises(ValueError, match="positive"):
        calibrated_sides(RANGE6, 10, rng, matches_per_object=0.0)
