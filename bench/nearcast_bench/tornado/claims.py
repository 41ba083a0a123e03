"""What Tornado claims of its figures (section 5), judged by the points of a run alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from nearcast_bench.common.cluster import ENGINE, SUMMARIES
from nearcast_bench.common.figures import Figure
from nearcast_bench.common.shapes import by, claim, matching, rising, stable
from nearcast_bench.tornado.adapt import ADAPTIVE, STATIC
from nearcast_bench.tornado.experiment import GI2, GI2_64, TEXT, TORNADO, UNIFORM
from nearcast_bench.tornado.routing import A_GRID, R_TREE
from nearcast_bench.tornado.routing import UNIFORM as GRID

OTHERS = (GI2_64, TEXT, UNIFORM)  # the paper's GI² has a fixed grid; `gi2` fits its own


def claims(reported: list[Figure]) -> Iterator[Figure]:
    """All claims that the points of a run can decide."""
    yield from _alternatives(reported)
    yield from _summaries(reported)
    yield from _routing(reported)
    yield from _workloads(reported)
    yield from _adaptivity(reported)
    yield from _units(reported)


def _alternatives(reported: list[Figure]) -> Iterator[Figure]:
    points = matching(reported, figure="6(a), (b)")
    if not points:
        return
    ratios = {o: _ratios(points, "alternative", TORNADO, o) for o in (*OTHERS, GI2)}
    least = min((ratios[o] for o in OTHERS), key=_middle)
    yield claim("6(a)", "Tornado (FAST) has the highest throughput", _middle(least) > 1,
                values=by(points, "alternative", "tuples_per_second"))  # fmt: skip
    yield claim("6(a)", "it has more than twice that of the other alternatives",
                _middle(least) > 2, ratio_by_pass=least)  # fmt: skip
    for other in (*OTHERS, GI2):
        fitted = ", its grid fitted to the queries" if other == GI2 else ""
        yield claim("6(a)", f"it has more than {other}{fitted}", _middle(ratios[other]) > 1,
                    ratio_by_pass=ratios[other])  # fmt: skip
    latency = by(points, "alternative", "latency_ms")
    yield claim("6(b)", "Tornado (FAST) has the least latency",
                all(latency[TORNADO] < latency[o] for o in OTHERS), values=latency)  # fmt: skip
    memory = by(points, "alternative", "worker_mb")
    yield claim("6", "GI² needs more memory than FAST", memory[GI2_64] > memory[TORNADO],
                values={n: memory[n] for n in (GI2_64, GI2, TORNADO)})  # fmt: skip
    copies = by(points, "alternative", "object_copies")
    yield claim("6", "Text-Rout sends an object to several evaluators", copies[TEXT] > 1.5,
                copies=copies[TEXT])  # fmt: skip


def _summaries(reported: list[Figure]) -> Iterator[Figure]:
    points = matching(reported, figure="6(c)")
    if not points:
        return
    rates = by(matching(points, dispatch=SUMMARIES), "percentile", "by_pass")
    sent = by(matching(points, dispatch=SUMMARIES), "percentile", "object_copies")
    low, high = min(sent), max(sent)
    rarer = _by_pass(rates[low], rates[high])
    yield claim("6(c)", "with summaries, the rarer the words the higher the throughput",
                _middle(rarer) > 1, ratio_by_pass=rarer,
                values=by(matching(points, dispatch=SUMMARIES), "percentile",
                          "tuples_per_second"))  # fmt: skip
    both = _ratios(matching(points, percentile=low), "dispatch", SUMMARIES, ENGINE)
    yield claim("6(c)", "spatial-keyword routing beats spatial-only routing for rare words",
                _middle(both) > 1, ratio_by_pass=both)  # fmt: skip
    ordered = [sent[p] for p in sorted(sent)]
    yield claim("6(c)", "fewer objects are forwarded, the rarer the words",
                ordered == sorted(ordered), sent=sent)  # fmt: skip


def _by_pass(a: Sequence[float], b: Sequence[float]) -> list[float]:
    """How many times the second the first is, pass by pass: they were taken in turn."""
    return [round(x / y, 2) for x, y in zip(a, b, strict=True)]


def _ratios(points: list[Figure], key: str, a: str, b: str) -> list[float]:
    rates = by(points, key, "by_pass")
    return _by_pass(rates[a], rates[b])


def _middle(values: Sequence[float]) -> float:
    """What a claim is judged by: the median of the passes."""
    return float(median(values))


def _routing(reported: list[Figure]) -> Iterator[Figure]:
    points = matching(reported, figure="7(a)")
    if points:
        lines = {s: by(matching(points, structure=s), "partitions", "middle_us")
                 for s in (A_GRID, GRID, R_TREE)}  # fmt: skip
        for name in (A_GRID, GRID):
            yield claim("7(a)", f"{name}: the time of a point does not change with partitions",
                        stable(list(lines[name].values()), 2.0), values=lines[name])  # fmt: skip
        tree = [v for _, v in sorted(lines[R_TREE].items())]
        yield claim("7(a)", "R-tree: it grows", rising(tree), values=lines[R_TREE])
        looked = {s: by(matching(points, structure=s), "partitions", "steps")
                  for s in (A_GRID, R_TREE)}  # fmt: skip
        boxes = [v for _, v in sorted(looked[R_TREE].items())]
        yield claim("7(a)", "A-Grid looks at one cell for a point, the R-tree at more and more",
                    set(looked[A_GRID].values()) == {1.0} and rising(boxes),
                    values=looked)  # fmt: skip
    points = matching(reported, figure="7(b)")
    if points:
        for key, text in (("routing_us", "takes less time than"), ("steps", "looks at less than")):
            lines = {s: by(matching(points, structure=s), "side", key)
                     for s in (A_GRID, GRID, R_TREE)}  # fmt: skip
            for other in (GRID, R_TREE):
                yield claim("7(b)", f"A-Grid {text} the {other} for ranges",
                            all(lines[A_GRID][s] < v for s, v in lines[other].items()),
                            values={n: lines[n] for n in (A_GRID, other)})  # fmt: skip


def _workloads(reported: list[Figure]) -> Iterator[Figure]:
    sides = by(matching(reported, figure="8(a)"), "side", "tuples_per_second")
    if sides:
        yield claim("8(a)", "throughput is stable with the side of queries",
                    stable(list(sides.values()), 1.5), values=sides,
                    spread=_spread(matching(reported, figure="8(a)")))  # fmt: skip
    points = matching(reported, figure="8(b)")
    words = by(points, "keywords", "by_pass")
    if words:
        more = _by_pass(words[max(words)], words[min(words)])
        yield claim("8(b)", "throughput grows with the number of keywords", _middle(more) > 1,
                    ratio_by_pass=more,
                    values=by(points, "keywords", "tuples_per_second"))  # fmt: skip
    points = matching(reported, figure="8(c)")
    queries = by(points, "queries", "by_pass")
    if queries:
        share = _by_pass(queries[max(queries)], queries[min(queries)])
        yield claim("8(c)", "eight times the queries reduce the throughput slightly, by less "
                    "than a half", _middle(share) > 0.5, share_by_pass=share,
                    values=by(points, "queries", "tuples_per_second"))  # fmt: skip


def _spread(points: list[Figure]) -> float:
    """The fastest pass over the slowest, at the point where that is most."""
    widest: float = max(max(p["by_pass"]) / min(p["by_pass"]) for p in points)
    return round(widest, 2)


def _adaptivity(reported: list[Figure]) -> Iterator[Figure]:
    points = matching(reported, figure="9(a)")
    if not points:
        return
    for text, key in (("once it has settled", "by_pass"), ("moves included", "overall_by_pass")):
        lines = {v: by(matching(points, version=v), "scale", key) for v in (STATIC, ADAPTIVE)}
        times = {s: _by_pass(lines[ADAPTIVE][s], v) for s, v in lines[STATIC].items()}
        yield claim("9(a)", f"adaptive has the higher throughput at every scale, {text}",
                    all(_middle(t) > 1 for t in times.values()), ratio_by_pass=times)  # fmt: skip
    settled = {v: by(matching(points, version=v), "scale", "tuples_per_second")
               for v in (STATIC, ADAPTIVE)}  # fmt: skip
    yield claim("9(a)", "adaptive keeps a stable throughput",
                stable(list(settled[ADAPTIVE].values()), 1.3), values=settled[ADAPTIVE],
                spread=_spread(matching(points, version=ADAPTIVE)))  # fmt: skip
    static = [v for _, v in sorted(settled[STATIC].items())]
    yield claim("9(a)", "static: the smaller the scale the lower the throughput", rising(static),
                values=settled[STATIC],
                spread=_spread(matching(points, version=STATIC)))  # fmt: skip
    yield claim("9(a)", "(not the paper's) moves have paid for themselves within a second",
                all(_pays_after(points, s) < 1 for s in settled[STATIC]),
                seconds={s: round(_pays_after(points, s), 3) for s in settled[STATIC]})  # fmt: skip
    sent = by(matching(points, version=ADAPTIVE), "scale", "numbers_sent")
    yield claim("9(b)", "distributed balancing sends much less than centralised, a tenth at most",
                all(10 * s["distributed"] < s["centralised"] for s in sent.values()),
                sent=sent)  # fmt: skip


def _pays_after(points: list[Figure], scale: float) -> float:
    """Seconds of the stream until the time that moves took is saved; never: infinity."""
    static, adaptive = (
        matching(points, version=v, scale=scale)[0]["tuples_per_second"] for v in (STATIC, ADAPTIVE)
    )
    saved = 1 - static / adaptive  # of each second, with the tuples of the static version
    moving = matching(points, version=ADAPTIVE, scale=scale)[0]["moving_ms"] / 1e3
    return float(moving / saved) if saved > 0 else float("inf")


def _units(reported: list[Figure]) -> Iterator[Figure]:
    points = matching(reported, figure="10")
    if not points:
        return
    rates = by(points, "units", "tuples_per_second")
    yield claim("10", "a single routing unit is the bottleneck", points[0]["units"] == 1
                and points[0]["bound_by"] == "routing units", values=rates)  # fmt: skip
    many = [p["bound_by"] for p in points if p["units"] >= 10]
    yield claim("10", "with ten, evaluators are", set(many) == {"an evaluator"})
