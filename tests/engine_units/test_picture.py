"""The picture of the balance, and what the summary says of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from nearcast.engine.moves.balancer import HOLDS_AFTER, Record
from nearcast.engine.output.picture import SHOWN, colour, picture, write_picture
from nearcast.engine.output.reports import BatchRecord, describe_balance
from nearcast.engine.shard.report import Report
from nearcast.plotting import svg
from nearcast.routing.balance import Balance, Counts

SVG = "{http://www.w3.org/2000/svg}"


def record(batch: int) -> Record:
    decision = {"kind": "migrate", "reason": "shard 0 has <more> & more", "cells": 1}
    before, after = [[0, 0], [0, -1]], [[0, 1], [0, -1]]
    uneven, even = [9.0, 1.0], [5.0, 5.0]
    return Record(batch, "range", uneven, [decision], uneven, even, [0, 0, 1, 1], before, after)


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """What is drawn, beside the bytes that are made of it."""
    seen: list[Figure] = []

    def spy(width: float, height: float, draw: Callable[[Figure], None], place: bool) -> bytes:
        def both(figure: Figure) -> None:
            draw(figure)
            seen.append(figure)

        return svg(width, height, both, place)

    monkeypatch.setattr("nearcast.engine.output.picture.svg", spy)
    return seen


def test_a_drawing_for_each_adjustment(figures: list[Figure]) -> None:
    loads = {n: [9.0, 1.0] if n < 4 else [5.0, 5.0] for n in range(40)}
    root = ElementTree.fromstring(picture([record(2)], loads, 1.2))
    shown = {"".join(text.itertext()) for text in root.iter(f"{SVG}text")}
    assert {"shard 0 has <more> & more", "After batch 2, range: migrate"} <= shown
    ratios, before, after, bars = figures[0].axes
    line, dots, *_ = ratios.lines
    assert np.asarray(line.get_xydata()).tolist() == [[n, 1.8 if n < 4 else 1.0] for n in loads]
    assert np.asarray(dots.get_xydata()).tolist() == [[2 + HOLDS_AFTER, 1.0]]
    cells = {axes: axes.images[0].get_array() for axes in (before, after)}
    for axes, table in ((before, record(2).cells_before), (after, record(2).cells_after)):
        wanted = [[to_rgb(colour(shard)) for shard in row] for row in table]
        assert np.allclose(np.asarray(cells[axes]), wanted)
    assert len({colour(shard) for shard in (0, 1, -1)}) == 3  # -1: divided by text
    heights: list[Any] = [bar for row in bars.containers for bar in row]
    assert [bar.get_height() for bar in heights] == [9.0, 1.0, 5.0, 5.0]
    picture([record(n) for n in range(30)], loads, 1.2)
    assert len(figures[1].axes) == 1 + 3 * SHOWN


def test_a_drawing_without_batches_after_it() -> None:
    assert ElementTree.fromstring(picture([record(2)], {}, 1.2)).tag == f"{SVG}svg"


def test_the_same_data_gives_the_same_file(tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        write_picture(tmp_path / name, [record(2)], {2: [9.0, 1.0]}, 1.2)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_without_matplotlib_a_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("nearcast.plotting.find_spec", lambda _: None)
    write_picture(tmp_path / "balance.svg", [record(2)], {}, 1.2)
    assert not (tmp_path / "balance.svg").exists()
    assert caplog.messages == [
        "balance.svg is not drawn: plots need matplotlib: pip install 'nearcast[plots]'"
    ]


def batch(number: int, loads: list[int], moved: int = 0) -> BatchRecord:
    reports = [
        Report(shard, number, counts={"range": Counts(objects=n)}, moved=moved, moved_bytes=moved)
        for shard, n in enumerate(loads)
    ]
    return BatchRecord(number, 1.0, reports)


def test_the_summary_has_loads_before_expected_and_after() -> None:
    records = [batch(2, [9, 1]), batch(3, [9, 1], 7), batch(2 + HOLDS_AFTER, [6, 4])]
    reported = describe_balance([record(2)], records, Balance("auto"))
    assert reported["mode"] == "auto"
    [adjustment] = reported["adjustments"]
    assert (adjustment["batch"], adjustment["holds_from"], adjustment["moved"]) == (2, 4, 14)
    assert adjustment["imbalance_before"] == 1.8
    assert adjustment["imbalance_expected"] == 1.0
    assert adjustment["imbalance_after"] == 1.2
    assert adjustment["decisions"][0]["reason"]
    [last] = describe_balance([record(2)], records[:2], Balance())["adjustments"]
    assert last["imbalance_after"] is None
