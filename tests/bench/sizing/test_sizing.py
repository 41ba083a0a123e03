"""The figures for sizing are counted at a small size."""

from __future__ import annotations

from nearcast.kinds import KINDS
from nearcast_bench.sizing.experiment import run_sizing


def test_a_small_run() -> None:
    figures = list(run_sizing(300, 1, lambda _: None))
    assert [f["of"] for f in figures] == [*KINDS, "objects"]
    assert all(f["arena_bytes_each"] > 64 and f["state_bytes_each"] > 32 for f in figures)
