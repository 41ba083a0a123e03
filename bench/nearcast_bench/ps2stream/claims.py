"""What PS2Stream claims of its figures (section VI), judged by the points of a run alone."""

from __future__ import annotations

from collections.abc import Iterator

from nearcast.workload.mix import OBJECTS_AN_UPDATE
from nearcast_bench.common.cluster import ENGINE
from nearcast_bench.common.figures import Figure
from nearcast_bench.common.shapes import by, claim, matching, rising, stable
from nearcast_bench.ps2stream.adjust import LATE_MS, READ, STORED
from nearcast_bench.ps2stream.experiment import (
    CHOSEN,
    HYBRID,
    KD,
    METRIC,
    PAPER,
    SPACE,
    TEXT,
    Workload,
    workloads,
)

POINTS = "6-10"  # the figure of points that figures 6 to 10 are drawn from
NEAR = 0.9  # of the best is as good as the best: runs of one and the same plan differ by so much
LEAST, ENOUGH = 270_000, 10_000_000  # tuples per second on two workers, with so many queries of Q2
ALL = (*workloads("us"), *workloads("uk"))


def claims(reported: list[Figure]) -> Iterator[Figure]:
    """All claims that the points of a run can decide."""
    for workload in ALL:
        yield from _baselines(reported, workload)
    for workload in ALL:
        for way in (PAPER, ENGINE):
            yield from _hybrid(reported, workload, way)
    for country in ("us", "uk"):
        yield from _memory(reported, country)
    yield from _scaling(reported)
    yield from _selecting(reported)
    yield from _migrating(reported)
    yield from _adjusted(reported)
    yield from _target(reported)


def _points(reported: list[Figure], workload: Workload, way: str = PAPER) -> dict[str, Figure]:
    """The point of each router."""
    points = matching(reported, figure=POINTS, workload=workload.name, sent_as=way)
    return {p["router"]: p for p in points}


def _values(points: dict[str, Figure], key: str, names: tuple[str, ...]) -> dict[str, float]:
    return {name: points[name][key] for name in names}


def messages(point: Figure) -> float:
    """What dispatchers send to workers for a tuple of the stream: objects and updates."""
    objects = OBJECTS_AN_UPDATE * float(point["object_copies"])
    return round((objects + float(point["query_copies"])) / (OBJECTS_AN_UPDATE + 1), 3)


def _baselines(reported: list[Figure], workload: Workload) -> Iterator[Figure]:
    points = _points(reported, workload)
    if workload.group == "Q3" or not set(TEXT + SPACE) <= set(points):
        return
    rates = _values(points, "tuples_per_second", TEXT + SPACE)
    kind, wins, loses = ("space", SPACE, TEXT) if workload.group == "Q1" else ("text", TEXT, SPACE)
    first, second = (max(names, key=lambda name: rates[name]) for names in (wins, loses))
    yield claim("6", f"{workload.name}: {kind}-partitioning has the larger throughput",
                rates[first] > rates[second], ratio=round(rates[first] / rates[second], 2),
                best={first: rates[first], second: rates[second]})  # fmt: skip
    if kind == "text":
        sent = {name: messages(points[name]) for name in TEXT + SPACE}
        few, many = min(sent[n] for n in TEXT), min(sent[n] for n in SPACE)
        yield claim("6", f"{workload.name}: text-partitioning sends fewer messages to workers",
                    few < many, a_tuple={"text": few, "space": many})  # fmt: skip
    for name, among in ((METRIC, TEXT), (KD, SPACE)):
        best = max(rates[n] for n in among)
        yield claim("6", f"{workload.name}: {name} is the best of {', '.join(among)}",
                    rates[name] >= NEAR * best, share_of_best=round(rates[name] / best, 2),
                    values={n: rates[n] for n in among})  # fmt: skip


