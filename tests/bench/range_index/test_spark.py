"""`nearcast bench range-index --spark`, small: a wrong answer would raise."""

from __future__ import annotations

from pathlib import Path

import pytest

from nearcast_bench.range_index.spark import Setting, run_spark


@pytest.mark.spark
def test_a_small_run(tmp_path: Path) -> None:
    setting = Setting(
        queries=20_000,
        objects=2_000,
        batch_events=1_200,
        shards=3,
        keep=str(tmp_path),
    )
    figure, claim = run_spark(setting, lambda _: None)
    assert figure["copies_per_object"] == 3.0  # `hash` sends every object to every shard
    assert figure["tuples"] == 2_400
    assert figure["batches"] == 2
    assert figure["checked"] > 0
    assert claim["value"] == figure["tuples_per_second"]
