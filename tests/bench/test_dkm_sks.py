"""The experiment of DkM-SKS runs, checks its answers, and judges claims by the figures alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nearcast.bench.dkm_sks import ALGORITHMS, Setting, check_results, claims, load, plots, run
from nearcast.bench.knn_source import Source
from nearcast.model.errors import NearcastError

SMALL = Setting(subscriptions=300, objects=400, workers=2, ticks=2)


def test_a_small_run(tmp_path: Path) -> None:
    told = list(run(SMALL, None, False, lambda _: None))
    by = {t["algorithm"]: t for t in told if "algorithm" in t}
    assert list(by) == [a.name for a in ALGORITHMS]
    assert len({t["changes_per_object"] for t in by.values()}) == 1
    assert by["dkm-sks+pyramid"]["examined_per_change"] <= by["kop"]["examined_per_change"]
    assert all(isinstance(t["held"], bool) for t in told if "claim" in t)
    assert [p.name for p in plots(told, tmp_path)] == ["dkm-sks-figure-7-place.svg"]


def test_a_wrong_result_stops_it() -> None:
    loaded = load(SMALL, Source("place", 1))
    objects = Source("place", 2).objects(400)
    with pytest.raises(NearcastError, match="wrong results"):
        check_results(loaded.index, objects)


def test_claims_can_fail() -> None:
    figure = "tables 2, 3; figure 7"

    def told(algorithm: str, update: float) -> dict[str, Any]:
        return {
            "figure": figure, "algorithm": algorithm, "workload": "place", "update_ms": update,
            "update_ms_by_tick": list(np.linspace(update, 2 * update, 6)), "knn_ms": update,
            "insert_ms": update, "delete_ms": 0.0, "load_balance_ms": update,
            "examined_per_change": 9.0,
        }  # fmt: skip

    points = [told(a.name, 1.0 + n) for n, a in enumerate(ALGORITHMS)]
    assert not any(c["held"] for c in claims(points))
