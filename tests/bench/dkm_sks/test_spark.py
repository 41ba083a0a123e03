"""`nearcast bench dkm-sks --spark`, small: the pipeline reports what the bare index reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from nearcast_bench.dkm_sks.spark import run_spark


@pytest.mark.spark
def test_both_modes(tmp_path: Path) -> None:
    figures = list(run_spark("place", 200, 1000, 3, 400, str(tmp_path), lambda _: None))
    every, net = (f for f in figures if "figure" in f)
    assert every["objects"] == net["objects"] == 1000
    assert every["notifications"] > net["notifications"] > 0
    assert len([f for f in figures if "claim" in f]) == 2
