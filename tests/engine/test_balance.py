"""Decisions on the balance fall anywhere in logs, and none shows in the notifications."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, cast

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.contract import run_log
from tests.engine.decisions import EAGER, WAYS, Json, index_for, made

from nearcast.engine.options.settings import Settings
from nearcast.kinds import KINDS
from nearcast.model.space import Space
from nearcast.routing import ROUTERS
from nearcast.routing.balance import Balance
from nearcast.testing.oracle import Order
from nearcast.testing.strategies import event_logs, spaces

BALANCING = [name for name in KINDS["range"].routers if ROUTERS[name].balances]
RANGE_INDEXES = KINDS["range"].indexes


@pytest.mark.parametrize("order", ["time", "arrival"])
@pytest.mark.parametrize("name", WAYS)
def test_each_kind_of_decision_does_not_show(name: str, order: Order, memory: Path) -> None:
    """With the usual index by time, with that of the router's paper as events arrive."""
    run, _ = made(WAYS[name], index_for(WAYS[name], order), order, memory, Random(name))
    assert WAYS[name].kind in run.kinds()


@pytest.mark.parametrize("router", BALANCING)
def test_every_router_that_can_balance_does(router: str, memory: Path) -> None:
    """On all that it can do, with the indexes in turn."""
    index = RANGE_INDEXES[BALANCING.index(router) % len(RANGE_INDEXES)]
    balance = Balance(mode="auto", side=8, slack=1.0, gain=0.0, beta=0.0, every=6, **EAGER)
    settings = WAYS["split"].settings(index, "time", memory, router, balance)
    assert run_log(memory, WAYS["split"].log(0, "time"), settings, 10, Random(router)).kinds()


def test_the_price_of_moving_can_be_too_high(memory: Path) -> None:
    """Tornado: C_t grows with beta, so that the shift that is made at 0 is not worth it."""
    way = WAYS["vertical shift"]
    log = way.log(way.seeds[0], "time")
    for beta in (0.0, 1e6):
        balance = Balance(mode="local", beta=beta, **EAGER)
        folder = memory / str(beta)
        settings = way.settings("fast", "time", folder, balance=balance)
        assert bool(run_log(folder, log, settings).kinds()) == (beta == 0)


balances = st.builds(
    Balance,
    mode=st.sampled_from(["local", "global", "auto"]),
    threshold=st.sampled_from([1.0, 1.3]),
    least=st.just(0),
    wait=st.sampled_from([0, 2]),
    selection=st.sampled_from(["dp", "gr", "si", "ra"]),
    slack=st.sampled_from([0.2, 1.0]),
    side=st.sampled_from([1, 4, 16]),
    rounds=st.sampled_from([1, 3]),
    gain=st.sampled_from([0.0, 0.1]),
    few=st.sampled_from([0.0, 0.4]),
    every=st.integers(1, 6),
    beta=st.sampled_from([0.0, 1e-4, 1.0]),
    rectangles=st.sampled_from([1, 2, 8]),
)


@st.composite
def busy_logs(draw: st.DrawFn, space: Space) -> list[Json]:
    """A log of edges in the middle of a town, whose loads give cause for decisions."""
    edges = draw(event_logs(space, 20))
    first = edges[0]["time"] if edges and isinstance(edges[0]["time"], int) else 0
    way = WAYS[draw(st.sampled_from(list(WAYS)))]
    events = way.log(draw(st.integers(0, 99)), draw(st.sampled_from(["time", "arrival"])))[:45]
    events = [e | {"time": e["time"] + first} for e in events]
    at = draw(st.integers(0, len(events)))
    return events[:at] + edges + events[at:]


def test_decisions_anywhere_in_any_log_do_not_show(module_memory: Path) -> None:
    kinds: Counter[str] = Counter()

    @given(data=st.data())
    @hypothesis.settings(max_examples=15)
    def runs(data: st.DataObject) -> None:
        space = data.draw(spaces)
        order = cast(Order, data.draw(st.sampled_from(["time", "arrival"])))
        strategy = f"{data.draw(st.sampled_from(BALANCING))}+{data.draw(indexes)}"
        events = data.draw(busy_logs(space))
        with TemporaryDirectory(dir=module_memory) as folder:
            settings = Settings(
                space=space,
                shards=data.draw(st.integers(2, 4)),
                strategies={"range": strategy},
                order=order,
                warmup=data.draw(st.integers(1, 6)),
                balance=data.draw(balances),
                arena=str(Path(folder, "arena")),
            )
            trouble = data.draw(st.randoms(use_true_random=False))
            batch_events = data.draw(st.integers(5, 9))
            kinds.update(run_log(Path(folder), events, settings, batch_events, trouble).kinds())

    indexes = st.sampled_from(RANGE_INDEXES)
    runs()
    assert len(kinds) >= 4, kinds  # or nothing was shown


# -- logs that are hard to balance -------------------------------------------------------------


def _publish(n: int, x: float, y: float, words: str) -> Json:
    return {"op": "publish", "id": f"o{n}", "time": n, "at": [x, y], "text": words}


def _subscribe(n: int, bbox: list[float], where: str) -> Json:
    query = {"kind": "range", "region": {"bbox": bbox}, "where": where}
    return {"op": "subscribe", "id": f"s{n}", "time": n, "query": query}


def whole_world(rng: Random) -> Iterator[Json]:
    """Every query covers the whole world; the hot spot jumps."""
    for n in range(150):
        where = rng.choice(("a", "b", "a OR c", "a AND b", "NOT b", ""))
        if n % 5 == 0:
            yield _subscribe(n, [-180, -90, 180, 90], where)
        else:
            spot = (n // 60) * 20
            x, y = rng.gauss(spot, 2), rng.gauss(spot / 2, 1)
            yield _publish(n, x, y, rng.choice(("a", "b", "a b", "c")))


def one_keyword(rng: Random) -> Iterator[Json]:
    """A keyword in every object and every query."""
    for n in range(120):
        x, y = rng.uniform(-10, 10), rng.gauss(0, 1) + n // 40
        if n % 3 == 0:
            yield _subscribe(n, [x - 1, y - 1, x + 1, y + 1], rng.choice(("a", "a AND b")))
        else:
            yield _publish(n, x, y, rng.choice(("a", "a b")))


def one_place(rng: Random) -> Iterator[Json]:
    """All in one place: most shards receive nothing, and only words can be divided."""
    for n in range(120):
        if n % 4 == 0:
            yield _subscribe(n, [9, 9, 11, 11], rng.choice("abcdefgh"))
        elif n % 17 == 1:
            yield _publish(n, rng.uniform(-50, 50), rng.uniform(-50, 50), "z")
        else:
            yield _publish(n, 10, 10, " ".join(rng.sample("abcdefgh", 2)))


HARD = (whole_world, one_keyword, one_place)


@pytest.mark.parametrize("strategy", ["ps2stream+gi2", "tornado+fast"])
@pytest.mark.parametrize("make", HARD, ids=lambda m: m.__name__)
def test_what_is_hard_to_balance(make: Any, strategy: str, memory: Path) -> None:
    rng = Random(f"{make.__name__} {strategy}")
    balance = Balance(mode="auto", side=32, slack=1.0, beta=0.0, **EAGER)
    settings = Settings(
        shards=4,
        strategies={"range": strategy},
        warmup=5,
        balance=balance,
        arena=str(memory / "arena"),
    )
    kinds = run_log(memory, list(make(rng)), settings, 10, rng).kinds()
    # Space cannot divide one place; words can.
    assert kinds or (strategy == "tornado+fast" and make is one_place)
