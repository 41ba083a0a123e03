"""The figures of PS2Stream, drawn from the points of a run."""

from __future__ import annotations

from pathlib import Path

from nearcast_bench.common.charts import Chart, bar_chart, line_chart, write_charts
from nearcast_bench.common.cluster import ENGINE
from nearcast_bench.common.figures import Figure
from nearcast_bench.common.shapes import by, matching
from nearcast_bench.ps2stream.claims import ALL, POINTS
from nearcast_bench.ps2stream.experiment import CHOSEN, PAPER, SPACE, TEXT

_MB = "memory (MB)"
_RATE = ("tuples_per_second", "throughput (tuples/s)")


def plots(reported: list[Figure], folder: Path) -> list[Path]:
    """Draw what there are points for; the files."""
    made = [
        *_bars(reported),
        *_scaling(reported),
        *_selecting(reported),
        *_days(reported),
        *_q3(reported),
    ]
    return write_charts(((f"ps2stream-{name}", chart) for name, chart in made), folder)


def _bars(reported: list[Figure]) -> list[Chart]:
    made = []
    for name, title, (value, label), routers, way in (
        ("figure-6", "Figure 6: baselines", _RATE, TEXT + SPACE, PAPER),
        ("figure-7", "Figure 7: throughput", _RATE, CHOSEN, PAPER),
        ("figure-7-engine", "Figure 7, sent as the engine does", _RATE, CHOSEN, ENGINE),
        ("figure-8", "Figure 8: latency", ("latency_ms", "latency (ms)"), CHOSEN, PAPER),
        ("figure-9", "Figure 9: memory of a dispatcher", ("dispatcher_mb", _MB), CHOSEN, PAPER),
        ("figure-10", "Figure 10: memory of a worker", ("worker_mb", _MB), CHOSEN, PAPER),
    ):
        points = {
            w.name.removeprefix("STS-").replace("uniform", "u"): by(
                matching(reported, figure=POINTS, workload=w.name, sent_as=way), "router", value
            )
            for w in ALL
        }
        groups = [g for g, line in points.items() if set(routers) <= set(line)]
        if groups:
            series = {r: [points[g][r] for g in groups] for r in routers}
            made.append((name, bar_chart(title, label, groups, series)))
    return made


def _scaling(reported: list[Figure]) -> list[Chart]:
    made = []
    for group in ("Q1", "Q2"):
        points = matching(reported, figure="11", workload=f"STS-UK-{group}")
        lines = {
            r: sorted(by(matching(points, router=r), "workers", "tuples_per_second").items())
            for r in CHOSEN
        }
        if points:
            title = f"Figure 11: scalability, UK-{group}"
            made.append((f"figure-11-{group.lower()}",
                         line_chart(title, "workers", _RATE[1], lines)))  # fmt: skip
    return made


def _selecting(reported: list[Figure]) -> list[Chart]:
    times: dict[str, list[tuple[float, float]]] = {}
    for point in matching(reported, figure="12") + matching(reported, figure="13"):
        times.setdefault(point["selector"], []).append((point["queries"], point["select_ms"]))
    if not times:
        return []
    title = "Figures 12(a), 13: selecting cells"
    return [("figure-13", line_chart(title, "standing queries", "time (ms)", times, log_y=True))]


def _days(reported: list[Figure]) -> list[Chart]:
    """Figures 12(b), 12(c), 14 and 15, (a) and (b): what migrations cost, and who waits."""
    made = []
    runs = [r for r in matching(reported, figure="12, 14, 15") if r["migrations"]]
    rest = sorted({r["queries"] for r in runs if r["selector"] == "DP"})
    sizes = rest + sorted({r["queries"] for r in runs} - set(rest))
    for n, queries in enumerate(sizes):
        mine = [r for r in runs if r["queries"] == queries]
        names = [r["selector"] for r in mine]
        letter = chr(ord("a") + n - len(rest))
        first, second = ("12b", "12c") if queries in rest else (f"14{letter}", f"15{letter}")
        title = f"{queries:,} queries"
        cost = {"size (kB)": [1e3 * r["cost_mb"] for r in mine],
                "time (ms)": [r["migration_ms"] for r in mine]}  # fmt: skip
        name = f"Figure {first}: a migration, {title}"
        chart = bar_chart(name, "size (kB), time (ms)", names, cost, log_y=True)
        made.append((f"figure-{first}", chart))
        waits = {f"> {limit}": [100 * r["later_than"][limit] for r in mine]
                 for limit in mine[0]["later_than"]}  # fmt: skip
        if any(any(line) for line in waits.values()):
            name = f"Figure {second}: tuples that wait, {title}"
            chart = bar_chart(name, "share of tuples (%)", names, waits)
            made.append((f"figure-{second}", chart))
    return made


def _q3(reported: list[Figure]) -> list[Chart]:
    made = []
    points = matching(reported, figure="16")
    for queries in sorted({p["queries"] for p in points}):
        mine = [p for p in points if p["queries"] == queries]
        for name, title, key, label in (
            ("figure-16", "throughput", "by_period", _RATE[1]),
            ("figure-16-loads", "counted loads", "uneven_by_period", "largest load / mean load"),
        ):
            lines = {p["adjusted"]: list(enumerate(p[key], 1)) for p in mine}
            chart = line_chart(f"Figure 16: {title}, {queries:,} queries", "period", label, lines)
            made.append((f"{name}-{queries}", chart))
    return made
