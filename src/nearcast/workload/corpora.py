"""The named corpora: the papers' data sets by their published statistics, and a small city."""

from __future__ import annotations

from dataclasses import replace

from nearcast.workload.corpus import Corpus

_USA = (-124.8, 24.5, -66.9, 49.4)
_BRITAIN = (-8.2, 49.9, 1.8, 60.9)

# DkM-SKS Table 1. The paper says nothing of the law of the words: exponent and shift were chosen
# by eye to be near a published part of the same source (SimpleGeo's Places) up to rank 1,000;
# beyond, the real frequencies fall faster. Real places are also more concentrated than these.
PLACE = Corpus(
    name="place", vocabulary=53_931, mean_keywords=2.94, bounds=_USA, cardinality=9_356_750,
    seed=101, exponent=1.1, shift=0.0, locality=0.2,
    cluster_exponent=0.9, background=0.05,
)  # fmt: skip

TWITTER = Corpus(
    name="twitter", vocabulary=2_225_654, mean_keywords=5.51, bounds=_USA,
    cardinality=20_000_000, seed=102,
)  # fmt: skip

# PS2Stream VI-A publishes the number of tweets and where they are from; the words are those of
# TWITTER, the same kind of text.
TWEETS_US = Corpus(
    name="tweets-us", vocabulary=2_225_654, mean_keywords=5.51, bounds=_USA,
    cardinality=280_000_000, seed=103,
)  # fmt: skip

# The same with words that depend on each other, as real ones do: which divisions of the lexicon
# keep the words of a tweet together is a question only then.
TWEETS_US_TOPICS = replace(TWEETS_US, name="tweets-us-topics", topics=64, topical=0.8)

TWEETS_UK = Corpus(
    name="tweets-uk", vocabulary=2_225_654, mean_keywords=5.51, bounds=_BRITAIN,
    cardinality=58_000_000, seed=104, clusters=600, spread_m=5_000.0,
)  # fmt: skip

# Skype Table 3: messages, vocabulary, keywords of a message. The paper says nothing more of places
# than where the data is from: geo-tagged tweets (the bounds are those of TWITTER), place names of
# the USA, and reviews of businesses in a few cities, which are what YELP's centres are.
SKYPE_TWEETS = Corpus(
    name="skype-tweets", vocabulary=1_700_000, mean_keywords=9.0, bounds=_USA,
    cardinality=12_700_000, seed=107,
)  # fmt: skip

SKYPE_GN = Corpus(
    name="skype-gn", vocabulary=208_000, mean_keywords=7.0, bounds=_USA, cardinality=2_200_000,
    seed=108, cluster_exponent=0.2, spread_m=30_000.0, background=0.4,
)  # fmt: skip

SKYPE_YELP = Corpus(
    name="skype-yelp", vocabulary=85_000, mean_keywords=37.0, bounds=(-124.8, 24.5, 9.8, 57.0),
    cardinality=1_600_000, seed=109, cluster_exponent=0.8, spread_m=12_000.0, background=0.0,
    tiles=3,
    centres=(
        (-112.07, 33.45), (-115.14, 36.17), (-80.84, 35.23), (-79.99, 40.44), (-73.57, 45.50),
        (-89.40, 43.07), (-3.19, 55.95), (8.40, 49.01), (-88.21, 40.11), (-80.52, 43.46),
    ),
)  # fmt: skip

RANGE6 = Corpus(
    name="range6", vocabulary=50_000, mean_keywords=6.0, bounds=_USA, cardinality=200_000,
    seed=105, clusters=500,
)  # fmt: skip

DISTRICTS: dict[str, tuple[float, float]] = {
    "Shibuya": (139.7016, 35.6580),
    "Shinjuku": (139.7006, 35.6896),
    "Ginza": (139.7649, 35.6717),
    "Ueno": (139.7774, 35.7138),
    "Ikebukuro": (139.7109, 35.7295),
    "Akihabara": (139.7731, 35.6984),
    "Asakusa": (139.7966, 35.7119),
    "Roppongi": (139.7315, 35.6628),
    "Shimokitazawa": (139.6680, 35.6613),
    "Nakano": (139.6657, 35.7056),
    "Shinagawa": (139.7388, 35.6285),
    "Odaiba": (139.7753, 35.6274),
    "Kichijoji": (139.5797, 35.7031),
    "Jimbocho": (139.7578, 35.6959),
}

_CITY_WORDS = (
    "food open coffee late ramen shop sushi bar lunch music beer concert market cheap izakaya "
    "noodles dinner bread tea fresh sale new books vegan cake jazz curry festival soba free night "
    "udon rain yakitori queue fish gallery tempura train art live cafe sake breakfast bakery "
    "matcha vinyl cinema delayed garden exhibition film games anime manga karaoke arcade temple "
    "shrine park blossom museum theatre comedy dance club techno rock opera piano guitar choir "
    "workshop pottery knitting yoga running cycling climbing football baseball sumo tennis "
    "swimming bath sauna hotel hostel view tower bridge river harbour boat fireworks lantern "
    "parade kimono vintage denim shoes hats camera watches toys stationery paper knives tools "
    "flowers plants fruit melon strawberry peach rice miso tofu seaweed eggs salad soup burger "
    "pizza pasta tacos kebab dumplings gyoza okonomiyaki takoyaki mochi dango pancakes icecream "
    "chocolate wine whisky cocktails rooftop terrace quiet crowded spicy sweet seasonal organic "
    "family students kids dogs cats wifi power"
)
_NAMES = tuple(_CITY_WORDS.split())

CITY = Corpus(
    name="city", vocabulary=len(_NAMES), mean_keywords=3.2, bounds=(139.55, 35.58, 139.86, 35.77),
    cardinality=100_000, seed=106, exponent=0.8, cluster_exponent=0.5, spread_m=700.0,
    background=0.15, tiles=3, locality=0.4, names=_NAMES, centres=tuple(DISTRICTS.values()),
)  # fmt: skip

_ALL = (
    PLACE, TWITTER, TWEETS_US, TWEETS_US_TOPICS, TWEETS_UK, SKYPE_TWEETS, SKYPE_GN, SKYPE_YELP,
    RANGE6, CITY,
)  # fmt: skip
CORPORA = {c.name: c for c in _ALL}
