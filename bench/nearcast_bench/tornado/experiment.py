"""`nearcast bench tornado`: the experiments of Tornado (section 5) on bare indexes.

Figures 6, 8 and 10 are here: processing alternatives, textual summaries, query workloads, routing
units. `routing` has figure 7, `adapt` figure 9, `claims` what the paper claims. Each layout must
first report the right matches (`cluster_run`), and all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nearcast.model.errors import NearcastError
from nearcast.workload.tornado import KEYWORDS, SIDE
from nearcast_bench.common.cluster import ENGINE, SUMMARIES, Step, Stream
from nearcast_bench.common.cluster_run import Layout, Oracle, agree, measure, measure_all
from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.common.gi2_fixed import Gi2Fixed
from nearcast_bench.tornado.stream import pool_size, tornado_stream

FIGURES = ("6", "7", "8", "9", "10")
PARTS = {"6": ("6a", "6c"), "8": ("8a", "8b", "8c")}  # that can be requested alone
TORNADO, GI2, TEXT, UNIFORM = "Tornado (FAST)", "GI²", "Text-Rout", "Uni-Space-Rout"
GI2_64 = "GI² (64×64)"  # the granularity of PS2Stream's experiments
OURS = "Tornado (pyramid)"  # the same routing with nearcast's own index
ALTERNATIVES = {
    TORNADO: ("tornado", "fast"),
    GI2: ("tornado", "gi2"),
    GI2_64: ("tornado", Gi2Fixed.name),
    TEXT: ("tornado-text", "fast"),
    UNIFORM: ("tornado-uniform", "fast"),
    OURS: ("tornado", "pyramid"),
}
PERCENTILES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
# Table 1 of the paper; its default number of queries is 10 million.
SIDES = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.015)
WORDS = (1.0, 2.0, 3.0, 5.0, 7.0)
MULTIPLES = (0.5, 1.0, 2.0, 3.0, 4.0)  # of the default number of queries: 5 to 40 million
UNITS = (1, 3, 5, 7, 10, 12)
GRID = 1000  # cells of the A-Grid along each axis (section 5)
FEW = 600  # objects of a small step


@dataclass(frozen=True, slots=True)
class Setting:
    """One run."""

    queries: int = 100_000
    objects: int = 200_000  # a step; two steps are timed
    evaluators: int = 16
    units: int = 10
    index: str = "fast"
    rounds: int = 12  # of figure 9
    seed: int = 7
    figures: tuple[str, ...] = FIGURES


SMALL = Setting(2_000, 2_000, rounds=4)
FULL = Setting(10_000_000)


def check(setting: Setting) -> None:
    """Raise if there is a figure that nobody has."""
    for name in setting.figures:
        known = [*FIGURES, *(part for parts in PARTS.values() for part in parts)]
        if name not in known:
            raise NearcastError(f"bench: no figure {name!r}; there are {', '.join(known)}")


def asked_for(setting: Setting, part: str) -> bool:
    """Whether a part of a figure is to be run: by its own name, or with the whole figure."""
    return part in setting.figures or part[:-1] in setting.figures


def make_stream(setting: Setting, queries: int = 0, **queried: float) -> Stream:
    """The stream of a data set: a step to warm up, two that count, small ones at the end."""
    tweets = pool_size(setting.queries)  # the same ones for any number of queries
    stream = tornado_stream(
        queries or setting.queries, setting.objects, 4, setting.seed, tweets=tweets, **queried
    )
    last = stream.steps.pop()
    few = min(FEW, last.objects.num_rows // 5)
    stream.small = [
        Step(last.controls, last.at, last.objects.slice(n * few, few)) for n in range(5)
    ]
    return stream


def layout_of(setting: Setting, router: str, index: str, dispatch: str = ENGINE) -> Layout:
    """A layout with the setting's numbers of evaluators and routing units."""
    return Layout(
        router, index, setting.evaluators, setting.units, dispatch, (("side", float(GRID)),)
    )


def _alternatives(setting: Setting, say: Say) -> Iterator[Figure]:
    say("figure 6(a), (b) …")
    stream = make_stream(setting)
    oracle, survey = Oracle(stream), stream.survey()
    if not oracle.right:
        raise NearcastError("bench: the check has nothing to check")
    layouts = [layout_of(setting, router, index) for router, index in ALTERNATIVES.values()]
    reported = measure_all(layouts, stream, survey, oracle)
    agree(reported)
    for name, got in zip(ALTERNATIVES, reported, strict=True):
        yield {"figure": "6(a), (b)", "alternative": name} | got


def _summaries(setting: Setting, say: Say) -> Iterator[Figure]:
    for percentile in PERCENTILES:
        say(f"figure 6(c): words of the {percentile:.0%} least frequent …")
        stream = make_stream(setting, percentile=percentile)
        oracle, survey = Oracle(stream), stream.survey()
        layouts = [
            layout_of(setting, "tornado", setting.index, dispatch)
            for dispatch in (ENGINE, SUMMARIES)
        ]
        reported = measure_all(layouts, stream, survey, oracle)
        agree(reported)
        yield from ({"figure": "6(c)", "percentile": percentile} | got for got in reported)


def _workloads(setting: Setting, say: Say) -> Iterator[Figure]:
    """Figure 8: side lengths, keywords, queries."""
    points: list[tuple[str, str, float, int, dict[str, float]]] = [
        *(("8(a)", "side", s, setting.queries, {"side": s}) for s in SIDES),
        *(("8(b)", "keywords", k, setting.queries, {"keywords": k}) for k in WORDS),
        *(("8(c)", "multiple", n, int(n * setting.queries), {}) for n in MULTIPLES),
    ]
    for figure, axis, value, queries, queried in points:
        if not asked_for(setting, figure.replace("(", "").replace(")", "")):
            continue
        say(f"figure {figure}: {axis} {value:g} …")
        stream = make_stream(setting, queries, **queried)
        survey = stream.survey()
        layout = layout_of(setting, "tornado", setting.index)
        got = measure(layout, stream, survey, Oracle(stream))
        usual = {"side": SIDE, "keywords": KEYWORDS}
        yield {"figure": figure, **usual, axis: value} | got


def _units(setting: Setting, say: Say) -> Iterator[Figure]:
    """Figure 10: the same run, its routing shared among more and more units."""
    say("figure 10: routing units …")
    stream = make_stream(setting)
    layout = layout_of(setting, "tornado", setting.index)
    got = measure(layout, stream, stream.survey(), Oracle(stream))
    workers = 1e6 / got["tuples_per_second_of_workers"]
    for units in UNITS:
        slowest = max(workers, got["dispatch_us_per_tuple"] / units)
        yield {
            "figure": "10",
            "units": units,
            "queries": got["queries"],
            "workers": got["workers"],
            "index": setting.index,
            "dispatch_us_per_tuple": got["dispatch_us_per_tuple"],
            "tuples_per_second": round(1e6 / slowest),
            "bound_by": "an evaluator" if slowest == workers else "routing units",
        }


def run(setting: Setting, say: Say) -> Iterator[Figure]:
    """Figures 6, 8 and 10."""
    if asked_for(setting, "6a"):
        yield from _alternatives(setting, say)
    if asked_for(setting, "6c"):
        yield from _summaries(setting, say)
    yield from _workloads(setting, say)
    if "10" in setting.figures:
        yield from _units(setting, say)
