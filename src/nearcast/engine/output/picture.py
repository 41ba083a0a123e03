"""`balance.svg`: how even the shards were, batch by batch, and what each adjustment changed."""

from __future__ import annotations

import logging
import textwrap
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from nearcast.engine.moves.balancer import HOLDS_AFTER, Record
from nearcast.plotting import COLOURS, QUIET, NoMatplotlib, short, svg
from nearcast.routing.balance import imbalance
from nearcast.wire.durable import write_atomic

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LOG = logging.getLogger(__name__)
SHOWN = 12  # adjustments, the latest
_BY_TEXT = "#222222"  # of a cell that several shards share by words
_WIDTH, _CHART, _ROW = 9.5, 2.9, 2.75  # inches
_LETTERS = 130  # of the reasons for an adjustment
_LEFT, _FOOT, _TALL = 0.75, 0.5, 1.6  # inches: axes of an adjustment, their feet and heights


def picture(records: list[Record], loads: dict[int, list[float]], threshold: float) -> bytes:
    """An SVG of one kind's adjustments; `loads`: by batch, of each shard."""
    shown = records[-SHOWN:]
    height = _CHART + _ROW * len(shown)

    def draw(figure: Figure) -> None:
        def axes(left: float, foot: float, width: float, tall: float) -> Axes:
            return figure.add_axes((left / _WIDTH, foot / height, width / _WIDTH, tall / height))

        top = axes(_LEFT, height - _CHART + 0.7, _WIDTH - _LEFT - 0.2, _CHART - 1.1)
        _draw_ratios(top, records, loads, threshold)
        for n, record in enumerate(shown):
            foot = height - _CHART - (n + 1) * _ROW
            counted = Counter(decision["kind"] for decision in record.decisions)
            what = ", ".join(f"{n} × {kind}" if n > 1 else kind for kind, n in counted.items())
            title = f"After batch {record.batch}, {record.kind}: {what}"
            figure.text(0.2 / _WIDTH, (foot + _ROW - 0.2) / height, title, fontsize=11)
            reasons = "; ".join(dict.fromkeys(d["reason"] for d in record.decisions))
            figure.text(
                0.2 / _WIDTH,
                (foot + _ROW - 0.38) / height,
                textwrap.shorten(reasons, _LETTERS, placeholder=" …"),
                fontsize=8,
                color=QUIET,
                parse_math=False,
            )
            foot += _FOOT
            _draw_map(axes(0.2, foot, _TALL, _TALL), record.cells_before, "shards before")
            _draw_map(axes(0.5 + _TALL, foot, _TALL, _TALL), record.cells_after, "shards after")
            left = 1.6 + 2 * _TALL
            after = loads.get(record.batch + HOLDS_AFTER, [])
            _draw_loads(axes(left, foot, _WIDTH - left - 0.2, _TALL), record.loads, after)

    return svg(_WIDTH, height, draw, place=False)


def write_picture(
    path: Path, records: list[Record], loads: dict[int, list[float]], threshold: float
) -> None:
    """Draw `picture` to `path`. Nobody requested it, so without matplotlib a run goes on."""
    try:
        drawing = picture(records, loads, threshold)
    except NoMatplotlib as error:
        _LOG.warning("%s is not drawn: %s", path.name, error)
    else:
        write_atomic(path, drawing)


def colour(shard: int) -> str:
    """The colour of a shard; below 0: shared by words."""
    return _BY_TEXT if shard < 0 else COLOURS[shard % len(COLOURS)]


def _draw_ratios(
    axes: Axes, records: list[Record], loads: dict[int, list[float]], threshold: float
) -> None:
    """The largest load over the mean by batch, and where a new table begins to hold."""
    ratios = {batch: imbalance(of) for batch, of in sorted(loads.items())}
    axes.set_title("How even the shards were, batch by batch")
    axes.set_xlabel("batch")
    axes.set_ylabel("largest load / mean load")
    axes.grid(axis="y")
    axes.plot(list(ratios), list(ratios.values()), color=COLOURS[0])
    held = [r.batch + HOLDS_AFTER for r in records if r.batch + HOLDS_AFTER in ratios]
    axes.plot(
        held,
        [ratios[batch] for batch in held],
        "o",
        color=COLOURS[1],
        label="a new table holds",
    )
    axes.axhline(threshold, color=QUIET, linestyle="--", linewidth=1, label="threshold")
    axes.set_ylim(bottom=1.0, top=max([*ratios.values(), threshold, 1.5]) * 1.05)
    axes.locator_params(axis="x", integer=True)
    axes.legend(loc="upper right")


def _draw_map(axes: Axes, cells: list[list[int]], name: str) -> None:
    """Cells coloured by shard, north up."""
    from matplotlib.colors import to_rgb

    axes.imshow([[to_rgb(colour(shard)) for shard in row] for row in cells], origin="lower")
    axes.set_title(name, fontsize=9, pad=5)
    axes.set_axis_off()


def _draw_loads(axes: Axes, before: list[float], after: list[float]) -> None:
    """Two bars per shard: pale before, full after."""
    shards = range(len(before))
    axes.set_title("load of each shard: before (pale), after", fontsize=9, pad=5)
    axes.set_xlabel("shard")
    axes.set_ylabel("counted work")
    axes.yaxis.set_major_formatter(lambda value, _: short(value))
    colours = [colour(shard) for shard in shards]
    axes.bar([shard - 0.2 for shard in shards], before, 0.38, color=colours, alpha=0.35)
    if after:
        axes.bar([shard + 0.2 for shard in shards], after, 0.38, color=colours)
    axes.set_xticks(list(shards))
