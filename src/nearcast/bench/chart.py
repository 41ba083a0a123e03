"""Line and bar charts as SVG text: what the papers' figures need, without a plotting library.

Colours are rules of a style sheet inside the SVG, with a second set for dark surroundings, so a
chart in a document follows the reader's choice. Values that a logarithmic axis cannot show (zero
and below) and those that are not finite are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

Points = Sequence[tuple[float, float]]

_WIDTH, _HEIGHT = 680, 380
_LEFT, _RIGHT, _TOP, _BOTTOM = 74, 506, 56, 330  # edges of the plotting area
# Okabe and Ito's colours, which colour-blind readers can tell apart; lighter ones on dark.
_LIGHT = ("#0072b2", "#d55e00", "#009e73", "#b5548f", "#a87900", "#3a86c8", "#6b6b6b", "#8c2d04")
_DARK = ("#56b4e9", "#ff8c42", "#2fd6a4", "#e29ac6", "#f0c84b", "#9ecbff", "#b8b8b8", "#ffb199")
_DASHES = ("", "7 3", "2 3", "9 3 2 3")  # lines are told apart without colour, too
_MANY = 12  # places on the x axis that are all labelled


def line_chart(
    title: str,
    x_label: str,
    y_label: str,
    series: Mapping[str, Points],
    log_y: bool = False,
) -> str:
    """An SVG of one line for each of `series`: name to (x, y) in the order to draw them."""
    shown = {name: [p for p in line if _shows(p, log_y)] for name, line in series.items()}
    points = [p for line in shown.values() for p in line]
    if not points:
        raise ValueError(f"{title}: nothing to draw")
    y_axis = _axis([y for _, y in points], log_y, _BOTTOM, _TOP)
    places = sorted({x for x, _ in points})
    x_axis = _Axis(places[0], places[-1], tuple(places), False, _LEFT + 12, _RIGHT - 12)
    if len(places) > _MANY:
        ticks = [t for t in _steps(places[0], places[-1]) if places[0] <= t <= places[-1]]
        x_axis = _Axis(places[0], places[-1], tuple(ticks), False, _LEFT + 12, _RIGHT - 12)
    parts = _frame(title, y_label, y_axis)
    parts += [_text(x, _BOTTOM + 18, label, "middle") for x, label in _apart(x_axis)]
    parts.append(_text((_LEFT + _RIGHT) / 2, _BOTTOM + 38, x_label, "middle"))
    for n, line in enumerate(shown.values()):
        at = [(x_axis.at(x), y_axis.at(y)) for x, y in line]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
        parts.append(f'<polyline class="line {_stroke(n)}" points="{path}"{_dash(n)}/>')
        if len(places) <= 4 * _MANY:
            parts += [
                f'<circle class="{_fill(n)}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in at
            ]
    for n, name in enumerate(shown):
        y = _legend_y(n)
        parts.append(
            f'<line class="line {_stroke(n)}" x1="{_RIGHT + 14}" x2="{_RIGHT + 40}" y1="{y}" '
            f'y2="{y}"{_dash(n)}/>' + _text(_RIGHT + 46, y + 4, name)
        )
    return _document(title, parts, len(shown))


def bar_chart(
    title: str,
    y_label: str,
    groups: Sequence[str],
    series: Mapping[str, Sequence[float]],
    log_y: bool = False,
) -> str:
    """An SVG of bars: for each of `groups` side by side one bar of each of `series`."""
    for name, values in series.items():
        if len(values) != len(groups):
            raise ValueError(f"{title}: {name} has {len(values)} values for {len(groups)} groups")
    values = [v for row in series.values() for v in row if _shows((0.0, v), log_y)]
    if not values:
        raise ValueError(f"{title}: nothing to draw")
    # The smallest bar of a logarithmic chart shall have a height, too.
    axis = _axis([*values, min(values) / 2] if log_y else values, log_y, _BOTTOM, _TOP)
    foot = axis.at(axis.low if log_y else 0.0)
    parts = _frame(title, y_label, axis)
    room = (_RIGHT - _LEFT) / len(groups)
    width = min(0.8 * room / len(series), 44.0)
    for g, group in enumerate(groups):
        middle = _LEFT + (g + 0.5) * room
        parts.append(_text(middle, _BOTTOM + 18, group, "middle"))
        for n, row in enumerate(series.values()):
            if not _shows((0.0, row[g]), log_y):
                continue
            left, end = middle + (n - len(series) / 2) * width, axis.at(row[g])
            parts.append(
                f'<rect class="{_fill(n)}" x="{left:.1f}" y="{min(end, foot):.1f}" '
                f'width="{width * 0.92:.1f}" height="{abs(foot - end):.1f}">'
                f"<title>{escape(f'{group}, {list(series)[n]}: {row[g]:g}')}</title></rect>"
            )
    for n, name in enumerate(series):
        y = _legend_y(n)
        parts.append(
            f'<rect class="{_fill(n)}" x="{_RIGHT + 16}" y="{y - 6}" width="12" height="12"/>'
            + _text(_RIGHT + 36, y + 4, name)
        )
    return _document(title, parts, len(series))


@dataclass(frozen=True, slots=True)
class _Axis:
    """What is shown from `low` to `high`, and where: from `start` to `stop` in the drawing."""

    low: float
    high: float
    ticks: tuple[float, ...]
    log: bool
    start: float
    stop: float

    def at(self, value: float) -> float:
        """Where `value` stands; in the middle if there is nothing but one value."""
        low, high = self.low, self.high
        if self.log:
            value, low, high = math.log10(value), math.log10(low), math.log10(high)
        share = (value - low) / (high - low) if high > low else 0.5
        return self.start + share * (self.stop - self.start)


def _axis(values: Sequence[float], log: bool, start: float, stop: float) -> _Axis:
    """An axis whose ends are ticks; a linear one begins at 0, that lengths may be compared."""
    if log:
        ticks = _decades(min(values), max(values))
    else:
        ticks = _steps(min(0.0, *values), max(0.0, *values))
    return _Axis(ticks[0], ticks[-1], tuple(ticks), log, start, stop)


def _steps(low: float, high: float) -> list[float]:
    """Round numbers from at most `low` to at least `high`, about five of them."""
    span = high - low if high > low else abs(high) or 1.0
    step = 10.0 ** math.floor(math.log10(span / 5))
    step *= next(f for f in (1, 2, 5, 10) if span / (step * f) <= 6)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [n * step for n in range(first, max(last, first + 1) + 1)]


def _decades(low: float, high: float) -> list[float]:
    """Powers of ten around `low` and `high`; with 2 and 5 between if they are few."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    if last - first > 3:
        return [10.0**p for p in range(first, last + 1)]
    fine = [f * 10.0**p for p in range(first, last + 1) for f in (1, 2, 5)]
    start = max(n for n, v in enumerate(fine) if v <= low * (1 + 1e-9))
    stop = min(n for n, v in enumerate(fine) if v >= high * (1 - 1e-9))
    return fine[start : max(stop, start + 1) + 1]


