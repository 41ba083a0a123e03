"""Plots are well-formed and hold every line."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from nearcast.bench.plot import line_plot

NAME = "{http://www.w3.org/2000/svg}"


def test_every_line_is_drawn_and_named() -> None:
    text = line_plot("a < b", "x", "ms", {"one": [(1, 10), (2, 1000)], "two": [(1, 0.5)]})
    root = ET.fromstring(text)
    assert len(root.findall(f"{NAME}polyline")) == 2
    assert len(root.findall(f"{NAME}circle")) == 3
    assert {"one", "two", "a < b"} <= {t.text for t in root.findall(f"{NAME}text")}


def test_larger_is_higher() -> None:
    root = ET.fromstring(line_plot("t", "x", "y", {"a": [(0, 1), (1, 100)]}))
    low, high = root.findall(f"{NAME}circle")
    assert float(high.attrib["cy"]) < float(low.attrib["cy"])


def test_nothing_to_plot_is_said() -> None:
    with pytest.raises(ValueError, match="nothing to plot"):
        line_plot("t", "x", "y", {})
