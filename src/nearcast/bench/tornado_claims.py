"""What Tornado claims of its figures (section 5), judged by the points of a run alone."""

from __future__ import annotations

from collections.abc import Iterator

from nearcast.bench.dealt import ENGINE, SUMMARIES, Figure
from nearcast.bench.shapes import by, claim, matching, rising, stable
from nearcast.bench.tornado import GI2, TEXT, TORNADO, UNIFORM
from nearcast.bench.tornado_adapt import ADAPTIVE, STATIC
from nearcast.bench.tornado_routing import A_GRID, R_TREE
from nearcast.bench.tornado_routing import UNIFORM as GRID

OTHERS = (GI2, TEXT, UNIFORM)


def claims(told: list[Figure]) -> Iterator[Figure]:
    """All claims that the points of a run can decide."""
    yield from _alternatives(told)
    yield from _summaries(told)
    yield from _routing(told)
    yield from _workloads(told)
    yield from _adaptivity(told)
    yield from _units(told)


def _alternatives(told: list[Figure]) -> Iterator[Figure]:
    points = matching(told, figure="6(a), (b)")
    if not points:
        return
    rates = by(points, "alternative", "tuples_per_second")
    yield claim("6(a)", "Tornado (FAST) has the highest throughput",
                all(rates[TORNADO] > rates[o] for o in OTHERS), values=rates)  # fmt: skip
    best = max(rates[o] for o in OTHERS)
    yield claim("6(a)", "it has more than twice that of the other alternatives",
                rates[TORNADO] > 2 * best, ratio=round(rates[TORNADO] / best, 2))  # fmt: skip
    for other in OTHERS:
        yield claim("6(a)", f"it has more than {other}", rates[TORNADO] > rates[other],
                    ratio=round(rates[TORNADO] / rates[other], 2))  # fmt: skip
    latency = by(points, "alternative", "latency_ms")
    yield claim("6(b)", "Tornado (FAST) has the least latency",
                all(latency[TORNADO] < latency[o] for o in OTHERS), values=latency)  # fmt: skip
    memory = by(points, "alternative", "worker_mb")
    yield claim("6", "GI² needs more memory than FAST", memory[GI2] > memory[TORNADO],
                values={n: memory[n] for n in (GI2, TORNADO)})  # fmt: skip
    copies = by(points, "alternative", "object_copies")
    yield claim("6", "Text-Rout sends an object to several evaluators", copies[TEXT] > 1.5,
                copies=copies[TEXT])  # fmt: skip


def _summaries(told: list[Figure]) -> Iterator[Figure]:
    points = matching(told, figure="6(c)")
    if not points:
        return
    lines = {
        d: by(matching(points, dispatch=d), "percentile", "tuples_per_second")
        for d in (ENGINE, SUMMARIES)
    }
    sent = by(matching(points, dispatch=SUMMARIES), "percentile", "object_copies")
    low, high = min(sent), max(sent)
    yield claim("6(c)", "with summaries, the rarer the words the higher the throughput",
                lines[SUMMARIES][low] > lines[SUMMARIES][high],
                values=lines[SUMMARIES])  # fmt: skip
    yield claim("6(c)", "spatial-keyword routing beats spatial-only routing for rare words",
                lines[SUMMARIES][low] > lines[ENGINE][low],
                ratio=round(lines[SUMMARIES][low] / lines[ENGINE][low], 2))  # fmt: skip
    ordered = [sent[p] for p in sorted(sent)]
    yield claim("6(c)", "fewer objects are forwarded, the rarer the words",
                ordered == sorted(ordered), sent=sent)  # fmt: skip


def _routing(told: list[Figure]) -> Iterator[Figure]:
    points = matching(told, figure="7(a)")
    if points:
        lines = {s: by(matching(points, structure=s), "partitions", "routing_us")
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
    points = matching(told, figure="7(b)")
    if points:
        for key, text in (("routing_us", "takes less time than"), ("steps", "looks at less than")):
            lines = {s: by(matching(points, structure=s), "side", key)
                     for s in (A_GRID, GRID, R_TREE)}  # fmt: skip
            for other in (GRID, R_TREE):
                yield claim("7(b)", f"A-Grid {text} the {other} for ranges",
                            all(lines[A_GRID][s] < v for s, v in lines[other].items()),
                            values={n: lines[n] for n in (A_GRID, other)})  # fmt: skip


def _workloads(told: list[Figure]) -> Iterator[Figure]:
    sides = by(matching(told, figure="8(a)"), "side", "tuples_per_second")
    if sides:
        yield claim("8(a)", "throughput is stable with the side of queries",
                    stable(list(sides.values()), 1.5), values=sides)  # fmt: skip
    words = by(matching(told, figure="8(b)"), "keywords", "tuples_per_second")
    if words:
        yield claim("8(b)", "throughput grows with the number of keywords",
                    words[max(words)] > words[min(words)], values=words)  # fmt: skip
    queries = by(matching(told, figure="8(c)"), "queries", "tuples_per_second")
    if queries:
        few, many = queries[min(queries)], queries[max(queries)]
        yield claim("8(c)", "eight times the queries reduce the throughput slightly, by less "
                    "than a half", many > 0.5 * few, share=round(many / few, 2),
                    values=queries)  # fmt: skip


def _adaptivity(told: list[Figure]) -> Iterator[Figure]:
    points = matching(told, figure="9(a)")
    if not points:
        return
    lines = {v: by(matching(points, version=v), "scale", "tuples_per_second")
             for v in (STATIC, ADAPTIVE)}  # fmt: skip
    yield claim("9(a)", "adaptive has the higher throughput at every scale",
                all(lines[ADAPTIVE][s] > v for s, v in lines[STATIC].items()),
                ratio={s: round(lines[ADAPTIVE][s] / v, 2)
                       for s, v in lines[STATIC].items()})  # fmt: skip
    yield claim("9(a)", "adaptive keeps a stable throughput",
                stable(list(lines[ADAPTIVE].values()), 1.3), values=lines[ADAPTIVE])  # fmt: skip
    static = [v for _, v in sorted(lines[STATIC].items())]
    yield claim("9(a)", "static: the smaller the scale the lower the throughput", rising(static),
                values=lines[STATIC])  # fmt: skip
    sent = [p["numbers_sent"] for p in matching(points, version=ADAPTIVE)]
    yield claim("9(b)", "distributed balancing sends much less than centralised, a tenth at most",
                all(10 * s["distributed"] < s["centralised"] for s in sent),
                most=max(s["distributed"] for s in sent),
                centralised=sent[0]["centralised"])  # fmt: skip


def _units(told: list[Figure]) -> Iterator[Figure]:
    points = matching(told, figure="10")
    if not points:
        return
    rates = by(points, "units", "tuples_per_second")
    yield claim("10", "a single routing unit is the bottleneck", points[0]["units"] == 1
                and points[0]["bound_by"] == "routing units", values=rates)  # fmt: skip
    many = [p["bound_by"] for p in points if p["units"] >= 10]
    yield claim("10", "with ten, evaluators are", set(many) == {"an evaluator"})
