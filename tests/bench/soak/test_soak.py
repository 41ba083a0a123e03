"""The soak runs at a small size, and its claims can fail."""

from __future__ import annotations

from random import Random
from typing import Any

from nearcast_bench.soak.experiment import claims, run_soak
from nearcast_bench.soak.stream import events_of


def test_a_small_soak() -> None:
    figures = list(run_soak(120, 4, 7, lambda _: None))
    samples = [f for f in figures if f.get("figure") == "soak"]
    assert [s["batches"] for s in samples] == [30, 60, 90, 120]
    total = next(f for f in figures if f.get("figure") == "soak-total")
    assert total["batches"] == 120
    assert total["notifications"] > 0
    assert total["moved"] > 0
    assert len([f for f in figures if "claim" in f]) == 6


def test_claims_can_fail() -> None:
    def sample(n: int, growing: str) -> dict[str, Any]:
        names = ("files", "bytes", "descriptors", "rss_mb", "batch_ms", "restart_ms")
        return {name: 1e7 * n if name == growing else 1e7 for name in names}

    assert all(c["held"] for c in claims([sample(n, "") for n in range(1, 9)]))
    for name in ("files", "bytes", "rss_mb", "restart_ms"):
        found = {c["claim"]: c["held"] for c in claims([sample(n, name) for n in range(1, 9)])}
        assert [claim for claim, held in found.items() if not held] == [f"{name} stay as they are"]


def test_the_same_seed_is_the_same_stream() -> None:
    one, two = ([events_of(n, rng) for n in range(20)] for rng in (Random(3), Random(3)))
    assert one == two
