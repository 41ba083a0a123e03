"""Charts hold everything once, with labels, and larger values stand higher."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from nearcast import plotting
from nearcast_bench.common import charts
from nearcast_bench.common.charts import bar_chart, line_chart, write_charts

NAME = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Axes]:
    """The axes of the last chart, as they are in its file."""
    seen: list[Figure] = []

    def spy(width: float, height: float, draw: Callable[[Figure], None]) -> bytes:
        def both(figure: Figure) -> None:
            draw(figure)
            seen.append(figure)

        return plotting.svg(width, height, both)

    monkeypatch.setattr(charts, "svg", spy)
    return lambda: seen[-1].axes[0]


def _texts(chart: bytes) -> set[str]:
    return {"".join(text.itertext()) for text in ET.fromstring(chart).iter(f"{NAME}text")}


def _points(line: Line2D) -> NDArray[np.float64]:
    return np.asarray(line.get_xydata())


def _heights(axes: Axes) -> list[float]:
    """Of the points of the first line, on paper."""
    points = axes.transData.transform(_points(axes.lines[0]))
    return [float(y) for _, y in points]


def test_every_line_is_drawn_and_named(drawn: Callable[[], Axes]) -> None:
    series = {"one": [(1.0, 10.0), (2.0, 1000.0)], "a < b": [(1.0, 0.5)]}
    chart = line_chart("this < that", "x", "time (ms)", series, log_y=True)
    assert [len(_points(line)) for line in drawn().lines] == [2, 1]
    assert {"one", "a < b", "this < that", "x", "time (ms)", "1", "2"} <= _texts(chart)
    looks = {(line.get_color(), line.get_linestyle(), line.get_marker()) for line in drawn().lines}
    assert len(looks) == 2


@pytest.mark.parametrize("log_y", [False, True])
def test_larger_is_higher(log_y: bool, drawn: Callable[[], Axes]) -> None:
    line_chart("t", "x", "y", {"a": [(0, 1), (1, 10), (2, 100)]}, log_y)
    heights = _heights(drawn())
    assert heights == sorted(heights)
    even = math.isclose(heights[1] - heights[0], heights[2] - heights[1], abs_tol=0.2)
    assert even == log_y


def test_a_linear_axis_begins_at_zero_and_has_round_numbers(drawn: Callable[[], Axes]) -> None:
    chart = line_chart("t", "x", "y", {"a": [(0, 9.3), (1, 23.4)]})
    low, high = drawn().get_ylim()
    assert low == 0
    assert 23.4 < high < 26
    assert {"0", "5", "10", "15", "20"} <= _texts(chart)


def test_an_axis_of_negative_values_shows_them(drawn: Callable[[], Axes]) -> None:
    line_chart("t", "x", "y", {"a": [(0, -3.0), (1, 2.0)]})
    low, high = drawn().get_ylim()
    assert low < -3.0
    assert high > 2.0


def test_large_numbers_are_short() -> None:
    chart = line_chart("t", "x", "y", {"a": [(250_000, 1), (2_500_000, 2)]})
    assert {"250k", "2.5M"} <= _texts(chart)


def test_labels_do_not_stand_on_each_other() -> None:
    texts = _texts(line_chart("t", "x", "y", {"a": [(1000, 1), (1001, 2), (9000, 3)]}))
    assert {"1000", "9000"} <= texts
    assert "1001" not in texts


def test_places_of_several_decades_stand_on_a_logarithmic_axis(drawn: Callable[[], Axes]) -> None:
    places = (0.0001, 0.0005, 0.001, 0.005, 0.01)
    chart = line_chart("t", "x", "y", {"a": [(x, 1.0) for x in places]})
    assert drawn().get_xscale() == "log"
    assert {"0.0001", "0.0005", "0.001", "0.005", "0.01"} <= _texts(chart)


def test_whole_numbers_have_whole_labels(drawn: Callable[[], Axes]) -> None:
    line_chart("t", "round", "y", {"a": [(float(n), 1.0) for n in range(1, 21)]})
    assert all(float(x).is_integer() for x in drawn().get_xticks())


def test_bars_stand_on_the_axis(drawn: Callable[[], Axes]) -> None:
    chart = bar_chart("t", "time (ms)", ["m", "n"], {"a": [1, 4], "b": [2, 0.5]})
    assert [[bar.get_height() for bar in row] for row in drawn().containers] == [[1, 4], [2, 0.5]]
    assert {bar.get_y() for row in drawn().containers for bar in row} == {0}
    assert drawn().get_ylim()[0] == 0
    assert {"m", "n", "a", "b", "time (ms)"} <= _texts(chart)


def test_bars_do_not_stand_on_each_other(drawn: Callable[[], Axes]) -> None:
    series = {name: [1.0, 2.0, 3.0] for name in "abcdef"}
    bar_chart("t", "y", ["m", "n", "o"], series)
    bars = sorted((bar.get_x(), bar.get_width()) for row in drawn().containers for bar in row)
    assert all(x + width < y for (x, width), (y, _) in pairwise(bars))


def test_the_smallest_bar_of_a_logarithmic_chart_is_seen(drawn: Callable[[], Axes]) -> None:
    bar_chart("t", "ms", ["m"], {"a": [1], "b": [1000], "c": [0]}, log_y=True)
    assert [len(row) for row in drawn().containers] == [1, 1, 0]  # 0 has no place there
    low, high = drawn().get_ylim()
    assert math.log(1 / low) / math.log(high / low) > 0.05


def test_what_cannot_be_drawn_is_left_out(drawn: Callable[[], Axes]) -> None:
    points = [(1.0, math.nan), (2.0, -1.0), (3.0, 5.0)]
    line_chart("t", "x", "y", {"a": points}, log_y=True)
    assert [_points(line).tolist() for line in drawn().lines] == [[[3.0, 5.0]]]


def test_nothing_to_draw_is_said() -> None:
    with pytest.raises(ValueError, match="nothing to draw"):
        line_chart("t", "x", "y", {})
    with pytest.raises(ValueError, match="nothing to draw"):
        bar_chart("t", "y", ["g"], {"a": [0.0]}, log_y=True)
    with pytest.raises(ValueError, match="a has 1 values for 2 groups"):
        bar_chart("t", "y", ["g", "h"], {"a": [1.0]})


def test_the_same_data_gives_the_same_file(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_charts([(name, bar_chart("t", "y", ["g"], {"a": [1.0]}))], tmp_path / "new")
    assert (tmp_path / "new/a.svg").read_bytes() == (tmp_path / "new/b.svg").read_bytes()


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plotting, "find_spec", lambda _: None)
    with pytest.raises(plotting.NoMatplotlib, match=r"^plots need matplotlib: pip install"):
        bar_chart("t", "y", ["g"], {"a": [1.0]})
