"""The comparison of range indexes runs, checks its answers, and judges claims by figures alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nearcast.kinds import KINDS
from nearcast.model.errors import NearcastError
from nearcast.model.space import Space
from nearcast_bench.range_index.experiment import check, claims, measure, names_of, run
from nearcast_bench.range_index.stream import Setting, make_stream

RANGE = KINDS["range"].indexes


@pytest.mark.parametrize("churn", [False, True])
def test_a_small_run(churn: bool) -> None:
    setting = Setting(2_000, 1_000, side_max=0.3, churn=churn)
    reported = list(run(setting, lambda _: None))
    rows = [t for t in reported if "index" in t and "claim" not in t]
    assert [t["index"] for t in rows] == [n for n in RANGE if n != "scan"]
    assert len({(t["matches"], t["checksum"]) for t in rows}) == 1
    assert rows[0]["matches"] > 0
    assert all(t["examined_per_object"] <= t["scanned_per_object"] for t in rows)
    assert [t["held"] for t in reported if "claim" in t]
    assert all(isinstance(t["held"], bool) for t in reported if "claim" in t)


@pytest.mark.parametrize("space", list(Space))
def test_circles_in_the_place_of_boxes(space: Space) -> None:
    setting = Setting(1_000, 300, 0.3, churn=True, shape="circle", space=space)
    setting = replace(setting, indexes=("scan", "pyramid"))
    scan, pyramid = list(run(setting, lambda _: None))[:2]
    assert scan["matches"] == pyramid["matches"] > 0
    assert pyramid["ns_per_match"] > 0


def test_churn_is_one_control_for_five_objects() -> None:
    stream = make_stream(Setting(500, 1_000, churn=True))
    controls = sum(b.controls.num_rows for b in stream.batches if b.controls is not None)
    assert controls == 199
    assert np.sum(stream.begins > 0) == 100
    assert np.sum(stream.ends < 1_000) == 99


def test_the_scan_agrees() -> None:
    setting = Setting(300, 100, side_max=0.5, churn=True, indexes=("scan", "pyramid"))
    reported = [t for t in run(setting, lambda _: None) if "claim" not in t]
    assert [t["index"] for t in reported] == ["scan", "pyramid"]


def test_a_wrong_answer_stops_it() -> None:
    setting = Setting(2_000, 50, side_max=0.5)
    stream = make_stream(setting)
    objects, slots = measure("pyramid", stream, 1).found
    with pytest.raises(NearcastError, match="wrong matches"):
        check((objects[1:], slots[1:]), stream, setting)


def test_an_unknown_index_is_refused() -> None:
    with pytest.raises(NearcastError, match="no range index 'rtree'"):
        names_of(("rtree",))


def test_claims_can_fail() -> None:
    def reported(index: str, rate: int) -> dict[str, Any]:
        return {"index": index, "objects_per_second": rate, "bytes_per_query": 301.0}

    both = [reported("pyramid", 10), reported("gi2", 11)]
    assert [c["held"] for c in claims(both, usual=True)] == [False] * 3
    assert [c["held"] for c in claims(both, usual=False)] == [False]  # targets are of the usual one
    assert list(claims([reported("gi2", 1)], usual=True)) == []
