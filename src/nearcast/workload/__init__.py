"""Seeded workloads with the statistics that the papers publish.

A `Corpus` models a geo-tagged text stream; `corpora` names those of the papers. Subscriptions are
made from a corpus as each paper's experiments make them, and both become event logs as Arrow
batches that are written as JSONL or Parquet. `generate` does all of it by name. Every function
takes its random numbers from the generator it is given; nothing here keeps random state.
"""

from nearcast.workload.calibration import calibrated_sides
from nearcast.workload.corpora import (
    CITY,
    CORPORA,
    PLACE,
    RANGE6,
    SKYPE_GN,
    SKYPE_TWEETS,
    SKYPE_YELP,
    TWEETS_UK,
    TWEETS_US,
    TWITTER,
)
from nearcast.workload.corpus import Corpus, Objects
from nearcast.workload.events import (
    SCHEMA,
    START_MS,
    publish_events,
    subscribe_events,
    unsubscribe_events,
    write_jsonl,
    write_parquet,
)
from nearcast.workload.mix import mix
from nearcast.workload.named import GENERATORS, Generator, generate
from nearcast.workload.subscriptions import (
    AND,
    OR,
    Subscriptions,
    knn_subscriptions,
    q3_regions,
    range_and_subscriptions,
    range_subscriptions,
)
from nearcast.workload.top_queries import top_subscriptions

__all__ = [
    "AND",
    "CITY",
    "CORPORA",
    "GENERATORS",
    "OR",
    "PLACE",
    "RANGE6",
    "SCHEMA",
    "SKYPE_GN",
    "SKYPE_TWEETS",
    "SKYPE_YELP",
    "START_MS",
    "TWEETS_UK",
    "TWEETS_US",
    "TWITTER",
    "Corpus",
    "Generator",
    "Objects",
    "Subscriptions",
    "calibrated_sides",
    "generate",
    "knn_subscriptions",
    "mix",
    "publish_events",
    "q3_regions",
    "range_and_subscriptions",
    "range_subscriptions",
    "subscribe_events",
    "top_subscriptions",
    "unsubscribe_events",
    "write_jsonl",
    "write_parquet",
]