def _hybrid(reported: list[Figure], workload: Workload, way: str) -> Iterator[Figure]:
    points = _points(reported, workload, way)
    if not set(CHOSEN) <= set(points):
        return
    name = workload.name + (", sent as the engine does" if way == ENGINE else "")
    rates = _values(points, "tuples_per_second", CHOSEN)
    others = max(rates[METRIC], rates[KD])
    yield claim("7", f"{name}: hybrid has the largest throughput", rates[HYBRID] >= NEAR * others,
                ratio=round(rates[HYBRID] / others, 2), values=rates)  # fmt: skip
    if workload.group == "Q1":
        ratio = min(rates[HYBRID], rates[KD]) / rates[METRIC]
        yield claim("7", f"{name}: hybrid and kd-tree are much better than metric", ratio > 1.5,
                    ratio=round(ratio, 2))  # fmt: skip
    if workload.group == "Q2":
        yield claim("7", f"{name}: hybrid and metric are better than kd-tree",
                    min(rates[HYBRID], rates[METRIC]) > rates[KD])  # fmt: skip
    if workload.group == "Q3":
        yield claim("7", f"{name}: hybrid is better than both by 30%",
                    rates[HYBRID] >= 1.3 * others)  # fmt: skip
    latency = _values(points, "latency_ms", CHOSEN)
    yield claim("8", f"{name}: hybrid has the least latency",
                latency[HYBRID] <= min(latency[METRIC], latency[KD]) / NEAR,
                values=latency)  # fmt: skip


def _memory(reported: list[Figure], country: str) -> Iterator[Figure]:
    points = {w.group: _points(reported, w) for w in workloads(country)[:3]}
    if not all(set(CHOSEN) <= set(p) for p in points.values()):
        return
    name = country.upper()
    dispatchers = {g: _values(p, "dispatcher_mb", CHOSEN) for g, p in points.items()}
    workers = {g: _values(p, "worker_mb", CHOSEN) for g, p in points.items()}
    yield claim("9", f"{name}: kd-tree uses the least memory at dispatchers",
                all(d[KD] <= min(d[METRIC], d[HYBRID]) for d in dispatchers.values()),
                values=dispatchers)  # fmt: skip
    yield claim("9", f"{name}: dispatchers use less than 1000 MB",
                all(d[n] < 1000 for d in dispatchers.values() for n in CHOSEN))  # fmt: skip
    most = max(d[HYBRID] for d in dispatchers.values())
    yield claim("9", f"{name}: hybrid's dispatchers use most memory for Q2",
                dispatchers["Q2"][HYBRID] >= most)  # fmt: skip
    best = [g for g in workers if workers[g][HYBRID] <= min(workers[g].values()) / NEAR]
    yield claim("10", f"{name}: hybrid's workers use the least memory in most cases",
                len(best) >= 2, cases=best, values=workers)  # fmt: skip


def _scaling(reported: list[Figure]) -> Iterator[Figure]:
    for group, worst in (("Q1", METRIC), ("Q2", KD)):
        points = matching(reported, figure="11", workload=f"STS-UK-{group}")
        if not points:
            continue
        lines = {n: by(matching(points, router=n), "workers", "tuples_per_second") for n in CHOSEN}
        workers = sorted(lines[HYBRID])
        best = [w for w in workers
                if lines[HYBRID][w] >= NEAR * max(line[w] for line in lines.values())]  # fmt: skip
        yield claim("11", f"{group}: hybrid has the largest throughput in most cases",
                    2 * len(best) > len(workers), cases=best, values=lines)  # fmt: skip
        yield claim("11", f"{group}: hybrid's throughput grows with the workers",
                    rising([lines[HYBRID][w] for w in workers]))  # fmt: skip
        gain = {n: round(line[workers[-1]] / line[workers[0]], 2) for n, line in lines.items()}
        yield claim("11", f"{group}: {worst} scales worst", gain[worst] == min(gain.values()),
                    gain=gain)  # fmt: skip


def _selecting(reported: list[Figure]) -> Iterator[Figure]:
    first = by(matching(reported, figure="12"), "selector", "select_ms")
    if first:
        others = max(first[n] for n in ("GR", "SI", "RA"))
        yield claim("12(a)", "DP selects significantly longer than the others",
                    first["DP"] > 2 * others, values=first)  # fmt: skip
        yield claim("12(a)", "RA is the fastest", first["RA"] == min(first.values()),
                    values=first)  # fmt: skip
    for name in ("GR", "SI", "RA"):
        line = by(matching(reported, figure="13", selector=name), "queries", "select_ms")
        if len(line) > 1:
            yield claim("13", f"{name}: the time does not change with the number of queries",
                        stable(list(line.values()), 1.5), values=line)  # fmt: skip


