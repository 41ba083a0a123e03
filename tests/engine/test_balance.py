"""Decisions on the balance fall anywhere in random logs, and none shows in the notifications."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
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
    (folder / "in").mkdir(parents=True)
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
    assert len(list((run.checkpoint / "plans").glob("*"))) <= 10  # old tables are forgotten
    made = Balancer(run.checkpoint, balance).records()
    return Counter(d["kind"] for record in made for d in record.decisions)


def _files(checkpoint: Path) -> dict[str, bytes]:
    found = [*(checkpoint / "balance").glob("*"), *(checkpoint / "plans").glob("*")]
    return {p.name: p.read_bytes() for p in sorted(found)}


def random_runs(
    folder: Path, strategy: str, balance: Balance, order: Order, runs: int, events: int = 250
) -> Counter[str]:
    """Some random logs; all decisions by kind."""
    kinds: Counter[str] = Counter()
    for seed in range(runs):
        rng = Random(f"{strategy} {balance} {seed} {order}")
        space = rng.choice(list(Space))
        log = random_log(rng.randrange(1000), space, events, rng.choice((0.0, 0.3)))
        shards = rng.choice((3, 4, 6))
        kinds += run_log(folder / str(seed), log, strategy, balance, rng, space, order, shards)
    return kinds


@pytest.mark.parametrize("order", ["time", "arrival"])
@pytest.mark.parametrize("selection", ["dp", "gr", "si", "ra"])
def test_local_adjustments_do_not_show(selection: str, order: Order, memory: Path) -> None:
    balance = Balance(mode="local", selection=selection, side=16, **EAGER)
    assert random_runs(memory, "ps2stream", balance, order, 1)["migrate"]


def test_both_phases_do_not_show(memory: Path) -> None:
    balance = Balance(mode="auto", side=4, slack=1.0, **EAGER)
    kinds = random_runs(memory, "ps2stream", balance, "time", 2)
    assert {"migrate", "split", "merge"} <= set(kinds), kinds


@pytest.mark.parametrize("strategy", ["text-metric", "space-kd"])
def test_baselines_can_be_adjusted_too(strategy: str, memory: Path) -> None:
    balance = Balance(mode="local", side=8, **EAGER)
    assert random_runs(memory, strategy, balance, "time", 1)["migrate"]


@pytest.mark.parametrize("order", ["time", "arrival"])
def test_corner_shifts_and_splits_do_not_show(order: Order, memory: Path) -> None:
    balance = Balance(mode="local", beta=0.0, **EAGER)
    kinds = random_runs(memory, "tornado", balance, order, 4)
    assert {"corner shift", "split/merge"} <= set(kinds), kinds


@pytest.mark.parametrize("axis", ["vertical shift", "horizontal shift"])
def test_shifts_do_not_show(axis: str, memory: Path) -> None:
    """Two shards and one line: its boundary follows the objects."""
    rng = Random(axis)
    events = []
    for n in range(250):
        place = rng.gauss(n / 5, 4) if n % 10 else rng.uniform(0, 50)
        x, y = (place, 1.0) if axis == "vertical shift" else (1.0, place)
        box = [x - 3, y - 3, x + 3, y + 3]
        events.append(_subscribe(n, box, "a") if n % 4 == 0 else _publish(n, x, y, "a b"))
    balance = Balance(mode="local", beta=0.0, **EAGER)
    kinds = run_log(memory / "run", events, "tornado", balance, rng, shards=2)
    assert set(kinds) == {axis}


@pytest.mark.parametrize("mode", ["global", "auto"])
@pytest.mark.parametrize("strategy", ["tornado", "tornado-uniform"])
def test_new_partitions_do_not_show(strategy: str, mode: str, memory: Path) -> None:
    balance = Balance(mode=mode, beta=0.0, rectangles=1, **EAGER)
    assert random_runs(memory, strategy, balance, "time", 1)["new partitions"]


@pytest.mark.parametrize(("rectangles", "order"), [(2, "time"), (8, "arrival")])
def test_shards_of_several_rectangles_do_not_show(
    rectangles: int, order: Order, memory: Path
) -> None:
    balance = Balance(mode="auto", beta=0.0, rectangles=rectangles, **EAGER)
    kinds = random_runs(memory, "tornado", balance, order, 2)
    assert {"split", "hand-over", "split/merge"} & set(kinds), kinds


def test_new_bounds_do_not_show(memory: Path) -> None:
    """The plan is made in one place, then all goes on far from it."""
    rng = Random("bounds")
    events = []
    for n in range(250):
        middle = 0.0 if n < 60 else 60.0
        x, y = rng.gauss(middle, 4), rng.gauss(middle / 2, 4)
        box = [x - 3, y - 3, x + 3, y + 3]
        events.append(_subscribe(n, box, "a") if n % 4 == 0 else _publish(n, x, y, "a b"))
    kinds = run_log(
        memory / "run", events, "tornado", Balance(mode="auto", beta=1e-4, **EAGER), rng
    )
    assert kinds["new bounds"], kinds


# -- logs that are hard to balance -------------------------------------------------------------


def _publish(n: int, x: float, y: float, words: str) -> Json:
    return {"op": "publish", "id": f"o{n}", "time": n, "at": [x, y], "text": words}


def _subscribe(n: int, bbox: list[float], where: str) -> Json:
    query = {"kind": "range", "region": {"bbox": bbox}, "where": where}
    return {"op": "subscribe", "id": f"s{n}", "time": n, "query": query}


def whole_world(rng: Random) -> Iterator[Json]:
    """Every query covers the whole world; the hot spot jumps."""
    for n in range(250):
        where = rng.choice(("a", "b", "a OR c", "a AND b", "NOT b", ""))
        if n % 5 == 0:
            yield _subscribe(n, [-180, -90, 180, 90], where)
        else:
            spot = (n // 60) * 20
            x, y = rng.gauss(spot, 2), rng.gauss(spot / 2, 1)
            yield _publish(n, x, y, rng.choice(("a", "b", "a b", "c")))


def one_keyword(rng: Random) -> Iterator[Json]:
    """A keyword in every object and every query."""
    for n in range(250):
        x, y = rng.uniform(-10, 10), rng.gauss(0, 1) + n // 80
        if n % 3 == 0:
            yield _subscribe(n, [x - 1, y - 1, x + 1, y + 1], rng.choice(("a", "a AND b")))
        else:
            yield _publish(n, x, y, rng.choice(("a", "a b")))


def one_place(rng: Random) -> Iterator[Json]:
    """All in one place: most shards receive nothing, and only words can be divided."""
    for n in range(250):
        if n % 4 == 0:
            yield _subscribe(n, [9, 9, 11, 11], rng.choice("abcdefgh"))
        elif n % 17 == 1:
            yield _publish(n, rng.uniform(-50, 50), rng.uniform(-50, 50), "z")
        else:
            yield _publish(n, 10, 10, " ".join(rng.sample("abcdefgh", 2)))


HARD = (whole_world, one_keyword, one_place)


@pytest.mark.parametrize("strategy", ["ps2stream", "tornado"])
@pytest.mark.parametrize("make", HARD, ids=lambda m: m.__name__)
def test_what_is_hard_to_balance(make: Any, strategy: str, memory: Path) -> None:
    rng = Random(f"{make.__name__} {strategy}")
    balance = Balance(mode="auto", side=32, slack=1.0, beta=0.0, **EAGER)
    kinds = run_log(memory, list(make(rng)), strategy, balance, rng)
    # Space cannot divide one place; words can.
    assert kinds or (strategy == "tornado" and make is one_place)


# -- two strategies side by side ---------------------------------------------------------------


@pytest.mark.parametrize("order", ["time", "arrival"])
@pytest.mark.parametrize("mode", ["global", "auto"])
def test_two_strategies_at_once_do_not_show(mode: str, order: Order, memory: Path) -> None:
    """A new one begins every few batches; the old one ends when it has few, or after a while."""
    balance = Balance(mode=mode, side=16, gain=0.0, few=0.4, every=5, **EAGER)
    kinds = random_runs(memory, "ps2stream", balance, order, 3)
    assert kinds["repartition"], kinds
    assert kinds["retire"], kinds
