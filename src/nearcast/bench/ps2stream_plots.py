"""The figures of PS2Stream, drawn from the points of a run."""

from __future__ import annotations

from pathlib import Path

from nearcast.bench.chart import bar_chart, line_chart
from nearcast.bench.dealt import ENGINE, Figure
from nearcast.bench.ps2stream import CHOSEN, PAPER, SPACE, TEXT
from nearcast.bench.ps2stream_claims import ALL, POINTS
from nearcast.bench.shapes import by, matching

Drawn = list[tuple[str, str]]  # name of the file, SVG


def plots(told: list[Figure], folder: Path) -> list[Path]:
    """Draw what there are points for; the files."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for name, svg in (*_bars(told), *_scaling(told), *_selecting(told), *_days(told), *_q3(told)):
        path = folder / f"ps2stream-{name}.svg"
        path.write_text(svg)
        drawn.append(path)
    return drawn


def _bars(told: list[Figure]) -> Drawn:
    made = []
    rate = ("tuples_per_second", "tuples/s")
    for name, title, (value, label), routers, way in (
        ("figure-6", "Figure 6: baselines", rate, TEXT + SPACE, PAPER),
        ("figure-7", "Figure 7: throughput", rate, CHOSEN, PAPER),
        ("figure-7-engine", "Figure 7, sent as the engine does", rate, CHOSEN, ENGINE),
        ("figure-8", "Figure 8: latency", ("latency_ms", "ms"), CHOSEN, PAPER),
        ("figure-9", "Figure 9: dispatchers", ("dispatcher_mb", "MB"), CHOSEN, PAPER),
        ("figure-10", "Figure 10: workers", ("worker_mb", "MB"), CHOSEN, PAPER),
    ):
        points = {
            w.name.removeprefix("STS-").replace("uniform", "u"): by(
                matching(told, figure=POINTS, workload=w.name, sent_as=way), "router", value
            )
            for w in ALL
        }
        groups = [g for g, line in points.items() if set(routers) <= set(line)]
        if groups:
            series = {r: [points[g][r] for g in groups] for r in routers}
            made.append((name, bar_chart(title, label, groups, series)))
    return made


def _scaling(told: list[Figure]) -> Drawn:
    made = []
    for group in ("Q1", "Q2"):
        points = matching(told, figure="11", workload=f"STS-UK-{group}")
        lines = {
            r: sorted(by(matching(points, router=r), "workers", "tuples_per_second").items())
            for r in CHOSEN
        }
        if points:
            title = f"Figure 11: scalability, UK-{group}"
            made.append((f"figure-11-{group.lower()}",
                         line_chart(title, "workers", "tuples/s", lines)))  # fmt: skip
    return made


def _selecting(told: list[Figure]) -> Drawn:
    times: dict[str, list[tuple[float, float]]] = {}
    for point in matching(told, figure="12") + matching(told, figure="13"):
        times.setdefault(point["selector"], []).append((point["queries"], point["select_ms"]))
    if not times:
        return []
    title = "Figures 12(a), 13: selecting cells"
    return [("figure-13", line_chart(title, "queries", "ms", times, log_y=True))]


def _days(told: list[Figure]) -> Drawn:
    """Figures 12(b), 12(c), 14 and 15, (a) and (b): what migrations cost, and who waits."""
    made = []
    runs = [r for r in matching(told, figure="12, 14, 15") if r["migrations"]]
    rest = sorted({r["queries"] for r in runs if r["selector"] == "DP"})
    sizes = rest + sorted({r["queries"] for r in runs} - set(rest))
    for n, queries in enumerate(sizes):
        mine = [r for r in runs if r["queries"] == queries]
        names = [r["selector"] for r in mine]
        letter = chr(ord("a") + n - len(rest))
        first, second = ("12b", "12c") if queries in rest else (f"14{letter}", f"15{letter}")
        title = f"{queries:,} queries"
        cost = {"kB": [1e3 * r["cost_mb"] for r in mine],
                "ms": [r["migration_ms"] for r in mine]}  # fmt: skip
        svg = bar_chart(f"Figure {first}: a migration, {title}", "kB, ms", names, cost, log_y=True)
        made.append((f"figure-{first}", svg))
        waits = {f"> {limit}": [100 * r["later_than"][limit] for r in mine]
                 for limit in mine[0]["later_than"]}  # fmt: skip
        if any(any(line) for line in waits.values()):
            svg = bar_chart(f"Figure {second}: tuples that wait, {title}", "%", names, waits)
            made.append((f"figure-{second}", svg))
    return made


def _q3(told: list[Figure]) -> Drawn:
    made = []
    points = matching(told, figure="16")
    for queries in sorted({p["queries"] for p in points}):
        mine = [p for p in points if p["queries"] == queries]
        for name, title, key, label in (
            ("figure-16", "throughput", "by_period", "tuples/s"),
            ("figure-16-loads", "counted load, largest to mean", "uneven_by_period", "ratio"),
        ):
            lines = {p["adjusted"]: list(enumerate(p[key], 1)) for p in mine}
            svg = line_chart(f"Figure 16: {title}, {queries:,} queries", "period", label, lines)
            made.append((f"{name}-{queries}", svg))
    return made
