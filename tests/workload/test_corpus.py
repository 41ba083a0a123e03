"""The corpora have the published statistics."""

import dataclasses

import numpy as np
import pytest

from nearcast.workload import CITY, CORPORA, PLACE, RANGE6, TWEETS_UK, TWEETS_US, TWITTER, Corpus
from nearcast.workload.places import grid_cells
from nearcast.workload.ragged import rows_of

ALL = list(CORPORA.values())
by_name = pytest.mark.parametrize("corpus", ALL, ids=[c.name for c in ALL])


def test_published_sizes() -> None:
    assert (PLACE.vocabulary, PLACE.cardinality) == (53_931, 9_356_750)
    assert (TWITTER.vocabulary, TWITTER.cardinality) == (2_225_654, 20_000_000)
    assert (TWEETS_US.cardinality, TWEETS_UK.cardinality) == (280_000_000, 58_000_000)
    assert RANGE6.mean_keywords == 6.0
    assert not RANGE6.planar


@by_name
def test_number_of_keywords(corpus: Corpus, rng: np.random.Generator) -> None:
    objects = corpus.objects(20_000, rng)
    counts = np.diff(objects.offsets)
    assert counts.min() >= 1
    assert counts.mean() == pytest.approx(corpus.mean_keywords, rel=0.02)
    assert (len(objects), objects.offsets[-1]) == (20_000, len(objects.keywords))


@by_name
def test_an_object_holds_no_keyword_twice(corpus: Corpus, rng: np.random.Generator) -> None:
    objects = corpus.objects(5_000, rng)
    pairs = rows_of(objects.offsets) * corpus.vocabulary + objects.keywords
    assert len(np.unique(pairs)) == len(pairs)


@by_name
def test_positions_lie_in_bounds_with_six_decimals(
    corpus: Corpus, rng: np.random.Generator
) -> None:
    objects = corpus.objects(5_000, rng)
    minx, miny, maxx, maxy = corpus.bounds
    assert ((objects.lon >= minx) & (objects.lon <= maxx)).all()
    assert ((objects.lat >= miny) & (objects.lat <= maxy)).all()
    assert (np.round(objects.lon, 6) == objects.lon).all()
    assert (np.round(objects.lat, 6) == objects.lat).all()


@pytest.mark.parametrize("corpus", [PLACE, TWITTER], ids=["place", "twitter"])
def test_the_published_vocabulary_is_reached_by_the_published_number_of_objects(
    corpus: Corpus,
) -> None:
    uses = corpus.cardinality * corpus.mean_keywords
    reached = (1.0 - np.exp(-uses * corpus.frequencies())).sum()
    assert reached / corpus.vocabulary > 0.99


def test_words_of_a_topic_meet_and_keep_their_frequencies(rng: np.random.Generator) -> None:
    usual = dataclasses.replace(RANGE6, locality=0.0)
    corpus = dataclasses.replace(usual, topics=10, topical=0.8)
    made = corpus.objects(20_000, rng)
    long = np.flatnonzero(np.diff(made.offsets) > 1)
    a, b = made.keywords[made.offsets[long]], made.keywords[made.offsets[long] + 1]
    rare = (a >= 10) & (b >= 10)  # the ten most frequent words have no topic
    same = np.mean(a[rare] % 10 == b[rare] % 10)
    assert same == pytest.approx(0.8 * 0.8 + (1 - 0.8 * 0.8) * 0.1, abs=0.03)
    drawn = np.bincount(made.keywords, minlength=corpus.vocabulary) / len(made.keywords)
    blocks = drawn[10:1010].reshape(100, 10).sum(axis=1)
    expected = usual.frequencies()[10:1010].reshape(100, 10).sum(axis=1)
    assert blocks == pytest.approx(expected, rel=0.35)


def test_frequencies_are_those_of_drawn_terms(rng: np.random.Generator) -> None:
    one = np.ones(200_000, dtype=np.int64)
    terms = RANGE6.terms(one, RANGE6.tiles_at_random(len(one), rng), rng)[1]
    drawn = np.bincount(terms, minlength=RANGE6.vocabulary) / len(terms)
    expected = RANGE6.frequencies()
    assert expected.sum() == pytest.approx(1.0)
    assert (np.abs(drawn - expected) < 7 * np.sqrt(expected / len(one)) + 5 / len(one)).all()


