"""Charts are well-formed, hold everything once, and larger values stand higher."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET

import pytest

from nearcast.bench.chart import bar_chart, line_chart

NAME = "{http://www.w3.org/2000/svg}"


def _texts(root: ET.Element) -> set[str | None]:
    return {t.text for t in root.iter(f"{NAME}text")}


def _labels(root: ET.Element, axis_left: str) -> list[str | None]:
    return [t.text for t in root.iter(f"{NAME}text") if t.attrib["x"] == axis_left]


def test_every_line_is_drawn_and_named() -> None:
    series = {"one": [(1.0, 10.0), (2.0, 1000.0)], "a < b": [(1.0, 0.5)]}
    root = ET.fromstring(line_chart("this < that", "x", "ms", series, log_y=True))
    assert len(root.findall(f"{NAME}polyline")) == 2
    assert len(root.findall(f"{NAME}circle")) == 3
    assert {"one", "a < b", "this < that", "x", "ms", "1", "2"} <= _texts(root)


@pytest.mark.parametrize("log_y", [False, True])
def test_larger_is_higher(log_y: bool) -> None:
    chart = line_chart("t", "x", "y", {"a": [(0, 1), (1, 10), (2, 100)]}, log_y)
    heights = [float(c.attrib["cy"]) for c in ET.fromstring(chart).findall(f"{NAME}circle")]
    assert heights == sorted(heights, reverse=True)
    even = math.isclose(heights[0] - heights[1], heights[1] - heights[2], abs_tol=0.2)
    assert even == log_y


def test_a_linear_axis_begins_at_zero_and_ends_at_a_round_number() -> None:
    root = ET.fromstring(line_chart("t", "x", "y", {"a": [(0, 9.3), (1, 23.4)]}))
    labels = _labels(root, "66.0")
    assert labels[1] == "0"  # the first is the axis' name
    assert labels[-1] == "25"


def test_large_numbers_are_short() -> None:
    root = ET.fromstring(line_chart("t", "x", "y", {"a": [(250_000, 1), (2_500_000, 2)]}))
    assert {"250k", "2.5M"} <= _texts(root)


def test_labels_do_not_stand_on_each_other() -> None:
    root = ET.fromstring(line_chart("t", "x", "y", {"a": [(1000, 1), (1001, 2), (9000, 3)]}))
    assert {"1000", "9000"} <= _texts(root)
    assert "1001" not in _texts(root)


def test_bars_stand_on_the_axis() -> None:
    root = ET.fromstring(bar_chart("t", "ms", ["m", "n"], {"a": [1, 4], "b": [2, 0.5]}))
    bars = [r for r in root.findall(f"{NAME}rect") if r.find(f"{NAME}title") is not None]
    feet = {round(float(b.attrib["y"]) + float(b.attrib["height"]), 1) for b in bars}
    assert len(feet) == 1
    tall = {b[0].text: float(b.attrib["height"]) for b in bars}
    assert tall["n, a: 4"] == pytest.approx(4 * tall["m, a: 1"], rel=0.01)
    assert {"m", "n", "a", "b"} <= _texts(root)


def test_the_smallest_bar_of_a_logarithmic_chart_is_seen() -> None:
    root = ET.fromstring(bar_chart("t", "ms", ["m"], {"a": [1], "b": [1000], "c": [0]}, log_y=True))
    bars = [r for r in root.findall(f"{NAME}rect") if r.find(f"{NAME}title") is not None]
    assert len(bars) == 2  # 0 has no place there
    assert all(float(b.attrib["height"]) > 5 for b in bars)


def test_what_cannot_be_drawn_is_left_out() -> None:
    points = [(1.0, math.nan), (2.0, -1.0), (3.0, 5.0)]
    root = ET.fromstring(line_chart("t", "x", "y", {"a": points}, log_y=True))
    assert len(root.findall(f"{NAME}circle")) == 1


def test_nothing_to_draw_is_said() -> None:
    with pytest.raises(ValueError, match="nothing to draw"):
        line_chart("t", "x", "y", {})
    with pytest.raises(ValueError, match="nothing to draw"):
        bar_chart("t", "y", ["g"], {"a": [0.0]}, log_y=True)
    with pytest.raises(ValueError, match="a has 1 values for 2 groups"):
        bar_chart("t", "y", ["g", "h"], {"a": [1.0]})
