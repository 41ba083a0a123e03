"""The figures of Tornado, drawn from the points of a run."""

from __future__ import annotations

from pathlib import Path

from nearcast.bench.chart import bar_chart, line_chart
from nearcast.bench.dealt import Figure
from nearcast.bench.shapes import matching
from nearcast.bench.tornado_adapt import ADAPTIVE

_LINES = (
    # figure, title, what tells lines apart, x, y, labels, logarithmic
    ("6(c)", "textual summaries", "dispatch", "percentile", "tuples_per_second", "tuples/s", False),
    ("7(a)", "routing points", "structure", "partitions", "routing_us", "µs", True),
    ("7(b)", "routing ranges", "structure", "side", "routing_us", "µs", True),
    ("8(a)", "side of queries", "router", "side", "tuples_per_second", "tuples/s", False),
    ("8(b)", "keywords", "router", "keywords", "tuples_per_second", "tuples/s", False),
    ("8(c)", "queries", "router", "queries", "tuples_per_second", "tuples/s", False),
    ("9(a)", "condensed space", "version", "scale", "tuples_per_second", "tuples/s", False),
    ("10", "routing units", "index", "units", "tuples_per_second", "tuples/s", False),
)


def plots(told: list[Figure], folder: Path) -> list[Path]:
    """Draw what there are points for; the files."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for name, svg in (*_alternatives(told), *_lines(told), *_rounds(told), *_sent(told)):
        path = folder / f"tornado-{name}.svg"
        path.write_text(svg)
        drawn.append(path)
    return drawn


def _alternatives(told: list[Figure]) -> list[tuple[str, str]]:
    points = matching(told, figure="6(a), (b)")
    if not points:
        return []
    names = [p["alternative"] for p in points]
    rates = {"tuples/s": [p["tuples_per_second"] for p in points]}
    latency = {"ms": [p["latency_ms"] for p in points]}
    return [
        ("figure-6a", bar_chart("Figure 6(a): throughput", "tuples/s", names, rates)),
        ("figure-6b", bar_chart("Figure 6(b): latency", "ms", names, latency)),
    ]


def _lines(told: list[Figure]) -> list[tuple[str, str]]:
    made = []
    for figure, title, key, x, y, label, log in _LINES:
        series: dict[str, list[tuple[float, float]]] = {}
        for point in matching(told, figure=figure):
            series.setdefault(point[key], []).append((point[x], point[y]))
        if series:
            ordered = {name: sorted(line) for name, line in series.items()}
            svg = line_chart(f"Figure {figure}: {title}", x, label, ordered, log_y=log)
            made.append((f"figure-{figure.replace('(', '').replace(')', '')}", svg))
    return made


def _rounds(told: list[Figure]) -> list[tuple[str, str]]:
    """Figure 9 over time, at the strongest hot spot."""
    points = matching(told, figure="9(a)")
    if not points:
        return []
    least = min(p["scale"] for p in points)
    lines = {p["version"]: list(enumerate(p["by_round"], 1)) for p in matching(points, scale=least)}
    title = f"Figure 9: rounds at scale {least:g}"
    return [("figure-9-rounds", line_chart(title, "round", "tuples/s", lines))]


def _sent(told: list[Figure]) -> list[tuple[str, str]]:
    """Figure 9(b): what the routing layer is told, in all rounds."""
    points = sorted(matching(told, figure="9(a)", version=ADAPTIVE), key=lambda p: p["scale"])
    if not points:
        return []
    lines = {
        way: [(p["scale"], p["numbers_sent"][way]) for p in points]
        for way in ("distributed", "centralised")
    }
    title = "Figure 9(b): communication of load balancing"
    return [("figure-9b", line_chart(title, "scale", "numbers sent", lines, log_y=True))]
