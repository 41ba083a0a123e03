"""What PS2Stream claims of its figures (section VI), judged by the points of a run alone."""

from __future__ import annotations

from collections.abc import Iterator

from nearcast.bench.dealt import ENGINE, H2, Figure
from nearcast.bench.ps2stream import CHOSEN, HYBRID, KD, METRIC, SPACE, TEXT
from nearcast.bench.shapes import by, claim, matching, rising, stable

POINTS = "6-10"  # the figure of points that figures 6 to 10 are drawn from
NEAR = 0.9  # of the best is as good as the best: runs of one and the same plan differ by so much
LEAST, ENOUGH = 270_000, 10_000_000  # tuples a second on two workers, with so many queries of Q2


def claims(told: list[Figure]) -> Iterator[Figure]:
    """All claims that the points of a run can decide."""
    yield from _baselines(told)
    for dispatch in (H2, ENGINE):
        yield from _hybrid(told, dispatch)
    yield from _memory(told)
    yield from _scaling(told)
    yield from _selecting(told)
    yield from _migrating(told)
    yield from _adjusted(told)
    yield from _target(told)


def _rates(told: list[Figure], group: str, dispatch: str = H2) -> dict[str, int]:
    points = matching(told, figure=POINTS, workload=f"STS-US-{group}", dispatch=dispatch)
    return by(points, "router", "tuples_per_second")


def _best(rates: dict[str, int], names: tuple[str, ...]) -> str:
    return max(names, key=lambda name: rates[name])


def _baselines(told: list[Figure]) -> Iterator[Figure]:
    for group, wins, loses in (("Q1", SPACE, TEXT), ("Q2", TEXT, SPACE)):
        rates = _rates(told, group)
        if not set(TEXT + SPACE) <= set(rates):
            continue
        first, second = _best(rates, wins), _best(rates, loses)
        kind = "space" if wins is SPACE else "text"
        yield claim("6", f"{group}: {kind}-partitioning has the larger throughput",
                    rates[first] > rates[second], ratio=round(rates[first] / rates[second], 2),
                    best={first: rates[first], second: rates[second]})  # fmt: skip
        for name, among in ((METRIC, TEXT), (KD, SPACE)):
            best = rates[_best(rates, among)]
            yield claim("6", f"{group}: {name} is the best of {', '.join(among)}",
                        rates[name] >= NEAR * best, share_of_best=round(rates[name] / best, 2),
                        values={n: rates[n] for n in among})  # fmt: skip


def _hybrid(told: list[Figure], dispatch: str) -> Iterator[Figure]:
    how = "dispatched by H2" if dispatch == H2 else "dispatched as the engine does"
    for group in ("Q1", "Q2", "Q3"):
        rates = _rates(told, group, dispatch)
        if not set(CHOSEN) <= set(rates):
            continue
        others = max(rates[METRIC], rates[KD])
        values = {n: rates[n] for n in CHOSEN}
        yield claim("7", f"{group}, {how}: hybrid has the largest throughput",
                    rates[HYBRID] >= NEAR * others, ratio=round(rates[HYBRID] / others, 2),
                    values=values)  # fmt: skip
        if group == "Q1":
            yield claim("7", f"Q1, {how}: hybrid and kd-tree are much better than metric",
                        min(rates[HYBRID], rates[KD]) > 1.5 * rates[METRIC],
                        ratio=round(min(rates[HYBRID], rates[KD]) / rates[METRIC], 2))  # fmt: skip
        if group == "Q2":
            yield claim("7", f"Q2, {how}: hybrid and metric are better than kd-tree",
                        min(rates[HYBRID], rates[METRIC]) > rates[KD],
                        values=values)  # fmt: skip
        if group == "Q3":
            yield claim("7", f"Q3, {how}: hybrid is better than both by 30%",
                        rates[HYBRID] >= 1.3 * others,
                        ratio=round(rates[HYBRID] / others, 2))  # fmt: skip
        points = matching(told, figure=POINTS, workload=f"STS-US-{group}", dispatch=dispatch)
        latency = by(points, "router", "latency_ms")
        yield claim("8", f"{group}, {how}: hybrid has the least latency",
                    latency[HYBRID] <= min(latency[METRIC], latency[KD]) / NEAR,
                    values={n: latency[n] for n in CHOSEN})  # fmt: skip


