"""`nearcast bench ps2stream`: the experiments of PS2Stream (section VI) on bare indexes.

Figures 6 to 11 are here: baselines and hybrid partitioning on Q1, Q2 and Q3, as throughput, latency
and memory, and with more workers. `adjust` has figures 12 to 16, `claims` what the paper
claims. Each layout must first report the right matches (`cluster_run`), and all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.model.errors import NearcastError
from nearcast.routing.ps2stream.load import Constants
from nearcast.routing.ps2stream.measure import measure_constants
from nearcast.wire.tables import OBJECTS, join
from nearcast.workload.subscriptions import Group, Rare
from nearcast.workload.tables import unsubscribe_rows
from nearcast_bench.common.cluster import ENGINE, H2, PLACE, Stream
from nearcast_bench.common.cluster_run import Layout, Oracle, agree, measure
from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.common.tweets import ps2stream_tweets, stream_of

HYBRID, METRIC, KD = "ps2stream", "text-metric", "space-kd"
TEXT = ("text-frequency", "text-hypergraph", METRIC)
SPACE = ("space-grid", KD, "space-r")
CHOSEN = (METRIC, KD, HYBRID)  # of figure 7 on
FIGURES = ("6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16")
FEW = 100  # updates of a small step: with the objects between them 600 tuples
PAPER = "paper"  # how objects are sent: as in the paper, or as the engine does
_DELETED = 5_000  # deletions that c4 is measured with
_MEASURED = 100_000  # queries that constants are measured with, at most
_MANY = 200_000  # queries from which on only the most telling is run


class Workload(NamedTuple):
    """Queries and tweets of one country. Q2's keywords may be read in two ways (`Rare`)."""

    country: str
    group: Group
    rare: Rare = "by-frequency"

    @property
    def name(self) -> str:
        """As the paper calls it."""
        name = f"STS-{self.country.upper()}-{self.group}"
        return name if self.rare == "by-frequency" else f"{name}-{self.rare}"


@dataclass(frozen=True, slots=True)
class Setting:
    """One run. μ is `queries` for Q2 and Q3, half of it for Q1, as in the paper."""

    queries: int = 100_000
    changes: int = 20_000  # updates that are timed; five times as many objects
    workers: int = 8
    dispatchers: int = 4
    index: str = "gi2"
    scaling: tuple[int, ...] = (2, 4, 8, 16)  # workers of figure 11
    countries: tuple[str, ...] = ("us", "uk")
    periods: int = 12  # of figures 12 to 16
    passes: int = 3  # of figures 12 to 16; of each step and worker the least time counts
    seed: int = 7
    figures: tuple[str, ...] = FIGURES

    def mu(self, group: str) -> int:
        """μ of a group."""
        return self.queries // 2 if group == "Q1" else self.queries


SMALL = Setting(2_000, 800, scaling=(2, 4), countries=("us",), periods=2, passes=1)
FULL = Setting(10_000_000, 200_000, countries=("us",), periods=24, passes=1)


def check(setting: Setting) -> None:
    """Raise if there is a figure that nobody has."""
    for name in setting.figures:
        if name not in FIGURES:
            raise NearcastError(f"bench: no figure {name!r}; there are {', '.join(FIGURES)}")


def limited(setting: Setting) -> Setting:
    """The setting; with many queries one country, and two passes at most of what takes long."""
    if setting.queries <= _MANY:
        return setting
    return replace(setting, countries=setting.countries[:1], passes=min(setting.passes, 2))


