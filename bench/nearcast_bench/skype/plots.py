"""The figures of Skype's centralised part, drawn from the points of a run; the middle seed."""

from __future__ import annotations

from pathlib import Path
from statistics import median

from nearcast_bench.common.charts import Chart, bar_chart, line_chart, write_charts
from nearcast_bench.common.figures import Figure
from nearcast_bench.common.shapes import matching
from nearcast_bench.skype.claims import cost, spent
from nearcast_bench.skype.reevaluation import COMPARED
from nearcast_bench.skype.setting import DATA

_TIME = ("spent", "arrival and expiry per message (µs)")
_LINES = (
    # file, figure, title, which line a point belongs to, x with its label, y with its label, log
    ("10a", "10(a)", "kmax", "policy", ("kmax", "kmax"), ("cost", "counted work (µs)"), True),
    ("10a-buffer", "10(a)", "kmax: buffers", "policy", ("kmax", "kmax"), ("buffer", "entries"),
     False),
    ("10b", "10(b)", "skyband", "policy", ("part", "part of the k-th score"),
     ("cost", "counted work (µs)"), True),
    ("10b-buffer", "10(b)", "skyband: buffers", "policy", ("part", "part of the k-th score"),
     ("buffer", "entries"), False),
    ("15", "15", "keywords of a subscription", "system", ("keywords", "keywords"), _TIME, True),
    ("16", "16", "results", "system", ("k", "k"), _TIME, True),
    ("17", "17", "subscriptions", "system", ("subscriptions", "subscriptions"), _TIME, True),
    ("18", "18", "window", "system", ("window", "messages in the window"), _TIME, True),
    ("20", "20", "a window of time", "system", ("k", "k"), _TIME, True),
)  # fmt: skip
_BARS = (
    ("14", "counted work per message (µs)", "cost", False),
    ("14-searches", "re-evaluations per message", "reevaluations", True),
    ("14-expiry", "CPU time at expiry per message (µs)", "expiry_us", True),
    ("table-4", "entries of a buffer", "buffer", False),
)


def plots(reported: list[Figure], folder: Path) -> list[Path]:
    """Draw what there are points for; the files."""
    points = [p | {"cost": cost(p), "spent": spent(p)} if "touched" in p else p for p in reported]
    made = [*_lines(points), *_policies(points), *_walk(points)]
    return write_charts(((f"skype-{name}", chart) for name, chart in made), folder)


def _lines(reported: list[Figure]) -> list[Chart]:
    made = []
    for name, figure, title, key, (x, x_label), (y, y_label), log in _LINES:
        found: dict[str, dict[float, list[float]]] = {}
        for p in matching(reported, figure=figure):
            found.setdefault(str(p[key]), {}).setdefault(p[x], []).append(p[y])
        whole = matching(reported, figure="10")
        if found and whole and figure.startswith("10("):  # cSkyband has no such setting: a line
            ends = [x for points in found.values() for x in points]
            found["cskyband"] = {x: [p[y] for p in whole] for x in (min(ends), max(ends))}
        if found:
            series = {
                line: [(at, median(values)) for at, values in sorted(points.items())]
                for line, points in found.items()
            }
            chart = line_chart(f"Figure {figure}: {title}", x_label, y_label, series, log_y=log)
            made.append((f"figure-{name}", chart))
    return made


def _policies(reported: list[Figure]) -> list[Chart]:
    """Figure 14 and table 4: bars by data set."""
    points = matching(reported, figure="14")
    made = []
    for name, label, y, log in _BARS if points else ():
        series = {
            policy: [
                median(p[y] for p in matching(points, data=data, policy=policy)) for data in DATA
            ]
            for policy in COMPARED
        }
        made.append((f"figure-{name}", bar_chart(label, label, DATA, series, log)))
    return made


def _walk(reported: list[Figure]) -> list[Chart]:
    points = matching(reported, figure="walk")
    if not points:
        return []
    depths = sorted({p["depth"] for p in points})
    series = {
        label: [(d, median(p[y] for p in matching(points, depth=d))) for d in depths]
        for label, y in (("expected", "expected"), ("counted", "reevaluations"))
    }
    title = "Equation 12 and what happens"
    chart = line_chart(title, "objects in a new buffer", "re-evaluations per message", series, True)
    return [("figure-walk", chart)]
