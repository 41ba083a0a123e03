"""The picture of the balance, and what the summary says of it."""

from __future__ import annotations

from xml.etree import ElementTree

from nearcast.engine.balance import HOLDS_AFTER, Record
from nearcast.engine.picture import SHOWN, picture
from nearcast.engine.reports import BatchRecord, tell_balance
from nearcast.engine.shard import Report
from nearcast.routing.balance import Balance, Counts

SVG = "{http://www.w3.org/2000/svg}"


def record(batch: int) -> Record:
    decision = {"kind": "migrate", "reason": "shard 0 has <more> & more", "cells": 1}
    before, after = [[0, 0], [0, -1]], [[0, 1], [0, -1]]
    uneven, even = [9.0, 1.0], [5.0, 5.0]
    return Record(batch, "range", uneven, [decision], uneven, even, [0, 0, 1, 1], before, after)


def test_a_drawing_for_each_adjustment() -> None:
    loads = {n: [9.0, 1.0] if n < 4 else [5.0, 5.0] for n in range(40)}
    root = ElementTree.fromstring(picture([record(2)], loads, 1.2))
    assert len(root.findall(f"{SVG}circle")) == 1
    [group] = root.findall(f"{SVG}g")
    assert group.findtext(f"{SVG}title") == "shard 0 has <more> & more"
    colours = {r.get("fill") for r in group.findall(f"{SVG}rect")}
    assert len(colours) == 3  # two shards, and a cell that is divided by text
    many = ElementTree.fromstring(picture([record(n) for n in range(30)], loads, 1.2))
    assert len(many.findall(f"{SVG}g")) == SHOWN


def test_a_drawing_without_batches_after_it() -> None:
    assert ElementTree.fromstring(picture([record(2)], {}, 1.2)).tag == f"{SVG}svg"


def batch(number: int, loads: list[int], moved: int = 0) -> BatchRecord:
    reports = [
        Report(shard, number, counts={"range": Counts(objects=n)}, moved=moved, moved_bytes=moved)
        for shard, n in enumerate(loads)
    ]
    return BatchRecord(number, 1.0, reports)


def test_the_summary_has_loads_before_expected_and_after() -> None:
    records = [batch(2, [9, 1]), batch(3, [9, 1], 7), batch(2 + HOLDS_AFTER, [6, 4])]
    told = tell_balance([record(2)], records, Balance("auto"))
    assert told["mode"] == "auto"
    [adjustment] = told["adjustments"]
    assert (adjustment["batch"], adjustment["holds_from"], adjustment["moved"]) == (2, 4, 14)
    assert adjustment["imbalance_before"] == 1.8
    assert adjustment["imbalance_expected"] == 1.0
    assert adjustment["imbalance_after"] == 1.2
    assert adjustment["decisions"][0]["reason"]
    [last] = tell_balance([record(2)], records[:2], Balance())["adjustments"]
    assert last["imbalance_after"] is None
