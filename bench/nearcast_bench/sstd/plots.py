"""The figures of SSTD, drawn from the points of a run; of several seeds the middle one."""

from __future__ import annotations

from pathlib import Path
from statistics import median

from nearcast_bench.common.charts import Chart, bar_chart, line_chart, write_charts
from nearcast_bench.common.figures import Figure
from nearcast_bench.common.shapes import matching

_AREA = ("area", "area of the region (share of the space)")
_WORDS = ("keywords", "keywords of a query")
_LATENCY = ("latency_ms", "slowest worker (ms)")
_ASKED = ("workers_visited", "workers that an ask visits")
_LOOKED = ("examined_by_one", "posts looked at, slowest worker")
_RATE = ("tuples_per_second", "throughput (tuples/s)")
_LINES = (
    # file, figure, title, which line a point belongs to, x with its label, y with its label, log
    ("7a", "7(a)", "SRQ on different data", "data", _AREA, _LATENCY, False),
    ("8a", "8(a)", "SRQ", "router", _AREA, _LATENCY, True),
    ("8a-workers", "8(a)", "workers that an SRQ visits", "router", _AREA, _ASKED, False),
    ("8a-work", "8(a)", "work of an SRQ", "router", _AREA, _LOOKED, True),
    ("8b", "8(b)", "SRQ", "router", _WORDS, _LATENCY, False),
    ("8-time", "8(time)", "SRQ by period", "router", ("hours", "hours"), _LATENCY, False),
    ("9a", "9(a)", "SKQ", "router", ("k", "k"), _LATENCY, False),
    ("9b", "9(b)", "SKQ", "router", _WORDS, _LATENCY, False),
    ("9-workers", "9(b)", "workers that an SKQ visits", "router", _WORDS, _ASKED, False),
    ("10a", "10(a)", "STQ", "router", _AREA, _LATENCY, True),
    ("10b", "10(b)", "STQ", "router", ("k", "k"), _LATENCY, True),
    ("11a", "11(a)", "CRQ", "router", _AREA, _RATE, False),
    ("11b", "11(b)", "CRQ", "router", _WORDS, _RATE, False),
    ("12a", "12(a)", "CKQ: messages per change", "posts_a_round", _WORDS,
     ("messages_per_change", "messages per change"), True),
    ("13a", "13(a)", "SRQ with more posts", "router", ("objects", "posts"), _LATENCY, False),
    ("13b", "13(b)", "CRQ with more queries", "router", ("queries", "standing queries"), _RATE,
     False),
    ("workers", "workers", "CRQ with more workers", "router", ("workers", "workers"), _RATE, False),
    ("theta", "7.7 theta", "θ and throughput", "data", ("theta", "θ"), _RATE, False),
    ("delta", "7.7 delta", "Δ and asks", "kind", ("delta_hours", "Δ (hours)"),
     ("mean_ms", "mean (ms)"), True),
)  # fmt: skip
_BARS = (
    ("moved_queries", "queries moved", True), ("adjust_ms", "time to decide (ms)", True),
    ("latency_ms", "latency of asks (ms)", False), _RATE + (False,),
)  # fmt: skip


def plots(reported: list[Figure], folder: Path) -> list[Path]:
    """Draw what there are points for; the files."""
    made = [*_lines(reported), *_adjusted(reported)]
    return write_charts(((f"sstd-{name}", chart) for name, chart in made), folder)


def _lines(reported: list[Figure]) -> list[Chart]:
    made = []
    for name, figure, title, key, (x, x_label), (y, y_label), log in _LINES:
        found: dict[str, dict[float, list[float]]] = {}
        for p in matching(reported, figure=figure):
            if p.get("way") == "one round" or (figure == "7.7 delta" and p["hours"] != 72):
                continue
            line = str(p[key]) if p.get("way") != "own" else "own k best"
            found.setdefault(line, {}).setdefault(p[x], []).append(p[y])
        if found:
            series = {
                line: [(at, median(values)) for at, values in sorted(points.items())]
                for line, points in found.items()
            }
            chart = line_chart(f"Figure {figure}: {title}", x_label, y_label, series, log_y=log)
            made.append((f"figure-{name}", chart))
    return made


def _adjusted(reported: list[Figure]) -> list[Chart]:
    """Figures 14 and 15, each with four parts."""
    made = []
    for figure in ("14", "15"):
        points = matching(reported, figure=figure)
        plans = list(dict.fromkeys(p["plan"] for p in points))
        inserted = sorted({p["inserted"] for p in points})
        for letter, (key, label, log) in zip("abcd", _BARS, strict=True) if points else ():
            series = {
                plan: [
                    median(p[key] for p in matching(points, plan=plan, inserted=n))
                    for n in inserted
                ]
                for plan in plans
            }
            if not any(v > 0 for values in series.values() for v in values):
                continue
            groups = [f"{n:g} times inserted" for n in inserted]
            chart = bar_chart(f"Figure {figure}({letter}): {label}", label, groups, series, log)
            made.append((f"figure-{figure}{letter}", chart))
    return made
