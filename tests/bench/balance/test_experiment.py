"""`bench balance`, small: its stream, its check, its verdict."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from nearcast.workload.shifting import Shifting
from nearcast_bench.balance import experiment
from nearcast_bench.balance.experiment import Setting, after_jumps, check, run, verdict
from nearcast_bench.balance.replay import write_log

STREAM = Shifting(queries=400, batch=300, phase=5, side_max=0.2, churn=20)


@pytest.mark.parametrize("strategy", ["ps2stream", "tornado"])
def test_a_small_run(strategy: str) -> None:
    setting = Setting(
        STREAM,
        batches=15,
        strategies=(strategy,),
        balance={"least": 0, "threshold": 1.0, "beta": 0.0},
    )
    off, on, judged = run(setting, lambda _: None)
    assert off["wrong_notifications"] == on["wrong_notifications"] == 0
    assert off["adjustments"] == 0
    assert on["adjustments"] > 0
    assert len(on["imbalance_after_jump"]) == STREAM.phase
    assert judged["strategy"] == strategy


def test_the_check_finds_what_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "SAMPLED", 10_000)
    assert check(STREAM, 3, tmp_path) > 0
    (tmp_path / "b.jsonl").write_text('{"id":"1","event":"match","object":"none","time":1}\n')
    assert check(STREAM, 3, tmp_path) > 1


def test_the_worst_after_a_jump() -> None:
    assert after_jumps([9, 9, 3, 1, 2, 4], 2) == [3, 4]
    off = {"objects_per_second": 10}
    on = {"strategy": "s", "balance": "auto", "objects_per_second": 20}
    reported = verdict(off, on | {"imbalance_after_jump": [3.0] * 10 + [1.2, 1.1]})
    assert reported["fast_enough"]
    assert reported["even_enough"]
    assert reported["worst_imbalance_from_10_batches_on"] == 1.2


def test_the_stream_as_a_log(tmp_path: Path) -> None:
    write_log(STREAM, 2, tmp_path / "log.parquet")
    table = pq.read_table(tmp_path / "log.parquet")
    assert table.num_rows == STREAM.queries + 2 * STREAM.batch
    assert table["time"].to_pylist() == sorted(table["time"].to_pylist())
