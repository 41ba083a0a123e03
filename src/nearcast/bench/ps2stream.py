"""`nearcast bench ps2stream`: the experiments of PS2Stream (section VI) on bare indexes.

Figures 6 to 11 are here: baselines and hybrid partitioning on Q1, Q2 and Q3, as throughput, latency
and memory, and with more workers. `ps2stream_adjust` has figures 12 to 16, `ps2stream_claims` what
the paper claims. Each layout must first tell the right matches (`dealt_run`), and all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
import pyarrow as pa

from nearcast.bench.dealt import ENGINE, H2, Figure, Say, Stream
from nearcast.bench.dealt_run import Layout, Oracle, agree, measure
from nearcast.bench.tweets import ps2stream_tweets, stream_of
from nearcast.model.errors import NearcastError
from nearcast.routing.ps2stream.load import Constants
from nearcast.routing.ps2stream.measure import measure_constants
from nearcast.workload.subscriptions import Group
from nearcast.workload.tables import unsubscribe_rows

HYBRID, METRIC, KD = "ps2stream", "text-metric", "space-kd"
TEXT = ("text-frequency", "text-hypergraph", METRIC)
SPACE = ("space-grid", KD, "space-r")
CHOSEN = (METRIC, KD, HYBRID)  # of figure 7 on
FIGURES = ("6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16")
FEW = 100  # updates of a small step: with the objects between them 600 tuples
_Q1_Q2: tuple[Group, Group] = ("Q1", "Q2")
_DELETED = 5_000  # deletions that c4 is measured with
_MEASURED = 100_000  # queries that constants are measured with, at most


@dataclass(frozen=True, slots=True)
class Setting:
    """One run. μ is `queries` for Q2 and Q3, half of it for Q1, as in the paper."""

    queries: int = 100_000
    changes: int = 20_000  # updates that are timed; five times as many objects
    workers: int = 8
    dispatchers: int = 4
    index: str = "gi2"
    scaling: tuple[int, ...] = (2, 4, 8, 16)  # workers of figure 11
    periods: int = 12  # of figures 12 to 16
    seed: int = 7
    figures: tuple[str, ...] = FIGURES

    def mu(self, group: str) -> int:
        """μ of a group."""
        return self.queries // 2 if group == "Q1" else self.queries


SMALL = Setting(2_000, 800, scaling=(2, 4), periods=2)
FULL = Setting(10_000_000, 200_000, periods=24)


def check(setting: Setting) -> None:
    """Raise if there is a figure that nobody has."""
    for name in setting.figures:
        if name not in FIGURES:
            raise NearcastError(f"bench: no figure {name!r}; there are {', '.join(FIGURES)}")


def make_stream(setting: Setting, country: str, group: Group) -> Stream:
    """The stream of a group: one step to warm up, four that count, small ones at the end."""
    changes, small = max(setting.changes // 4, 1), 11
    tweets = ps2stream_tweets(
        country, group, setting.mu(group), 5 * changes + small * FEW, setting.seed
    )
    return stream_of(tweets, 5, changes, small, FEW)


def constants_for(setting: Setting, stream: Stream) -> Constants:
    """c1 to c4 on this machine, for the stream's queries and objects."""
    asked = stream.standing[0].slice(0, _MEASURED)
    n = min(_DELETED, asked.num_rows // 4)
    rows = np.random.default_rng(setting.seed).choice(asked.num_rows, n, replace=False)
    gone = unsubscribe_rows(asked.take(pa.array(np.sort(rows))), np.full(n, 1))
    return measure_constants(setting.index, asked, gone, stream.steps[0].objects)


def told_constants(setting: Setting, country: str, group: Group, c: Constants) -> Figure:
    """Constants as a line of results."""
    return {
        "figure": "constants",
        "workload": f"STS-{country.upper()}-{group}",
        "index": setting.index,
        "queries": min(setting.mu(group), _MEASURED),
        "microseconds": {k: float(f"{v:.4g}") for k, v in c._asdict().items() if k != "deletions"},
    }


def run_constants(setting: Setting, say: Say) -> Iterator[Figure]:
    """Only c1 to c4 of Definition 1, for the groups of queries."""
    for group in get_args(Group):
        say(f"STS-US-{group}: measuring c1 to c4 …")
        stream = make_stream(replace(setting, changes=16_000), "us", group)
        yield told_constants(setting, "us", group, constants_for(setting, stream))


def run_group(
    setting: Setting, country: str, group: Group, layouts: list[Layout], what: str, say: Say
) -> Iterator[Figure]:
    """Layouts side by side on the stream of one group, planned with constants measured on it."""
    name = f"STS-{country.upper()}-{group}"
    say(f"figure {what}: {name}, making {setting.mu(group):,} queries …")
    stream = make_stream(setting, country, group)
    oracle, survey = Oracle(stream), stream.survey()
    constants = constants_for(setting, stream)
    yield told_constants(setting, country, group, constants)
    told: list[Figure] = []
    for layout in layouts:
        say(f"figure {what}: {name}, {layout.router}, {layout.workers} workers …")
        known = (
            constants._asdict()
            | {"discard": float(layout.dispatch == H2)}
            | dict(layout.parameters)
        )
        layout = replace(layout, parameters=tuple(known.items()))
        told.append({"figure": what, "workload": name} | measure(layout, stream, survey, oracle))
        agree(told)
        yield told[-1]


def run(setting: Setting, say: Say) -> Iterator[Figure]:
    """Figures 6 to 11."""
    wanted = set(setting.figures)

    def layouts(names: tuple[str, ...], ways: tuple[str, ...], workers: int = 0) -> list[Layout]:
        m = workers or setting.workers
        return [
            Layout(name, setting.index, m, setting.dispatchers, way)
            for way in ways
            for name in names
        ]

    if wanted & {"6", "7", "8", "9", "10"}:
        every: tuple[str, ...] = CHOSEN
        if "6" in wanted:
            every = (*TEXT, *SPACE, HYBRID)
        # Once as the paper's dispatchers send, by H2; once as the engine does, without it.
        for group in _Q1_Q2:
            both = layouts(every, (H2,)) + layouts(CHOSEN, (ENGINE,))
            yield from run_group(setting, "us", group, both, "6-10", say)
        yield from run_group(setting, "us", "Q3", layouts(CHOSEN, (H2, ENGINE)), "6-10", say)
    if "11" in wanted:
        for group in _Q1_Q2:
            more = [one for m in setting.scaling for one in layouts(CHOSEN, (H2,), m)]
            yield from run_group(setting, "uk", group, more, "11", say)