def _apart(axis: _Axis) -> list[tuple[float, str]]:
    """Where the ticks stand, with labels; without those that would stand on the one before."""
    kept: list[tuple[float, str]] = []
    for tick in axis.ticks:
        label, x = _short(tick), axis.at(tick)
        if not kept or x - kept[-1][0] >= 4 * (len(label) + len(kept[-1][1])):
            kept.append((x, label))
    return kept


def _shows(point: tuple[float, float], log_y: bool) -> bool:
    return math.isfinite(point[0]) and math.isfinite(point[1]) and (point[1] > 0 or not log_y)


def _short(value: float) -> str:
    """A tick's label: 2.5M, 200k, 0.05."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if letter == 'k' else size):.6g}{letter}"
    return f"{value:.6g}"


def _text(x: float, y: float, text: str, anchor: str = "start", size: int = 12) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">'
        f"{escape(text)}</text>"
    )


def _legend_y(n: int) -> int:
    return _TOP + 10 + 20 * n


def _stroke(n: int) -> str:
    return f"s{n % len(_LIGHT)}"


def _fill(n: int) -> str:
    return f"f{n % len(_LIGHT)}"


def _dash(n: int) -> str:
    dash = _DASHES[n % len(_DASHES)]
    return f' stroke-dasharray="{dash}"' if dash else ""


def _frame(title: str, y_label: str, axis: _Axis) -> list[str]:
    """The title, the y axis with its lines across, the foot."""
    parts = [_text(_LEFT, 22, title, size=15), _text(_LEFT - 8, _TOP - 12, y_label, "end")]
    if len(y_label) > 9:  # too long to end at the axis
        parts[1] = _text(8, _TOP - 12, y_label)
    for tick in axis.ticks:
        y = axis.at(tick)
        parts.append(
            f'<line class="grid" x1="{_LEFT}" x2="{_RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            + _text(_LEFT - 8, y + 4, _short(tick), "end")
        )
    parts.append(f'<path class="axis" d="M{_LEFT} {_TOP}V{_BOTTOM}H{_RIGHT}"/>')
    return parts


def _rules(colours: Iterable[str]) -> str:
    pairs = enumerate(colours)
    return "".join(f".s{n}{{stroke:{c}}}.f{n}{{fill:{c}}}" for n, c in pairs)


def _document(title: str, parts: list[str], used: int) -> str:
    light, dark = _rules(_LIGHT[:used]), _rules(_DARK[:used])
    style = (
        ".paper{fill:#fff}text{fill:#222}.grid{stroke:#e2e2e2}.axis{stroke:#777;fill:none}"
        f".line{{fill:none;stroke-width:2}}{light}"
        "@media(prefers-color-scheme:dark){.paper{fill:#16191d}text{fill:#e4e4e4}"
        f".grid{{stroke:#33383e}}.axis{{stroke:#9a9a9a}}{dark}}}"
    )
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" role="img" font-family="sans-serif">',
        f"<title>{escape(title)}</title>",
        f"<style>{style}</style>",
        f'<rect class="paper" width="{_WIDTH}" height="{_HEIGHT}" rx="6"/>',
    ]
    return "\n".join([*head, *parts, "</svg>", ""])
