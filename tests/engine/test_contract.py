"""The steps of the engine against the oracle, without a JVM: many logs, cuts and strategies."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from tests.engine.contract import Miniature, difference, expected, told, write_log

from nearcast.engine.live import Tailer
from nearcast.engine.settings import Settings
from nearcast.engine.source import Feed
from nearcast.index import INDEXES
from nearcast.model.space import Space
from nearcast.routing import ROUTERS, GridRouter
from nearcast.testing.logs import random_log
from nearcast.testing.oracle import Order

STRATEGIES: tuple[dict[str, str], ...] = (
    {},
    {"range": "random", "knn": "random"},
    {"range": "random+pyramid", "knn": "hash"},
    {"range": "broadcast", "knn": "random+scan"},
    {"range": "random+scan", "knn": "broadcast+inverted"},
)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("order", ["time", "arrival"])
def test_neither_shards_nor_batches_show(seed: int, order: Order, tmp_path: Path) -> None:
    rng = Random(f"{seed} {order}")
    space = rng.choice(list(Space))
    events = random_log(seed, space, 80, rng.choice((0.0, 0.3)), late_controls=True)
    settings = Settings(
        space=space,
        shards=rng.choice((1, 2, 3, 5)),
        strategies=STRATEGIES[seed % len(STRATEGIES)],
        order=order,
        arena=str(tmp_path / "arena"),
    )
    run = Miniature(settings, tmp_path)
    (tmp_path / "in").mkdir()
    log = write_log(tmp_path / "in" / "log.jsonl", events)
    batch_events, splits = rng.choice((3, 10, 25, 1000)), rng.choice((1, 2, 3))
    if order == "time":
        run.plan(log, batch_events, splits)
    else:
        Tailer([log.parent], run.checkpoint, batch_events, splits).poll()
    run.finish()
    assert difference(told(run.out), expected(events, space, order)) == ""


def _planned(kind: str, strategy: str, order: Order, folder: Path, shards: tuple[int, ...]) -> None:
    """A run in which a plan, and with it moves, come in the middle of a random log."""
    rng = Random(f"{strategy} {order}")
    space = rng.choice(list(Space))
    events = random_log(rng.randrange(1000), space, 120, rng.choice((0.0, 0.3)))
    settings = Settings(
        space=space,
        shards=rng.choice(shards),
        strategies={kind: strategy},
        order=order,
        warmup=rng.choice((1, 10)),
        arena=str(folder / "arena"),
    )
    run = Miniature(settings, folder)
    (folder / "in").mkdir()
    log = write_log(folder / "in" / "log.jsonl", events)
    if order == "time":
        run.plan(log, 10, 2)
    else:
        Tailer([log.parent], run.checkpoint, 10, 2).poll()
    for n in range(len(Feed(run.checkpoint))):
        run.batch(n)
        if rng.random() < 0.3:  # a batch that is repeated repeats its decisions
            run.batch(n)
    assert (run.checkpoint / "plans").exists()
    assert difference(told(run.out), expected(events, space, order)) == ""


@pytest.mark.parametrize("router", ["kop", "sop", "dkm-sks"])
@pytest.mark.parametrize("index", ["scan", "inverted", "grid-inverted", "rect-inverted", "pyramid"])
@pytest.mark.parametrize("order", ["time", "arrival"])
def test_a_plan_in_the_middle_does_not_show(
    router: str, index: str, order: Order, tmp_path: Path
) -> None:
    _planned("knn", f"{router}+{index}", order, tmp_path, (2, 3))


GRID_ROUTERS = [name for name, router in ROUTERS.items() if issubclass(router, GridRouter)]


@pytest.mark.parametrize("order", ["time", "arrival"])
@pytest.mark.parametrize(
    "strategy",
    [
        *(f"{router}+pyramid" for router in GRID_ROUTERS),
        *(f"ps2stream+{n}" for n, i in INDEXES.items() if "range" in i.kinds and n != "pyramid"),
    ],
)
def test_a_table_of_cells_and_words_does_not_show(
    strategy: str, order: Order, tmp_path: Path
) -> None:
    _planned("range", strategy, order, tmp_path, (2, 3, 5))


def test_a_cut_within_an_instant_does_not_show(tmp_path: Path) -> None:
    """The window lets go at 5, but at 5 the subscription has ended, as the next batch says."""
    query = {"kind": "knn", "at": [0, 0], "k": 1, "window": 5}
    events = [
        {"op": "subscribe", "id": "s", "time": 0, "query": query},
        {"op": "publish", "id": "o", "time": 0, "at": [0, 0]},
        {"op": "unsubscribe", "id": "another", "time": 5},
        {"op": "unsubscribe", "id": "s", "time": 5},
    ]
    wanted = expected(events, "geographic")
    assert wanted.total() == 1
    for batch_events in (1, 2, 3, 4):
        folder = tmp_path / f"{batch_events}"
        folder.mkdir()
        run = Miniature(Settings(shards=1, arena=str(folder / "arena")), folder)
        run.plan(write_log(folder / "log.jsonl", events), batch_events)
        run.finish()
        assert difference(told(run.out), wanted) == ""