def _memory(told: list[Figure]) -> Iterator[Figure]:
    groups = ("Q1", "Q2", "Q3")
    points = {g: matching(told, figure=POINTS, workload=f"STS-US-{g}", dispatch=H2) for g in groups}
    if not all(set(CHOSEN) <= set(by(p, "router", "router")) for p in points.values()):
        return
    dispatchers = {g: by(points[g], "router", "dispatcher_mb") for g in groups}
    workers = {g: by(points[g], "router", "worker_mb") for g in groups}
    values = {g: {n: dispatchers[g][n] for n in CHOSEN} for g in groups}
    yield claim("9", "kd-tree uses the least memory at dispatchers",
                all(d[KD] <= min(d[METRIC], d[HYBRID]) for d in dispatchers.values()),
                values=values)  # fmt: skip
    yield claim("9", "dispatchers use less than 1000 MB",
                all(d[n] < 1000 for d in dispatchers.values() for n in CHOSEN))  # fmt: skip
    most = max(dispatchers[g][HYBRID] for g in groups)
    yield claim("9", "hybrid's dispatchers use most memory for Q2",
                dispatchers["Q2"][HYBRID] >= most)  # fmt: skip
    least = [g for g in groups if workers[g][HYBRID] <= min(workers[g].values()) / NEAR]
    yield claim("10", "hybrid's workers use the least memory in most cases", len(least) >= 2,
                cases=least,
                values={g: {n: workers[g][n] for n in CHOSEN} for g in groups})  # fmt: skip


def _scaling(told: list[Figure]) -> Iterator[Figure]:
    for group, worst in (("Q1", METRIC), ("Q2", KD)):
        points = matching(told, figure="11", workload=f"STS-UK-{group}")
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


def _selecting(told: list[Figure]) -> Iterator[Figure]:
    first = by(matching(told, figure="12"), "selector", "select_ms")
    if first:
        others = max(first[n] for n in ("GR", "SI", "RA"))
        yield claim("12(a)", "DP selects significantly longer than the others",
                    first["DP"] > 2 * others, values=first)  # fmt: skip
        yield claim("12(a)", "RA is the fastest", first["RA"] == min(first.values()),
                    values=first)  # fmt: skip
    for name in ("GR", "SI", "RA"):
        line = by(matching(told, figure="13", selector=name), "queries", "select_ms")
        if len(line) > 1:
            yield claim("13", f"{name}: the time does not change with the number of queries",
                        stable(list(line.values()), 1.5), values=line)  # fmt: skip


def _migrating(told: list[Figure]) -> Iterator[Figure]:
    runs = matching(told, figure="12, 14, 15")
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
        late = {r["selector"]: r["later_than"]["100 ms"] for r in mine}
        yield claim("12(c)" if "DP" in cost else "15",
                    f"{queries:,} queries: with GR the fewest tuples wait 100 ms",
                    late["GR"] <= min(late.values()), values=late)  # fmt: skip
    gr = by([r for r in runs if r["selector"] == "GR" and r["migrations"]], "queries", "cost_mb")
    if len(gr) > 1:
        yield claim("14", "more queries cost more to move",
                    rising([gr[q] for q in sorted(gr)]), values=gr)  # fmt: skip


def _adjusted(told: list[Figure]) -> Iterator[Figure]:
    rates = by(matching(told, figure="16"), "adjusted", "tuples_per_second_with_migrations")
    if len(rates) == 2:
        ratio = round(rates[True] / rates[False], 2)
        yield claim("16", "adjustments raise the throughput", rates[True] > rates[False],
                    ratio=ratio)  # fmt: skip
        yield claim("16", "by 26%", rates[True] >= 1.26 * rates[False], ratio=ratio)


def _target(told: list[Figure]) -> Iterator[Figure]:
    """What nearcast must reach at the paper's size."""
    points = [t for t in matching(told, workload="STS-US-Q2", workers=2) if t["queries"] >= ENOUGH]
    if points:
        best = max(points, key=lambda t: t["tuples_per_second_of_workers"])
        value = best["tuples_per_second_of_workers"]
        yield claim("target", f"{LEAST:,} tuples a second on two bare indexes, 10,000,000 of Q2",
                    value >= LEAST, value=value, router=best["router"],
                    index=best["index"])  # fmt: skip
