"""The figures of Tornado, drawn from the points of a run."""

from __future__ import annotations

from pathlib import Path

from nearcast_bench.common.charts import Chart, bar_chart, line_chart, write_charts
from nearcast_bench.common.figures import Figure
from nearcast_bench.common.shapes import matching
from nearcast_bench.tornado.adapt import ADAPTIVE

_RATE = ("tuples_per_second", "throughput (tuples/s)")
_ROUTING = ("routing_us", "time per tuple (µs)")
_SIDE = ("side", "side of a query (share of the space's)")
_LINES = (
    # figure, title, which line a point belongs to, x with its label, y with its label, logarithmic
    ("6(c)", "textual summaries", "dispatch", ("percentile", "share of words, rarest first"),
     _RATE, False),
    ("7(a)", "routing points", "structure", ("partitions", "partitions"), _ROUTING, True),
    ("7(b)", "routing ranges", "structure", _SIDE, _ROUTING, True),
    ("8(a)", "side of queries", "router", _SIDE, _RATE, False),
    ("8(b)", "keywords", "router", ("keywords", "keywords of a query"), _RATE, False),
    ("8(c)", "queries", "router", ("queries", "standing queries"), _RATE, False),
    ("9(a)", "condensed space", "version", ("scale", "scale of the condensed space"), _RATE,
     False),
    ("10", "routing units", "index", ("units", "routing units"), _RATE, False),
)  # fmt: skip


def plots(reported: list[Figure], folder: Path) -> list[Path]:
    """Draw what there are points for; the files."""
    made = [*_alternatives(reported), *_lines(reported), *_rounds(reported), *_sent(reported)]
    return write_charts(((f"tornado-{name}", chart) for name, chart in made), folder)


def _alternatives(reported: list[Figure]) -> list[Chart]:
    points = matching(reported, figure="6(a), (b)")
    if not points:
        return []
    names = [p["alternative"] for p in points]
    rates = {"throughput": [p["tuples_per_second"] for p in points]}
    latency = {"latency": [p["latency_ms"] for p in points]}
    return [
        ("figure-6a", bar_chart("Figure 6(a): throughput", _RATE[1], names, rates)),
        ("figure-6b", bar_chart("Figure 6(b): latency", "latency (ms)", names, latency)),
    ]


def _lines(reported: list[Figure]) -> list[Chart]:
    made = []
    for figure, title, key, (x, x_label), (y, y_label), log in _LINES:
        series: dict[str, list[tuple[float, float]]] = {}
        for point in matching(reported, figure=figure):
            series.setdefault(point[key], []).append((point[x], point[y]))
        if series:
            ordered = {name: sorted(line) for name, line in series.items()}
            chart = line_chart(f"Figure {figure}: {title}", x_label, y_label, ordered, log_y=log)
            made.append((f"figure-{figure.replace('(', '').replace(')', '')}", chart))
    return made


def _rounds(reported: list[Figure]) -> list[Chart]:
    """Figure 9 over time, at the strongest hot spot."""
    points = matching(reported, figure="9(a)")
    if not points:
        return []
    least = min(p["scale"] for p in points)
    lines = {p["version"]: list(enumerate(p["by_round"], 1)) for p in matching(points, scale=least)}
    title = f"Figure 9: rounds at scale {least:g}"
    return [("figure-9-rounds", line_chart(title, "round", _RATE[1], lines))]


def _sent(reported: list[Figure]) -> list[Chart]:
    """Figure 9(b): what is reported to the routing layer, in all rounds."""
    points = sorted(matching(reported, figure="9(a)", version=ADAPTIVE), key=lambda p: p["scale"])
    if not points:
        return []
    lines = {
        way: [(p["scale"], p["numbers_sent"][way]) for p in points]
        for way in ("distributed", "centralised")
    }
    title = "Figure 9(b): communication of load balancing"
    return [
        (
            "figure-9b",
            line_chart(title, "scale of the condensed space", "numbers sent", lines, True),
        )
    ]
