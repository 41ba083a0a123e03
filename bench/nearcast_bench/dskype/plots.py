"""Figures 21 to 26, drawn from the points of a run; of several seeds the middle one."""

from __future__ import annotations

from pathlib import Path
from statistics import median

from nearcast_bench.common.charts import Chart, bar_chart, line_chart, write_charts
from nearcast_bench.common.figures import Figure
from nearcast_bench.common.shapes import matching
from nearcast_bench.dskype.setting import MECHANISMS, TABLE_5

_RATE = ("throughput", "messages/s, slowest shard")
_SENT = ("communication", "copies of a message")
_COPIES = ("replication", "copies of a subscription")
_LINES = (
    ("22", "22", ("shards", "shards"), _RATE), ("22-copies", "22", ("shards", "shards"), _SENT),
    ("23", "23", ("k", "k"), _RATE), ("24", "24", ("subscriptions", "subscriptions"), _RATE),
    ("25", "25", ("first", "l1"), _RATE), ("26", "25", ("first", "l1"), _SENT),
)  # fmt: skip


def plots(reported: list[Figure], folder: Path) -> list[Path]:
    """Draw what there are points for; the files."""
    made = [*_bars(reported), *_lines(reported)]
    return write_charts(((f"dskype-{name}", chart) for name, chart in made), folder)


def _middle(points: list[Figure], y: str) -> float:
    return median(p[y] for p in points) if points else 0.0


def _bars(reported: list[Figure]) -> list[Chart]:
    made = []
    for name, figure, (y, label) in (("21a", "21", _RATE), ("21b", "21", _SENT),
                                     (TABLE_5, TABLE_5, _COPIES)):  # fmt: skip
        points = matching(reported, figure=figure)
        data = list(dict.fromkeys(p["data"] for p in points))
        series = {
            m: [_middle(matching(points, data=d, mechanism=m), y) for d in data] for m in MECHANISMS
        }
        if points:
            made.append((name, bar_chart("Distribution mechanisms", label, data, series)))
    return made


def _lines(reported: list[Figure]) -> list[Chart]:
    made = []
    for name, figure, (x, x_label), (y, y_label) in _LINES:
        points = [p | {"first": int(p.get("levels", "0x0").split("x")[0])}
                  for p in matching(reported, figure=figure)]  # fmt: skip
        for data in dict.fromkeys(p["data"] for p in points):
            series = {}
            for m in dict.fromkeys(p["mechanism"] for p in points):
                own = matching(points, data=data, mechanism=m)
                places = sorted({p[x] for p in own})
                series[m] = [(v, _middle(matching(own, **{x: v}), y)) for v in places]
            chart = line_chart(f"Figure {name}, {data}", x_label, y_label, series)
            made.append((f"{name}-{Path(data).stem}", chart))
    return made
