"""What SSTD claims of its figures (section 7), judged by the points of a run alone.

A claim is held if it holds with every seed. What the paper calls latency is judged twice: by the
time of the slowest worker, and by counted work, the posts that the worker with most of them looked
at: times of small stores are mostly what any ask costs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nearcast.routing.sstd.nearest_merge import OWN, RADII
from nearcast_bench.common.figures import Figure
from nearcast_bench.common.shapes import by, claim, judged, matching, rising, stable
from nearcast_bench.sstd.adjusting import NONE
from nearcast_bench.sstd.asking import NEAREST, RANGE, TERMS
from nearcast_bench.sstd.deals import ENGINE, PS2STREAM, QUADTREE, SSTD, TEXT, TORNADO
from nearcast_bench.sstd.full import BYTES, LOADED, TARGETS
from nearcast_bench.sstd.snapshot import ONE_ROUND, TWO_PHASES
from nearcast_bench.sstd.source import GAU, TW14, UNI

BASELINES = (TORNADO, PS2STREAM, QUADTREE)
TIME, WORK = "latency_ms", "examined_by_one"
_BY = {TIME: "by time", WORK: "by posts looked at by the slowest worker"}
Lines = dict[Any, dict[Any, Any]]  # {line: {x: y}}


def claims(reported: list[Figure]) -> Iterator[Figure]:
    """All claims that the points of a run can decide."""
    for judge in (_data, _range, _nearest, _terms, _standing, _by_parts, _scale, _adjusted,
                  _tuned, _full):  # fmt: skip
        yield from judge(reported)


def _lines(points: list[Figure], key: str, x: str, y: str) -> Lines:
    return {name: by(matching(points, **{key: name}), x, y)
            for name in dict.fromkeys(p[key] for p in points)}  # fmt: skip


def _least(lines: Lines, name: str, others: tuple[str, ...]) -> bool:
    return all(lines[name][x] < lines[o][x] for o in others for x in lines[name])


def _ratio(lines: Lines, name: str, others: tuple[str, ...], x: Any) -> float:
    """How many times the least of the others is that of a line."""
    return round(float(min(lines[o][x] for o in others) / max(lines[name][x], 1e-9)), 2)


def _data(reported: list[Figure]) -> Iterator[Figure]:
    points = matching(reported, figure="7(a)")
    for y in (TIME, WORK) if points else ():

        def lines(p: list[Figure], y: str = y) -> Lines:
            return _lines(p, "data", "area", y)

        yield judged("7(a)", f"the latency of Gau is the largest, {_BY[y]}", points,
                      lambda p: _least({k: {x: -v for x, v in line.items()}
                                        for k, line in lines(p).items()}, GAU, (TW14, UNI)),
                      lines)  # fmt: skip
        yield judged("7(a)", f"that of Uni is the smallest in most cases, {_BY[y]}", points,
                      lambda p: 2 * sum(lines(p)[UNI][x] < lines(p)[TW14][x]
                                        for x in lines(p)[UNI]) > len(lines(p)[UNI]),
                      lines)  # fmt: skip
        yield judged("7(a)", f"it grows with the area on all data, {_BY[y]}", points,
                      lambda p: all(rising([v for _, v in sorted(line.items())])
                                    for line in lines(p).values()), lines)  # fmt: skip
    points = matching(reported, figure="7(b)")
    if points:

        def rates(p: list[Figure]) -> dict[str, float]:
            return by(p, "data", "tuples_per_second")

        yield judged("7(b)", "Gau has the smallest throughput, Uni the largest", points,
                      lambda p: rates(p)[GAU] < rates(p)[TW14] < rates(p)[UNI], rates)  # fmt: skip


def _systems(reported: list[Figure], figure: str, kind: str, x: str) -> Iterator[Figure]:
    """SSTD against the others, by time and by work."""
    points = matching(reported, figure=figure, kind=kind)
    points = [p for p in points if p.get("way", TWO_PHASES) == TWO_PHASES]
    for y in (TIME, WORK) if points else ():

        def lines(p: list[Figure], y: str = y) -> Lines:
            return _lines(p, "router", x, y)

        yield judged(figure, f"SSTD has the smallest latency of the systems, {_BY[y]}", points,
                      lambda p: _least(lines(p), SSTD, BASELINES), lines)  # fmt: skip


def _faster(points: list[Figure], area: float, least: float, y: str) -> Figure:
    def ratio(p: list[Figure]) -> float:
        return _ratio(_lines(p, "router", "area", y), SSTD, (TORNADO, PS2STREAM), area)

    text = f"at {area:.4%} SSTD is at least {least} times as fast as Tornado and PS2Stream"
    return judged("8(a)", f"{text}, {_BY[y]}", points, lambda p: ratio(p) >= least, ratio)


def _slowest(points: list[Figure], y: str) -> Figure:
    def lines(p: list[Figure]) -> Lines:
        return _lines(p, "router", "area", y)

    def holds(p: list[Figure]) -> bool:
        found = lines(p)
        return all(found[TEXT][x] > v for o in (SSTD, *BASELINES) for x, v in found[o].items())

    return judged("8(a)", f"Text is the slowest, {_BY[y]}", points, holds, lines)


def _range(reported: list[Figure]) -> Iterator[Figure]:
    yield from _systems(reported, "8(a)", RANGE, "area")
    points = matching(reported, figure="8(a)")
    if points:

        def visited(p: list[Figure]) -> Lines:
            return _lines(p, "router", "area", "workers_visited")

        low, high = min(p["area"] for p in points), max(p["area"] for p in points)
        for area, least in ((low, 2), (high, 4)):
            for y in (TIME, WORK):
                yield _faster(points, area, least, y)
        yield judged("8(a)", "an ask visits fewer workers by SSTD than by each baseline at every "
                      "area", points, lambda p: _least(visited(p), SSTD, BASELINES),
                      visited)  # fmt: skip
        yield judged("8(a)", "an ask by place visits fewer workers than all of them at 0.01%, "
                      "which is what the engine asks", points,
                      lambda p: visited(p)[SSTD][1e-4] < visited(p)[ENGINE][1e-4],
                      visited)  # fmt: skip
        for y in (TIME, WORK):
            yield _slowest(points, y)
        yield judged("8(a)", "Text visits the same workers whatever the area", points,
                      lambda p: len(set(visited(p)[TEXT].values())) == 1, visited)  # fmt: skip
    yield from _systems(reported, "8(b)", RANGE, "keywords")
    points = matching(reported, figure="8(b)")
    for y in (TIME, WORK) if points else ():

        def lines(p: list[Figure], y: str = y) -> Lines:
            return _lines(p, "router", "keywords", y)

        yield judged("8(b)", f"with more keywords latency falls, {_BY[y]}", points,
                      lambda p: rising([-v for _, v in sorted(lines(p)[SSTD].items())]),
                      lambda p: lines(p)[SSTD])  # fmt: skip
        yield judged("8(b)", f"Text is at least 4 times slower than the others, {_BY[y]}", points,
                      lambda p: all(lines(p)[TEXT][x] >= 4 * lines(p)[o][x]
                                    for o in (SSTD, *BASELINES) for x in lines(p)[o]),
                      lines)  # fmt: skip
    if points:
        yield judged("8(b)", "the latency of SSTD is always below 10 ms", points,
                      lambda p: all(v < 10 for v in _lines(p, "router", "keywords", TIME)
                                    [SSTD].values()),
                      lambda p: _lines(p, "router", "keywords", TIME)[SSTD])  # fmt: skip


def _nearest(reported: list[Figure]) -> Iterator[Figure]:
    yield from _systems(reported, "9(a)", NEAREST, "k")
    yield from _systems(reported, "9(b)", NEAREST, "keywords")
    points = matching(reported, figure="9(a)", router=SSTD)
    phased = matching(points, way=TWO_PHASES)
    if phased:

        def ks(p: list[Figure]) -> dict[int, float]:
            return by(p, "k", TIME)

        yield judged("9(a)", "k has no obvious effect: the slowest is within 1.25 of the fastest",
                      phased, lambda p: stable(list(ks(p).values()), 1.25), ks)  # fmt: skip
    more = matching(reported, figure="9(b)", router=SSTD, way=TWO_PHASES)
    for y in (TIME, WORK) if more else ():

        def words(p: list[Figure], y: str = y) -> dict[int, float]:
            return by(p, "keywords", y)

        yield judged("9(b)", f"with more keywords latency grows, {_BY[y]}", more,
                      lambda p: rising([v for _, v in sorted(words(p).items())]),
                      words)  # fmt: skip
    for key, text in (("workers_visited", "ask fewer workers"), ("examined", "look at fewer posts"),
                      ("work_ms", "take less time of all workers together"),
                      (TIME, "have the smaller latency")):  # fmt: skip
        if matching(points, way=ONE_ROUND):

            def ways(p: list[Figure], key: str = key) -> Lines:
                return _lines(p, "way", "k", key)

            yield judged("6.2", f"(not the paper's) two phases {text} than one round", points,
                          lambda p: _least(ways(p), TWO_PHASES, (ONE_ROUND,)), ways)  # fmt: skip


def _terms(reported: list[Figure]) -> Iterator[Figure]:
    yield from _systems(reported, "10(a)", TERMS, "area")
    yield from _systems(reported, "10(b)", TERMS, "k")
    points = matching(reported, figure="10(b)", router=SSTD)
    if points:

        def ks(p: list[Figure]) -> dict[int, float]:
            return by(p, "k", TIME)

        yield judged("10(b)", "k has no obvious effect: the slowest is within 1.25 of the fastest",
                      points, lambda p: stable(list(ks(p).values()), 1.25), ks)  # fmt: skip


def _larger(figure: str, points: list[Figure], x: str, other: str) -> Figure:
    def ratios(p: list[Figure]) -> dict[float, float]:
        rates = _lines(p, "router", x, "tuples_per_second")
        return {v: round(rates[SSTD][v] / rates[other][v], 2) for v in rates[SSTD]}

    text = f"SSTD has a larger throughput than {other} at every point"
    return judged(figure, text, points, lambda p: min(ratios(p).values()) > 1, ratios)


def _standing(reported: list[Figure]) -> Iterator[Figure]:
    for figure, x in (("11(a)", "area"), ("11(b)", "keywords"), ("13(b)", "queries")):
        points = matching(reported, figure=figure)
        if not points:
            continue

        def rates(p: list[Figure], x: str = x) -> Lines:
            return _lines(p, "router", x, "tuples_per_second")

        for other in BASELINES:
            yield _larger(figure, points, x, other)
        if figure == "11(a)":
            yield judged(figure, "it outperforms Tornado by 15% at least at every point", points,
                          lambda p: all(rates(p)[SSTD][v] >= 1.15 * rates(p)[TORNADO][v]
                                        for v in rates(p)[SSTD]),
                          lambda p: {v: round(rates(p)[SSTD][v] / rates(p)[TORNADO][v], 2)
                                     for v in rates(p)[SSTD]})  # fmt: skip
        if figure == "13(b)":
            yield judged(figure, "8 times the queries cost SSTD less than half of its throughput",
                          points, lambda p: 2 * min(rates(p)[SSTD].values())
                          > rates(p)[SSTD][min(rates(p)[SSTD])],
                          lambda p: rates(p)[SSTD])  # fmt: skip
    points = matching(reported, figure="workers", router=SSTD)
    if points:

        def scaled(p: list[Figure]) -> dict[int, float]:
            return by(p, "workers", "tuples_per_second")

        yield judged("workers", "(not the paper's) with more workers throughput grows", points,
                      lambda p: rising([v for _, v in sorted(scaled(p).items())]),
                      scaled)  # fmt: skip


def _by_parts(reported: list[Figure]) -> Iterator[Figure]:
    points = matching(reported, figure="12(a)")
    if not points:
        return
    least = min(p["posts_a_round"] for p in matching(points, way=RADII))
    early = matching(points, way=RADII, posts_a_round=least)

    def rates(p: list[Figure]) -> dict[int, float]:
        return by(p, "keywords", "posts_per_second")

    yield judged("12(a)", "the throughput of CKQs grows with their keywords",
                  matching(points, way=OWN),
                  lambda p: rising([v for _, v in sorted(rates(p).items())]), rates)  # fmt: skip
    both = [*early, *matching(points, way=OWN)]

    def sent(p: list[Figure]) -> Lines:
        return _lines(p, "way", "keywords", "messages_per_change")

    yield judged("6.3", f"(not the paper's) with radii sent after {least} posts, fewer messages "
                  "pass, radii included, than if each worker keeps its own k best", both,
                  lambda p: _least(sent(p), RADII, (OWN,)), sent)  # fmt: skip
    many = max(p["posts_a_round"] for p in matching(points, way=RADII))
    late = [*matching(points, way=RADII, posts_a_round=many), *matching(points, way=OWN)]
    yield judged("6.3", f"(not the paper's) with radii sent after {many} posts only, it is the "
                  "other way round", late, lambda p: _least(sent(p), OWN, (RADII,)),
                  sent)  # fmt: skip


def _scale(reported: list[Figure]) -> Iterator[Figure]:
    points = matching(reported, figure="13(a)")
    for y in (TIME, WORK) if points else ():

        def lines(p: list[Figure], y: str = y) -> Lines:
            return _lines(p, "router", "objects", y)

        def ratios(p: list[Figure]) -> dict[int, float]:
            return {n: _ratio(lines(p), SSTD, BASELINES, n) for n in lines(p)[SSTD]}

        yield judged("13(a)", f"SSTD is at least 3 times as fast as each baseline, {_BY[y]}",
                      points, lambda p: min(ratios(p).values()) >= 3, ratios)  # fmt: skip
        yield judged("13(a)", f"the disparity grows with the posts, {_BY[y]}", points,
                      lambda p: rising([v for _, v in sorted(ratios(p).items())]),
                      ratios)  # fmt: skip


def _improved(figure: str, worst: list[Figure], key: str, text: str, sign: int) -> Iterator[Figure]:
    """What plans do for a value that shall grow (sign 1) or fall."""

    def values(p: list[Figure]) -> dict[str, float]:
        return by(p, "plan", key)

    def gain(p: list[Figure], plan: str) -> float:
        """How many times better than without an adjustment."""
        found = values(p)
        return float((found[plan] / max(found[NONE], 1e-9)) ** sign)

    alone = ("PM", "FM", "FG")
    yield judged(figure, f"PM, FM and FG each improve {text} at the largest imbalance", worst,
                  lambda p: all(gain(p, n) > 1 for n in alone), values)  # fmt: skip
    if key in ("tuples_per_second", "slowest_load_per_object"):
        yield judged(figure, f"FG has the best {text}, then FM, then PM", worst,
                      lambda p: rising([gain(p, n) for n in alone]), values)  # fmt: skip
        yield judged(figure, f"(issue 15) PM+FM+FG improves {text} 1.8 times or more", worst,
                      lambda p: gain(p, "PM+FM+FG") >= 1.8,
                      lambda p: round(gain(p, "PM+FM+FG"), 2))  # fmt: skip


def _adjusted(reported: list[Figure]) -> Iterator[Figure]:
    for figure in ("14", "15"):
        points = matching(reported, figure=figure)
        if not points:
            continue
        most = max(p["inserted"] for p in points)
        worst = matching(points, inserted=most)
        for key, text, sign in (
            ("tuples_per_second", "throughput", 1),
            ("slowest_load_per_object", "the counted load of the slowest worker", -1),
            ("latency_ms", "the latency of asks", -1),
            ("examined", "the posts that asks look at", -1),
        ):
            yield from _improved(figure, worst, key, text, sign)
        for key, text in (("moved_queries", "moves most queries"), ("adjust_ms", "takes longest")):

            def cost(p: list[Figure], key: str = key) -> dict[str, float]:
                return by(p, "plan", key)

            yield judged(figure, f"FG {text} of PM, FM and FG", worst,
                          lambda p: cost(p)["FG"] > max(cost(p)["PM"], cost(p)["FM"]),
                          cost)  # fmt: skip


def _tuned(reported: list[Figure]) -> Iterator[Figure]:
    points = matching(reported, figure="7.7 theta")
    if points:

        def rates(p: list[Figure]) -> dict[int, float]:
            return by(p, "theta", "tuples_per_second")

        yield judged("7.7", "θ = 64, which the paper takes, has the largest throughput", points,
                      lambda p: rates(p)[64] == max(rates(p).values()), rates)  # fmt: skip
    points = matching(reported, figure="7.7 delta")
    for kind in dict.fromkeys(p["kind"] for p in points):

        def means(p: list[Figure]) -> dict[int, float]:
            return by(p, "delta_hours", "mean_ms")

        yield judged("7.7", f"Δ = 3 days, which the paper takes, is fastest for {kind} asks over "
                      "3 days", matching(points, kind=kind, hours=72),
                      lambda p: means(p)[72] == min(means(p).values()), means)  # fmt: skip


def _full(reported: list[Figure]) -> Iterator[Figure]:
    points = matching(reported, figure="full")
    for store in dict.fromkeys(p["store"] for p in points):
        own = matching(points, store=store)
        for p in matching(own, kind="load"):
            at = f"{store}, {p['objects']:,} posts:"
            yield claim("full", f"(issue 15) {at} at most {BYTES} bytes a post",
                        p["bytes_per_object"] <= BYTES, values=p["bytes_per_object"])  # fmt: skip
            yield claim("full", f"(issue 15) {at} loaded at {LOADED:,} posts/s of the processor",
                        p["objects_per_second"] >= LOADED, values=p["objects_per_second"],
                        wall_clock=p["objects_per_second_wall"])  # fmt: skip
            for (kind, area), limit in TARGETS.items():
                for q in matching(own, kind=kind, area=area):
                    name = kind if area is None else f"{kind} {area:.4%}"
                    name = f"(issue 15) {at} {name} in {limit:g} ms"
                    for key, text in (
                        ("cpu_median_ms", "of the processor"),
                        ("median_ms", "by the clock"),
                    ):
                        took = {n: q[n] for n in (key, key.replace("median", "p99"))}
                        yield claim("full", f"{name} {text}, median", q[key] <= limit,
                                    values=took)  # fmt: skip
