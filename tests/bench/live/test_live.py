"""The latency experiment runs at a small size, through a real `nearcast run`."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from nearcast.kinds import KINDS
from nearcast.model.space import Space
from nearcast.wire.jsonl import decode_jsonl
from nearcast_bench.live.events import PROBE, post, subscriptions
from nearcast_bench.live.experiment import Setting, _publish, run_live


def test_its_events_are_valid() -> None:
    rng = Random(1)
    lines = [*subscriptions(tuple(KINDS), 3, 1000, rng), post("o", 1001, rng)]
    decoded = decode_jsonl("".join(lines).encode(), Space.GEOGRAPHIC, KINDS)
    assert decoded.rejects.num_rows == 0
    assert decoded.events == Counter(subscribe=1 + 3 * len(KINDS), publish=1)
    assert json.loads(lines[0])["id"] == PROBE


def test_posts_come_at_the_rate(tmp_path: Path) -> None:
    sent = _publish(tmp_path, 1, 50, 1, Random(1))
    lines = [line for p in sorted(tmp_path.iterdir()) for line in p.read_text().splitlines()]
    assert [json.loads(line)["id"] for line in lines] == list(sent)
    assert 100 < len(sent) <= 151  # in three seconds
    assert 0 < sum(counts for _, counts in sent.values()) < len(sent)


@pytest.mark.spark
def test_a_small_run() -> None:
    setting = Setting(subscriptions=20, rates=(50,), seconds=1, kinds=("knn",))
    (figure,) = run_live(setting, lambda _: None)
    assert figure["posts"] > 20
    assert 0 < figure["p50_ms"] <= figure["p90_ms"] <= figure["p99_ms"] <= figure["max_ms"]
    assert figure["notifications"] >= figure["posts"]
    assert figure["batches"] > 0
