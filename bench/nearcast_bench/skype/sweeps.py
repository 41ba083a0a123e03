"""Skype as a whole against the best baseline and nearcast's own: figures 15 to 20, and table 3."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.skype.load import Load, Shape, measure
from nearcast_bench.skype.reevaluation import shape_of
from nearcast_bench.skype.setting import DATA, Setting
from nearcast_bench.skype.source import source_of

SKYPE, BASELINE, OWN = "igpt/cskyband", "ciq/kmax", "reach/roots"
SYSTEMS = (SKYPE, BASELINE, OWN)
KEYWORDS = (1, 2, 3, 4, 5)
RESULTS = (10, 20, 30, 40, 50)
MULTIPLES = (1, 3, 5)  # of subscriptions and of the window; the paper has 1 to 5 million
TABLE_3 = {"skype-tweets": (1_700_000, 9), "skype-gn": (208_000, 7), "skype-yelp": (85_000, 37)}


def run_sweeps(setting: Setting, say: Say) -> Iterator[Figure]:
    """All figures on whole systems, seed by seed."""
    if setting.has("table 3"):
        yield from _statistics(setting)
    usual = shape_of(setting)
    for n in range(setting.seeds):
        seed = setting.seed + n
        for figure, what, shape in _points(setting, usual):
            if not setting.has(figure):
                continue
            say(f"figure {figure}, {', '.join(f'{k} {v}' for k, v in what.items())}, seed {seed} …")
            load = Load(source_of(setting.data), shape, seed)
            for row in measure(load, SYSTEMS):
                yield {"data": setting.data, "seed": seed, "figure": figure} | what | row


def _points(setting: Setting, usual: Shape) -> Iterator[tuple[str, dict[str, Any], Shape]]:
    """(figure, what differs, workload) of every point."""
    for j in KEYWORDS:
        yield "15", {"keywords": j}, replace(usual, keywords=(j, j))
    for k in RESULTS:
        yield "16", {"k": k}, replace(usual, k=k)
    for n in MULTIPLES:
        yield "17", {}, replace(usual, subscriptions=n * setting.subscriptions)
    for n in MULTIPLES:
        batch = n * setting.batch  # the same part of the window
        yield "18", {}, replace(usual, window=n * setting.window, batch=batch)
    yield "19", {"words": "message"}, usual
    yield "19", {"words": "zipf"}, replace(usual, words="zipf")
    for k in RESULTS[::2]:
        yield "20", {"k": k}, replace(usual, k=k, by_time=True)


def _statistics(setting: Setting) -> Iterator[Figure]:
    """Table 3: what the messages of each data set are like, beside the paper's."""
    for data in DATA:
        source = source_of(data)
        n = 10 * setting.window
        drawn = source.messages(n, np.random.default_rng(setting.seed))
        vocabulary, keywords = TABLE_3[data]
        yield {
            "figure": "table 3", "data": data, "messages": n, "cardinality":
            source.corpus.cardinality, "vocabulary": source.corpus.vocabulary,
            "seen": len(np.unique(drawn.keywords)),
            "keywords": round(len(drawn.keywords) / n, 3),
            "paper_vocabulary": vocabulary, "paper_keywords": keywords,
        }  # fmt: skip
