"""Figures 7 to 10 of DkM-SKS, drawn from what the experiment reported."""

from __future__ import annotations

from pathlib import Path

from nearcast_bench.common.charts import Chart, bar_chart, line_chart, write_charts
from nearcast_bench.common.figures import Figure
from nearcast_bench.dkm_sks.paper import AXES, FIRST

_LABELS = {"workers": "workers m", "subscriptions": "subscriptions |S|", "k_max": "k_max"}
_PARTS = {"kNN update": "knn_ms", "insertion": "insert_ms", "deletion": "delete_ms"}


def plots(reported: list[Figure], folder: Path) -> list[Path]:
    """Draw all figures that were reported into `folder`; the files."""
    made: list[Chart] = []

    def draw(name: str, workload: str, chart: bytes) -> None:
        made.append((f"dkm-sks-{name}-{workload}", chart))

    measured = [p for p in reported if "algorithm" in p]
    for what, workload in sorted({(p["figure"], p["workload"]) for p in measured}):
        some = [p for p in measured if (p["figure"], p["workload"]) == (what, workload)]
        if what == FIRST:
            draw("figure-7", workload, _over_time(some, workload))
            draw("table-3", workload, _decomposed(some, workload))
            continue
        number = what.split()[-1]
        for key, name in (("update_ms", "update time"), ("load_balance_ms", "load balance")):
            kind = name.replace(" ", "-")
            draw(f"figure-{number}-{kind}", workload, _by(some, key, what, name))
    return write_charts(made, folder)


def _over_time(some: list[Figure], workload: str) -> bytes:
    lines = {p["algorithm"]: list(enumerate(p["update_ms_by_tick"], 1)) for p in some}
    title = f"Update time over time, {workload}"
    return line_chart(title, "time-stamp", "update time (ms)", lines, log_y=True)


def _decomposed(some: list[Figure], workload: str) -> bytes:
    names = [p["algorithm"] for p in some]
    bars = {part: [p[key] for p in some] for part, key in _PARTS.items()}
    title = f"Update time by its parts, {workload}"
    return bar_chart(title, "time per time-stamp (ms)", names, bars, log_y=True)


def _by(some: list[Figure], key: str, what: str, name: str) -> bytes:
    axis = AXES[what]
    lines: dict[str, list[tuple[float, float]]] = {}
    for p in some:
        lines.setdefault(p["algorithm"], []).append((p[axis], p[key]))
    title = f"{name.capitalize()} by {_LABELS[axis]}, {some[0]['workload']}"
    return line_chart(title, _LABELS[axis], f"{name} (ms)", lines, log_y=True)