def _migrating(reported: list[Figure]) -> Iterator[Figure]:
    runs = matching(reported, figure="12, 14, 15")
    for queries in sorted({r["queries"] for r in runs}):
        mine = [r for r in runs if r["queries"] == queries and r["migrations"]]
        cost, took = by(mine, "selector", "cost_mb"), by(mine, "selector", "migration_ms")
        if not {"GR", "SI", "RA"} <= set(cost):
            continue
        figure = "12(b)" if "DP" in cost else "14"
        rest = min(cost["SI"], cost["RA"])
        mins = [n for n in ("DP", "GR") if n in cost]
        yield claim(figure, f"{queries:,} queries: {' and '.join(mins)} move the least",
                    max(cost[n] for n in mins) < rest, values=cost)  # fmt: skip
        yield claim(figure, f"{queries:,} queries: GR moves 30% less than SI and RA",
                    cost["GR"] <= 0.7 * rest, share=round(cost["GR"] / rest, 2))  # fmt: skip
        yield claim(figure, f"{queries:,} queries: GR takes the least time in doing migration",
                    took["GR"] == min(took.values()), values=took)  # fmt: skip
        yield _waiting(mine, queries, "12(c)" if "DP" in cost else "15")
    gr = by([r for r in runs if r["selector"] == "GR" and r["migrations"]], "queries", "cost_mb")
    if len(gr) > 1:
        yield claim("14", "more queries cost more to move",
                    rising([gr[q] for q in sorted(gr)]), values=gr)  # fmt: skip


def _waiting(runs: list[Figure], queries: int, figure: str) -> Figure:
    """Who waits longer than the longest time that anybody waits; nobody: the claim is empty."""
    for limit in sorted(LATE_MS, reverse=True):
        late = {r["selector"]: r["later_than"][f"{limit:g} ms"] for r in runs}
        if any(late.values()):
            break
    text = f"{queries:,} queries: with GR the fewest tuples wait longer than {limit:g} ms"
    if not any(late.values()):
        return claim(figure, text, False, vacuous=True)
    return claim(figure, text, late["GR"] <= min(late.values()), shares=late)


def _adjusted(reported: list[Figure]) -> Iterator[Figure]:
    points = matching(reported, figure="16")
    for queries in sorted({p["queries"] for p in points}):
        mine = {p["adjusted"]: p for p in points if p["queries"] == queries}
        off = mine.get("not adjusted")
        for name in (READ, STORED):
            if off is None or name not in mine:
                continue
            ratios = {key: round(mine[name][key] / off[key], 3) for key in (
                "tuples_per_second", "tuples_per_second_with_migrations",
                "tuples_per_counted_second")}  # fmt: skip
            seen, counted = ratios["tuples_per_second"], ratios["tuples_per_counted_second"]
            what = f"{queries:,} queries, {name}"
            yield claim("16", f"{what}: adjustments raise the throughput", seen > 1.0, **ratios)
            yield claim("16", f"{what}: by 26%", seen >= 1.26)
            yield claim("16", f"{what}: they raise it by counted work", counted > 1.0,
                        slowest_to_mean={"not adjusted": off["load_slowest_to_mean"],
                                         name: mine[name]["load_slowest_to_mean"]},
                        query_copies={"not adjusted": off["query_copies"],
                                      name: mine[name]["query_copies"]})  # fmt: skip


def _target(reported: list[Figure]) -> Iterator[Figure]:
    """What nearcast must reach at the paper's size."""
    points = [
        t for t in matching(reported, workload="STS-US-Q2", workers=2) if t["queries"] >= ENOUGH
    ]
    if points:
        best = max(points, key=lambda t: t["tuples_per_second_of_workers"])
        value = best["tuples_per_second_of_workers"]
        yield claim("target", f"{LEAST:,} tuples per second on two bare indexes, 10,000,000 of Q2",
                    value >= LEAST, value=value, router=best["router"],
                    index=best["index"])  # fmt: skip
