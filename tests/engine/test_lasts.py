"""Subscriptions that look back: what `last` means, whatever shards, batches and moves there are."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.engine.contract import run_log
from tests.engine.test_asks import settings_of

from nearcast.model.space import Space
from nearcast.testing.logs import random_log
from nearcast.testing.oracle import Order

Json = dict[str, Any]
STRATEGIES: tuple[dict[str, str], ...] = (
    {},
    {"range": "random+pyramid", "knn": "random"},
    {"range": "broadcast", "knn": "broadcast+inverted"},
    {"range": "hash+scan", "knn": "random+scan"},
)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("order", ["time", "arrival"])
def test_neither_shards_nor_batches_show(
    seed: int, order: Order, tmp_path: Path, memory: Path
) -> None:
    rng = Random(f"{seed} {order}")
    space = rng.choice(list(Space))
    late = rng.choice((0.0, 0.3))
    events = random_log(seed, space, 100, late, late_controls=late > 0, lasts=0.7)
    settings = settings_of(
        memory,
        space=space,
        shards=rng.choice((1, 2, 3, 5)),
        strategies=STRATEGIES[seed % len(STRATEGIES)],
        order=order,
    )
    run_log(tmp_path, events, settings, rng.choice((3, 10, 25, 1000)), rng, rng.choice((1, 2, 3)))
