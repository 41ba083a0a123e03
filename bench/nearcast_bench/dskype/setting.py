"""What `bench dskype` measures: sizes, data, and which figures."""

from __future__ import annotations

from dataclasses import dataclass

from nearcast.model.errors import NearcastError

TWEETS, GN, YELP = "skype-tweets", "skype-gn", "skype-yelp"
DATA = (TWEETS, GN, YELP)
HASH, LOCATION, KEYWORD, PREFIX = "hash", "location", "keyword", "prefix"
MECHANISMS = (HASH, LOCATION, KEYWORD, PREFIX)
SPATIAL_FIRST, KEYWORD_FIRST = "spatial-first", "keyword-first"
TABLE_5 = "table5"
FIGURES = (TABLE_5, "21", "22", "23", "24", "25")


@dataclass(frozen=True, slots=True)
class Setting:
    """Sizes; the paper's are 5,000,000 subscriptions and a window of 1,000,000."""

    subscriptions: int = 50_000
    window: int = 50_000
    messages: int = 5_000  # that are timed
    step: int = 1_000  # messages of a batch
    shards: int = 32  # subscription bolts
    k: int = 20
    data: tuple[str, ...] = DATA
    figures: tuple[str, ...] = FIGURES
    seed: int = 7
    seeds: int = 3
    checked: int = 20  # subscriptions whose results are compared with a scan, in each run
    ks: tuple[int, ...] = (10, 20, 30, 40, 50)
    bolts: tuple[int, ...] = (4, 8, 16, 32)
    times: tuple[int, ...] = (1, 2, 3, 4)  # as many subscriptions (figure 24)
    # Table 5 counts copies alone, so it can have the paper's window.
    placed: int = 20_000  # subscriptions
    full_window: int = 1_000_000


SMALL = Setting(
    2_000,
    2_000,
    400,
    200,
    8,
    checked=5,
    ks=(10, 30, 50),
    bolts=(2, 4, 8),
    times=(1, 2, 4),
    placed=500,
    full_window=5_000,
)


def check(setting: Setting) -> None:
    """Refuse figures that there are not, and a number of shards that hybrids cannot share."""
    for name in setting.figures:
        if name not in FIGURES:
            there = ", ".join(FIGURES)
            raise NearcastError(f"bench dskype: no figure {name!r}; there are {there} (25: and 26)")
    if setting.shards & (setting.shards - 1):
        raise NearcastError(f"bench dskype: {setting.shards} shards; give a power of two")