@pytest.mark.parametrize(("corpus", "slope"), [(PLACE, -1.1), (TWITTER, -1.0)])
def test_word_frequencies_of_a_region_fall_by_a_power_law(
    corpus: Corpus, slope: float, rng: np.random.Generator
) -> None:
    n = 300_000
    one, tile = np.ones(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    counts = np.sort(np.bincount(corpus.terms(one, tile, rng)[1]))[::-1]
    ranks = np.unique(np.geomspace(3, 300, 40).astype(int))
    fitted = np.polyfit(np.log(ranks + corpus.shift), np.log(counts[ranks - 1]), 1)[0]
    assert fitted == pytest.approx(slope, abs=0.06)


def _overlap(corpus: Corpus, rng: np.random.Generator) -> float:
    """How much the words of two regions have in common: 1 = the same use."""
    n = 50_000
    one = np.ones(n, dtype=np.int64)
    shares = [
        np.bincount(corpus.terms(one, np.full(n, tile), rng)[1], minlength=corpus.vocabulary) / n
        for tile in (0, 1)
    ]
    return float(np.minimum(*shares).sum())


def test_regions_use_words_differently(rng: np.random.Generator) -> None:
    small = dataclasses.replace(RANGE6, vocabulary=2_000)
    alike = dataclasses.replace(small, locality=0.0)
    assert _overlap(alike, rng) > 0.9
    assert _overlap(small, rng) < _overlap(alike, rng) - 0.1
    assert _overlap(dataclasses.replace(small, locality=0.9), rng) < _overlap(small, rng) - 0.1


def test_places_are_clustered(rng: np.random.Generator) -> None:
    objects = PLACE.objects(50_000, rng)
    cells = np.bincount(grid_cells(PLACE.bounds, 100, objects.lon, objects.lat), minlength=10_000)
    top = np.sort(cells)[::-1][:100].sum() / 50_000
    assert top > 0.2  # 1% of the area; 0.01 if places were uniform
    assert (cells > 0).mean() > 0.3  # the background


def test_words_are_unique_lower_case_and_do_not_show_the_rank() -> None:
    for corpus in (PLACE, TWITTER):
        ids = np.arange(0, corpus.vocabulary, 7, dtype=np.int32)
        words = corpus.words(ids).to_pylist()
        assert len(set(words)) == len(words)
        assert all(w.isascii() and w.isalpha() and w.islower() for w in words[:1000])
        order = np.argsort(np.array(words))
        assert abs(np.corrcoef(np.arange(len(order)), order)[0, 1]) < 0.02


def test_words_do_not_depend_on_the_company() -> None:
    together = PLACE.words(np.array([5, 6, 7], dtype=np.int32)).to_pylist()
    assert PLACE.words(np.array([6], dtype=np.int32)).to_pylist() == together[1:2]


def test_the_city_speaks_english() -> None:
    assert {"ramen", "late", "sushi", "concert"} <= set(CITY.names)
    assert len(set(CITY.names)) == CITY.vocabulary
    assert CITY.words(np.array([0], dtype=np.int32)).to_pylist() == [CITY.names[0]]


def test_the_top_share_is_the_most_frequent_share() -> None:
    ids = np.arange(PLACE.vocabulary, dtype=np.int32)
    top = PLACE.frequent(ids)
    frequencies = PLACE.frequencies()
    assert top.sum() == PLACE.vocabulary // 100
    assert frequencies[top].min() >= frequencies[~top].max()


def test_seeds_decide(rng: np.random.Generator) -> None:
    seed = int(rng.integers(1 << 30))
    a, b = (TWITTER.objects(500, np.random.default_rng(seed)) for _ in range(2))
    c = TWITTER.objects(500, np.random.default_rng(seed + 1))
    for field in ("lon", "lat", "offsets", "keywords"):
        assert np.array_equal(getattr(a, field), getattr(b, field))
    assert not np.array_equal(a.lon, c.lon)


def test_no_objects(rng: np.random.Generator) -> None:
    objects = PLACE.objects(0, rng)
    assert (len(objects), len(objects.keywords), objects.offsets.tolist()) == (0, 0, [0])


@pytest.mark.parametrize(
    "change",
    [
        {"bounds": (1.0, 0.0, 0.0, 1.0)},
        {"mean_keywords": 0.5},
        {"names": ("one",)},
        {"locality": 1.5},
    ],
)
def test_nonsense_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="place"):
        dataclasses.replace(PLACE, **change)  # type: ignore[arg-type]
