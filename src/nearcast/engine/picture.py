"""`balance.svg`: how even the shards were, batch by batch, and what each adjustment changed."""

from __future__ import annotations

from html import escape

from nearcast.engine.balance import HOLDS_AFTER, Record
from nearcast.routing.balance import imbalance

SHOWN = 12  # adjustments, the latest
_COLOURS = (
    "#1b6ca8", "#d1495b", "#edae49", "#3c896d", "#6b4e9b", "#e07a3f", "#52a7a0", "#b0578d",
    "#8a9a3b", "#7a5c3e", "#4d7cc7", "#a8a8a8",
)  # fmt: skip
_BY_TEXT = "#222"
_WIDTH, _MAP, _MARGIN, _ROW = 900, 180, 24, 250
_CHART, _TOP = 150, 60


def picture(records: list[Record], loads: dict[int, list[float]], threshold: float) -> str:
    """An SVG of one kind's adjustments; `loads`: by batch, of each shard."""
    shown = records[-SHOWN:]
    height = _TOP + _CHART + 40 + _ROW * len(shown)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
        f'<text x="{_MARGIN}" y="26" font-size="15">Largest load of a shard over the mean, '
        "batch by batch; dots: a new table holds</text>",
        *_chart(records, loads, threshold),
    ]
    for n, record in enumerate(shown):
        parts += _adjustment(record, loads, _TOP + _CHART + 40 + n * _ROW)
    return "\n".join([*parts, "</svg>", ""])


def _chart(records: list[Record], loads: dict[int, list[float]], threshold: float) -> list[str]:
    ratios = {batch: imbalance(of) for batch, of in sorted(loads.items())}
    first, last = min(ratios, default=0), max(ratios, default=1)
    high = max([*ratios.values(), threshold, 1.5])
    bottom = _TOP + _CHART

    def at(batch: int, ratio: float) -> tuple[float, float]:
        across = (batch - first) / max(last - first, 1)
        up = (ratio - 1.0) / (high - 1.0)
        return 60 + across * (_WIDTH - 60 - _MARGIN), bottom - up * _CHART

    parts = []
    for ratio in (1.0, threshold, high):
        _, y = at(first, ratio)
        parts.append(
            f'<line x1="60" y1="{y:.1f}" x2="{_WIDTH - _MARGIN}" y2="{y:.1f}" stroke="#ddd"/>'
            f'<text x="52" y="{y + 4:.1f}" text-anchor="end">{ratio:.2f}</text>'
        )
    path = " ".join("{:.1f},{:.1f}".format(*at(b, r)) for b, r in ratios.items())
    parts.append(f'<polyline points="{path}" fill="none" stroke="{_COLOURS[0]}"/>')
    for record in records:
        holds = record.batch + HOLDS_AFTER
        if holds in ratios:
            x, y = at(holds, ratios[holds])
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{_COLOURS[1]}"/>')
    parts.append(f'<text x="60" y="{bottom + 18}">batch {first} to {last}</text>')
    return parts


def _adjustment(record: Record, loads: dict[int, list[float]], top: int) -> list[str]:
    """Partitions before and after, and the loads that were counted before and after."""
    kinds: dict[str, int] = {}
    for decision in record.decisions:
        kinds[decision["kind"]] = kinds.get(decision["kind"], 0) + 1
    what = ", ".join(f"{n} × {kind}" if n > 1 else kind for kind, n in kinds.items())
    title = f"after batch {record.batch}, {record.kind}: {what}"
    reason = escape("\n".join(d["reason"] for d in record.decisions))
    after = loads.get(record.batch + HOLDS_AFTER, [])
    return [
        f'<g transform="translate({_MARGIN},{top})"><title>{reason}</title>',
        f'<text y="14">{escape(title)}</text>',
        *_map(record.cells_before, 0, "before"),
        *_map(record.cells_after, _MAP + _MARGIN, "after"),
        *_bars(record.loads, after, 2 * (_MAP + _MARGIN)),
        "</g>",
    ]


def _colour(shard: int) -> str:
    return _BY_TEXT if shard < 0 else _COLOURS[shard % len(_COLOURS)]


def _map(cells: list[list[int]], left: int, name: str) -> list[str]:
    """Cells coloured by shard, north up; runs of a line are one rectangle."""
    size = _MAP / len(cells)
    parts = [f'<text x="{left}" y="34" fill="#777">{name}</text>']
    for line, row in enumerate(cells):
        y = 42 + _MAP - (line + 1) * size
        start = 0
        for column in range(1, len(row) + 1):
            if column == len(row) or row[column] != row[start]:
                parts.append(
                    f'<rect x="{left + start * size:.2f}" y="{y:.2f}" fill="{_colour(row[start])}" '
                    f'width="{(column - start) * size + 0.2:.2f}" height="{size + 0.2:.2f}"/>'
                )
                start = column
    return parts


def _bars(before: list[float], after: list[float], left: int) -> list[str]:
    """Two bars a shard: pale before, full after."""
    parts = [f'<text x="{left}" y="34" fill="#777">load of each shard, before (pale), after</text>']
    most = max([*before, *after, 1e-9])
    step = min(60.0, (_WIDTH - 2 * _MARGIN - left) / max(len(before), 1))
    for shard, load in enumerate(before):
        both = [(load, 0.35), *([(after[shard], 1.0)] if after else [])]
        for n, (value, opacity) in enumerate(both):
            height = value / most * _MAP
            parts.append(
                f'<rect x="{left + shard * step + n * step * 0.4:.1f}" y="{42 + _MAP - height:.1f}"'
                f' width="{step * 0.36:.1f}" height="{height:.1f}" fill="{_colour(shard)}" '
                f'opacity="{opacity}"/>'
            )
    return parts
