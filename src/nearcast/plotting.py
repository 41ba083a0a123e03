"""Figures as SVG, drawn by matplotlib without a display. matplotlib is an extra: `nearcast[plots]`.

The same data gives the same bytes: a file carries no date, and its ids do not change.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from nearcast.model.errors import NearcastError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours first, which colour-blind readers can distinguish.
COLOURS = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6b6b6b", "#8c2d04",
    "#6b4e9b", "#8a9a3b", "#b0578d", "#3a6ea5",
)  # fmt: skip
QUIET = "#666666"  # of what is not data
_STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": QUIET,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 12,
    "axes.titlepad": 12,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
    "font.size": 10,
    "grid.color": "#e2e2e2",
    "legend.frameon": False,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "nearcast",
    "xtick.color": QUIET,
    "xtick.labelcolor": "black",
    "ytick.color": QUIET,
    "ytick.labelcolor": "black",
}


class NoMatplotlib(NearcastError):
    """Something shall be drawn, and matplotlib is not installed."""


def need_matplotlib() -> None:
    """Raise if matplotlib is not installed; call it before work whose result is to be drawn."""
    if find_spec("matplotlib") is None:
        raise NoMatplotlib("plots need matplotlib: pip install 'nearcast[plots]'")


def svg(width: float, height: float, draw: Callable[[Figure], None], place: bool = True) -> bytes:
    """What `draw` draws into a new figure of so many inches, as an SVG file.

    `place`: let matplotlib find room for all parts, which takes long if they are many.
    """
    need_matplotlib()
    import matplotlib
    from matplotlib.figure import Figure  # and not pyplot, which looks for a display

    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(width, height), layout="constrained" if place else None)
        draw(figure)
        file = io.BytesIO()
        figure.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue()


def short(value: float) -> str:
    """A number as a label: 2.5M, 200k, 0.05."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if letter == 'k' else size):.6g}{letter}"
    return f"{value:.6g}"
