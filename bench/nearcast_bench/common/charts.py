"""Line and bar charts of the papers' figures, as SVG files.

Values that a logarithmic axis cannot show (zero and below) and those that are not finite are left
out. A linear y axis begins at 0, so that heights can be compared.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nearcast.plotting import COLOURS, short, svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Points = Sequence[tuple[float, float]]
Chart = tuple[str, bytes]  # name, SVG

_WIDTH, _HEIGHT = 7.2, 3.8  # inches
_DASHES = ("-", "--", ":", "-.")  # lines can be kept apart without colour, too
_MARKERS = "osD^vPX*"
_FEW = 12  # places on the x axis that are all labelled
_MARKED = 48  # places up to which every point has a marker
_WIDE = 50.0  # an x axis whose ends differ by this factor is logarithmic
_APART = 0.07  # least distance of two labels of the x axis, as a share of it
_LETTERS = 54  # letters that have room side by side below the bars


def line_chart(
    title: str, x_label: str, y_label: str, series: Mapping[str, Points], log_y: bool = False
) -> bytes:
    """One line for each of `series`: name to (x, y) in the order to draw them."""
    shown = {name: [p for p in line if _shows(p, log_y)] for name, line in series.items()}
    places = sorted({x for line in shown.values() for x, _ in line})
    if not places:
        raise ValueError(f"{title}: nothing to draw")

    def draw(axes: Axes) -> None:
        marked = len(places) <= _MARKED
        for n, (name, line) in enumerate(shown.items()):
            axes.plot(
                [x for x, _ in line],
                [y for _, y in line],
                label=name,
                color=COLOURS[n % len(COLOURS)],
                linestyle=_DASHES[n % len(_DASHES)],
                marker=_MARKERS[n % len(_MARKERS)] if marked else None,
                markersize=4.5,
                clip_on=False,
            )
        axes.set_xlabel(x_label)
        _label_places(axes, places)

    return _chart(title, y_label, log_y, draw, len(series))


def bar_chart(
    title: str,
    y_label: str,
    groups: Sequence[str],
    series: Mapping[str, Sequence[float]],
    log_y: bool = False,
) -> bytes:
    """For each of `groups` side by side one bar of each of `series`."""
    for name, values in series.items():
        if len(values) != len(groups):
            raise ValueError(f"{title}: {name} has {len(values)} values for {len(groups)} groups")
    values = [v for row in series.values() for v in row if _shows((0.0, v), log_y)]
    if not values:
        raise ValueError(f"{title}: nothing to draw")

    def draw(axes: Axes) -> None:
        width = min(0.8 / len(series), 0.4)
        for n, (name, row) in enumerate(series.items()):
            shift = (n - (len(series) - 1) / 2) * width
            shown = [(g, v) for g, v in enumerate(row) if _shows((0.0, v), log_y)]
            axes.bar(
                [g + shift for g, _ in shown],
                [v for _, v in shown],
                0.92 * width,
                label=name,
                color=COLOURS[n % len(COLOURS)],
            )
        axes.set_xticks(range(len(groups)), _wrapped(groups))
        axes.tick_params(axis="x", length=0)
        if log_y:  # the smallest bar has a height, too
            axes.set_ylim(bottom=min(values) / 2)

    return _chart(title, y_label, log_y, draw, len(series))


def write_charts(charts: Iterable[Chart], folder: Path) -> list[Path]:
    """Write each to `folder`; the files."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, chart in charts:
        paths.append(folder / f"{name}.svg")
        paths[-1].write_bytes(chart)
    return paths


def _chart(
    title: str, y_label: str, log_y: bool, draw: Callable[[Axes], None], lines: int
) -> bytes:
    """The frame of every chart: title, y axis, lines across, a legend if there is a choice."""

    def all_of(figure: Figure) -> None:
        axes = figure.subplots()
        axes.set_title(title)
        axes.set_ylabel(y_label)
        axes.grid(axis="y")
        if log_y:
            axes.set_yscale("log")
        draw(axes)
        if log_y:
            _label_decades(axes)
        else:
            axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]) if axes.dataLim.y0 < 0 else 0.0)
            axes.yaxis.set_major_formatter(lambda value, _: short(value))
        if lines > 1:
            figure.legend(loc="outside right upper")

    return svg(_WIDTH, _HEIGHT, all_of)


def _label_decades(axes: Axes) -> None:
    """Labels at powers of ten; at 2 and 5 between them if they are few."""
    from matplotlib.ticker import LogLocator, NullLocator

    low, high = axes.get_ylim()
    few = math.log10(high / low) <= 3
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(lambda value, _: short(value))


def _label_places(axes: Axes, places: Sequence[float]) -> None:
    """The x axis: labels at the places of the points where they are few."""
    from matplotlib.ticker import MaxNLocator

    first, last = places[0], places[-1]
    if first > 0 and last / first >= _WIDE:
        axes.set_xscale("log")
        axes.minorticks_off()
        at = [math.log10(x) for x in places]
    else:
        at = list(places)
    if len(places) > _FEW:
        whole = all(float(x).is_integer() for x in places)
        axes.xaxis.set_major_locator(MaxNLocator(integer=whole))
        axes.xaxis.set_major_formatter(lambda value, _: short(value))
        return
    kept: list[int] = []
    for n, x in enumerate(at):
        if not kept or x - at[kept[-1]] >= _APART * (at[-1] - at[0]):
            kept.append(n)
    axes.set_xticks([places[n] for n in kept], [short(places[n]) for n in kept])


def _wrapped(labels: Sequence[str]) -> list[str]:
    """Labels side by side, long ones in several lines."""
    width = max(_LETTERS // len(labels), 6)
    return ["\n".join(textwrap.wrap(text, width, break_long_words=False)) for text in labels]


def _shows(point: tuple[float, float], log_y: bool) -> bool:
    return math.isfinite(point[0]) and math.isfinite(point[1]) and (point[1] > 0 or not log_y)
