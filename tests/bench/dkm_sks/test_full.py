"""`nearcast bench dkm-sks --full`, small: workers in processes of their own, fed in step."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from nearcast_bench.dkm_sks.full import WARM, run_full
from nearcast_bench.dkm_sks.load import Setting


def test_two_workers_on_a_file_of_places(tmp_path: Path) -> None:
    n = 600
    places = {
        "lon": [i % 40 / 10 for i in range(n)],
        "lat": [i % 31 / 10 for i in range(n)],
        "keywords": [["services", f"kind {i % 7}"] for i in range(n)],
    }
    path = tmp_path / "places.parquet"
    pq.write_table(pa.table(places), path)
    setting = Setting(subscriptions=300, objects=400, workers=2, ticks=2)
    figures = list(run_full(setting, str(path), lambda _: None))
    load, tick = (f for f in figures if "figure" in f)
    assert load["workload"] == tick["workload"] == "places"
    assert len(load["workers"]) == 2
    assert (len(tick["wall_ms_of_first_ticks"]), len(tick["wall_ms_by_tick"])) == (WARM, 2)
    assert tick["changes_per_object"] > 0
    assert [f["claim"] for f in figures if "claim" in f] == [
        "tick_ms",
        "examined_per_change",
        "load_seconds",
        "bytes",
    ]
