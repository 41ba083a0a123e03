"""The figures of PS2Stream, drawn from the points of a run."""

from __future__ import annotations

from pathlib import Path

from nearcast.bench.chart import bar_chart, line_chart
from nearcast.bench.dealt import ENGINE, H2, Figure
from nearcast.bench.ps2stream import CHOSEN, SPACE, TEXT
from nearcast.bench.ps2stream_claims import POINTS
from nearcast.bench.shapes import by, matching

_GROUPS = ("Q1", "Q2", "Q3")


def plots(told: list[Figure], folder: Path) -> list[Path]:
    """Draw what there are points for; the files."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for name, svg in (*_bars(told), *_scaling(told), *_adjusting(told)):
        path = folder / f"ps2stream-{name}.svg"
        path.write_text(svg)
        drawn.append(path)
    return drawn


def _bars(told: list[Figure]) -> list[tuple[str, str]]:
    made = []
    for name, title, value, label, routers, way in (
        ("figure-6", "Figure 6: baselines", "tuples_per_second", "tuples/s", TEXT + SPACE, H2),
        ("figure-7", "Figure 7: throughput", "tuples_per_second", "tuples/s", CHOSEN, H2),
        ("figure-7-engine", "Figure 7 without H2", "tuples_per_second", "tuples/s", CHOSEN, ENGINE),
        ("figure-8", "Figure 8: latency", "latency_ms", "ms", CHOSEN, H2),
        ("figure-9", "Figure 9: dispatchers", "dispatcher_mb", "MB", CHOSEN, H2),
        ("figure-10", "Figure 10: workers", "worker_mb", "MB", CHOSEN, H2),
    ):
        points = {
            g: by(
                matching(told, figure=POINTS, workload=f"STS-US-{g}", dispatch=way), "router", value
            )
            for g in _GROUPS
        }
        groups = [g for g in _GROUPS if set(routers) <= set(points[g])]
        if groups:
            series = {r: [points[g][r] for g in groups] for r in routers}
            made.append((name, bar_chart(title, label, [f"US-{g}" for g in groups], series)))
    return made


def _scaling(told: list[Figure]) -> list[tuple[str, str]]:
    made = []
    for group in _GROUPS:
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


def _adjusting(told: list[Figure]) -> list[tuple[str, str]]:
    made = []
    times: dict[str, list[tuple[float, float]]] = {}
    for point in matching(told, figure="12") + matching(told, figure="13"):
        times.setdefault(point["selector"], []).append((point["queries"], point["select_ms"]))
    if times:
        svg = line_chart("Figures 12(a), 13: selecting cells", "queries", "ms", times, log_y=True)
        made.append(("figure-13", svg))
    runs = matching(told, figure="12, 14, 15")
    for queries in sorted({r["queries"] for r in runs}):
        mine = [r for r in runs if r["queries"] == queries and r["migrations"]]
        if mine:
            names = [r["selector"] for r in mine]
            number = "12b" if "DP" in names else "14"
            svg = bar_chart(f"Figure {number}: migration cost, {queries:,} queries", "MB", names,
                            {"a migration": [r["cost_mb"] for r in mine]})  # fmt: skip
            made.append((f"figure-{number}", svg))
    adjusted = {
        "adjusted" if p["adjusted"] else "not adjusted": list(enumerate(p["by_period"], 1))
        for p in matching(told, figure="16")
    }
    if adjusted:
        made.append(("figure-16",
                     line_chart("Figure 16: changing workload", "period", "tuples/s",
                                adjusted)))  # fmt: skip
    return made
