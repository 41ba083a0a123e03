"""Line plots as SVG: enough for the papers' figures, without a plotting library."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

Points = Sequence[tuple[float, float]]
_COLOURS = ("#1b6ca8", "#d1495b", "#edae49", "#3c896d", "#6b4e9b", "#5c5c5c")
_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 640, 380, 70, 40, 170, 50


def line_plot(title: str, x_label: str, y_label: str, series: Mapping[str, Points]) -> str:
    """An SVG of named lines; y is logarithmic, since algorithms differ by orders of magnitude."""
    points = [p for line in series.values() for p in line if p[1] > 0]
    if not points:
        raise ValueError(f"{title}: nothing to plot")
    low = math.floor(math.log10(min(y for _, y in points)))
    high = max(math.ceil(math.log10(max(y for _, y in points))), low + 1)
    left, right = min(x for x, _ in points), max(x for x, _ in points)

    def at(x: float, y: float) -> tuple[float, float]:
        across = (x - left) / (right - left) if right > left else 0.5
        up = (math.log10(y) - low) / (high - low)
        return (
            _LEFT + across * (_WIDTH - _LEFT - _RIGHT),
            _HEIGHT - _BOTTOM - up * (_HEIGHT - _TOP - _BOTTOM),
        )

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="22" font-size="15">{escape(title)}</text>',
        f'<text x="{_LEFT}" y="{_HEIGHT - 10}">{escape(x_label)}</text>',
        f'<text x="8" y="{_TOP - 4}">{escape(y_label)}</text>',
    ]
    for power in range(low, high + 1):
        _, y = at(left, 10.0**power)
        parts.append(
            f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}" stroke="#ddd"/>'
            f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g}</text>'
        )
    for x in sorted({x for x, _ in points}):
        across, _ = at(x, 10.0**low)
        parts.append(
            f'<text x="{across:.1f}" y="{_HEIGHT - _BOTTOM + 18}" text-anchor="middle">{x:g}</text>'
        )
    for n, (name, line) in enumerate(series.items()):
        colour = _COLOURS[n % len(_COLOURS)]
        places = [at(x, y) for x, y in line if y > 0]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        parts.append(
            f'<text x="{_WIDTH - _RIGHT + 12}" y="{_TOP + 18 * n + 12}" fill="{colour}">'
            f"{escape(name)}</text>"
        )
    return "\n".join([*parts, "</svg>", ""])