def make_stream(setting: Setting, workload: Workload) -> Stream:
    """The stream of a group: one step to warm up, four that count, small ones at the end."""
    changes, small = max(setting.changes // 4, 1), 11
    country, group, rare = workload
    total = 5 * changes + small * FEW
    tweets = ps2stream_tweets(country, group, setting.mu(group), total, setting.seed, rare)
    return stream_of(tweets, 5, changes, small, FEW)


def constants_for(
    setting: Setting, standing: list[pa.RecordBatch], objects: pa.RecordBatch
) -> Constants:
    """c1 to c4 on this machine, for these queries and objects."""
    queried = standing[0].slice(0, _MEASURED)
    n = min(_DELETED, queried.num_rows // 4)
    rows = np.random.default_rng(setting.seed).choice(queried.num_rows, n, replace=False)
    gone = unsubscribe_rows(queried.take(pa.array(np.sort(rows))), np.full(n, 1))
    return measure_constants(setting.index, queried, gone, objects)


def told_constants(setting: Setting, name: str, queries: int, c: Constants) -> Figure:
    """Constants as a line of results."""
    return {
        "figure": "constants",
        "workload": name,
        "index": setting.index,
        "queries": min(queries, _MEASURED),
        "microseconds": {k: float(f"{v:.4g}") for k, v in c._asdict().items() if k != "deletions"},
    }


def run_constants(setting: Setting, say: Say) -> Iterator[Figure]:
    """Only c1 to c4 of Definition 1, for the groups of queries."""
    for workload in workloads("us"):
        say(f"{workload.name}: measuring c1 to c4 …")
        stream = make_stream(replace(setting, changes=16_000), workload)
        c = constants_for(setting, stream.standing, stream.steps[0].objects)
        yield told_constants(setting, workload.name, setting.mu(workload.group), c)


def workloads(country: str) -> list[Workload]:
    """Q1, Q2 and Q3 of a country; in the USA Q2 and Q3 by the other reading too, and Q2 with tweets
    whose words depend on each other."""
    groups: tuple[Group, ...] = ("Q1", "Q2", "Q3")
    usual = [Workload(country, group) for group in groups]
    if country != "us":
        return usual
    others = [Workload(country, "Q2", "uniform"), Workload(country, "Q3", "uniform")]
    return [*usual, *others, Workload("us-topics", "Q2")]


def run_group(
    setting: Setting, workload: Workload, layouts: list[Layout], what: str, say: Say
) -> Iterator[Figure]:
    """Layouts side by side on the stream of one group, planned with constants measured on it.

    A layout that divides by space sends as in the paper and as the engine at once: by place.
    """
    name = workload.name
    say(f"figure {what}: {name}, making {setting.mu(workload.group):,} queries …")
    stream = make_stream(setting, workload)
    oracle, survey = Oracle(stream), stream.survey()
    objects = join([s.objects for s in stream.steps], OBJECTS)
    constants = constants_for(setting, stream.standing, objects)
    yield told_constants(setting, name, setting.mu(workload.group), constants)
    reported: list[Figure] = []
    for layout in layouts:
        say(f"figure {what}: {name}, {layout.router}, {layout.workers} workers …")
        known = (
            constants._asdict()
            | {"discard": float(layout.dispatch == H2)}
            | dict(layout.parameters)
        )
        layout = replace(layout, parameters=tuple(known.items()))
        reported.append(
            {"figure": what, "workload": name} | measure(layout, stream, survey, oracle)
        )
        agree(reported)
        for way in {H2: (PAPER,), PLACE: (PAPER, ENGINE), ENGINE: (ENGINE,)}[layout.dispatch]:
            yield reported[-1] | {"sent_as": way}


def sends(router: str, way: str) -> str:
    """How the dispatcher of a router sends objects.

    H2 belongs to the grid^t (IV-C). Text-partitioning distributes by the terms of queries, which
    is H2 of one cell; space-partitioning by place alone (VI-B).
    """
    if router in SPACE:
        return PLACE
    return H2 if way == PAPER else ENGINE


def run(setting: Setting, say: Say) -> Iterator[Figure]:
    """Figures 6 to 11."""
    setting = limited(setting)
    wanted = set(setting.figures)

    def layouts(names: tuple[str, ...], way: str, workers: int = 0) -> list[Layout]:
        m = workers or setting.workers
        return [
            Layout(name, setting.index, m, setting.dispatchers, sends(name, way)) for name in names
        ]

    if wanted & {"6", "7", "8", "9", "10"}:
        for workload in (w for country in setting.countries for w in workloads(country)):
            if workload.country not in setting.countries and setting.queries > _MANY:
                continue
            baselines = "6" in wanted and workload.group != "Q3"
            every = (*TEXT, *SPACE, HYBRID) if baselines else CHOSEN
            both = layouts(every, PAPER) + layouts((METRIC, HYBRID), ENGINE)
            yield from run_group(setting, workload, both, "6-10", say)
    if "11" in wanted:
        for workload in workloads("uk")[:2]:
            more = [one for m in setting.scaling for one in layouts(CHOSEN, PAPER, m)]
            reported = run_group(setting, workload, more, "11", say)
            yield from (t for t in reported if t.get("sent_as") != ENGINE)
