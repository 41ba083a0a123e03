"""Decisions on the balance fall anywhere in random logs, and none shows in the notifications."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.engine.contract import Miniature, difference, expected, told, write_log

from nearcast.engine.balance import Balancer
from nearcast.engine.live import Tailer
from nearcast.engine.settings import Settings
from nearcast.engine.source import Feed
from nearcast.model.space import Space
from nearcast.routing.balance import Balance
from nearcast.testing.logs import random_log
from nearcast.testing.oracle import Order

Json = dict[str, Any]
EAGER: dict[str, Any] = {"threshold": 1.0, "least": 0, "wait": 0}  # decide whenever it can be


def run_log(
    folder: Path,
    events: list[Json],
    strategy: str,
    balance: Balance,
    rng: Random,
    space: Space = Space.GEOGRAPHIC,
    order: Order = "time",
    shards: int = 4,
    batch_events: int = 10,
) -> Counter[str]:
    """Run a log with some batches repeated, check it against the oracle; decisions by kind."""
    settings = Settings(
        space=space,
        shards=shards,
        strategies={"range": strategy},
        order=order,
        warmup=rng.choice((1, 10)),
        balance=balance,
        arena=str(folder / "arena"),
    )
    run = Miniature(settings, folder)
    (folder / "in").mkdir()
    log = write_log(folder / "in" / "log.jsonl", events)
    if order == "time":
        run.plan(log, batch_events, 2)
    else:
        Tailer([log.parent], run.checkpoint, batch_events, 2).poll()
    for n in range(len(Feed(run.checkpoint))):
        run.batch(n)
        if rng.random() < 0.3:
            again = _files(run.checkpoint)
            run.batch(n)
            once = _files(run.checkpoint)  # some are forgotten by now
            assert once == {name: again[name] for name in once}  # the same decisions
    assert difference(told(run.out), expected(events, space, order)) == ""
    made = Balancer(run.checkpoint, balance).records()
    return Counter(d["kind"] for record in made for d in record.decisions)


def _files(checkpoint: Path) -> dict[str, bytes]:
    found = [*(checkpoint / "balance").glob("*"), *(checkpoint / "plans").glob("*")]
    return {p.name: p.read_bytes() for p in sorted(found)}


@pytest.mark.parametrize("order", ["time", "arrival"])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("selection", ["dp", "gr", "si", "ra"])
def test_local_adjustments_do_not_show(
    selection: str, seed: int, order: Order, tmp_path: Path
) -> None:
    rng = Random(f"{selection} {seed} {order}")
    space = rng.choice(list(Space))
    events = random_log(rng.randrange(1000), space, 300, rng.choice((0.0, 0.3)))
    balance = Balance(mode="auto", selection=selection, side=16, slack=0.5, **EAGER)
    kinds = run_log(tmp_path, events, "ps2stream", balance, rng, space, order)
    print(kinds)
    assert kinds["migrate"]


@pytest.mark.parametrize("order", ["time", "arrival"])
@pytest.mark.parametrize("mode", ["local", "global", "auto"])
def test_tornado_does_not_show(mode: str, order: Order, tmp_path: Path) -> None:
    kinds: Counter[str] = Counter()
    for seed in range(3):
        rng = Random(f"{mode} {seed} {order}")
        space = rng.choice(list(Space))
        events = random_log(rng.randrange(1000), space, 300, rng.choice((0.0, 0.3)))
        (tmp_path / str(seed)).mkdir()
        balance = Balance(mode=mode, beta=0.0, **EAGER)
        kinds += run_log(tmp_path / str(seed), events, "tornado", balance, rng, space, order)
    print(kinds)
    assert kinds
