"""C(w) follows what a shard holds: what ends by time is taken off too, and nothing twice.

By the cost model of `kop` a subscription costs the same whenever it is queried (equation 1), so at
the end of each batch C(w) must be the sum over what the shard has to serve from then on.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.engine.contract import Miniature, write_log

from nearcast.engine.feed.source import Feed
from nearcast.engine.feed.tailer import Tailer
from nearcast.engine.moves.control import Controls
from nearcast.engine.options.settings import Settings
from nearcast.engine.shard.state import StateFiles
from nearcast.index.arena import Memory
from nearcast.kinds import KINDS
from nearcast.model.space import Space
from nearcast.routing.costed import counted
from nearcast.routing.dkm.kop import Kop
from nearcast.testing.logs import random_log
from nearcast.testing.oracle import Order

Json = dict[str, Any]
SHARDS = 3


def start(
    folder: Path, events: list[Json], order: Order, batch_events: int, warmup: int
) -> Miniature:
    settings = Settings(
        space=Space.PLANAR,
        shards=SHARDS,
        strategies={"knn": "kop"},
        order=order,
        warmup=warmup,
        arena=str(folder / "arena"),
    )
    run = Miniature(settings, folder)
    (folder / "in").mkdir()
    log = write_log(folder / "in" / "log.jsonl", events)
    if order == "time":
        run.plan(log, batch_events)
    else:
        Tailer([log.parent], run.checkpoint, batch_events, 1).poll()
    return run


def table_after(run: Miniature, batch: int) -> Kop | None:
    """The router of the next batch, if by then a plan holds and nothing is on its way."""
    control, _ = Controls(run.checkpoint, run.settings).at(batch + 1)
    if "knn" not in control.tables or control.imports:
        return None
    return Kop(SHARDS, control.tables["knn"])


def held_costs(run: Miniature, batch: int, router: Kop) -> list[float]:
    """The costs of what each shard has to serve after `batch`, from its state files."""
    sums = []
    for shard, manifest in enumerate(run.states[batch + 1]):
        indexes = {
            name: kind.index("inverted" if "inverted" in kind.indexes else kind.indexes[-1])(
                Space.PLANAR, Memory()
            )
            for name, kind in KINDS.items()
        }
        StateFiles(run.checkpoint, shard).rebuild(manifest, indexes)
        slots = counted(indexes["knn"], manifest.now)
        sums.append(float(router.costs(indexes["knn"].rows(slots)[0]).sum()))
    return sums


def check(run: Miniature, rng: Random) -> int:
    """Run all batches, some of them again, and compare after each; how often there was a plan."""
    planned = 0
    for n in range(len(Feed(run.checkpoint))):
        run.batch(n)
        if rng.random() < 0.3:  # once more, perhaps on an index that was rebuilt
            if rng.random() < 0.5:
                shutil.rmtree(run.arenas)
            run.batch(n)
        router = table_after(run, n)
        if router is not None:
            assert router._table.costs == pytest.approx(held_costs(run, n, router), abs=1e-9)
            planned += 1
    return planned


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("order", ["time", "arrival"])
def test_costs_are_those_of_what_is_held(seed: int, order: Order, memory: Path) -> None:
    rng = Random(f"{seed} {order}")
    late = 0.3 if order == "arrival" else 0.0
    events = random_log(seed, Space.PLANAR, 120, late, late_controls=True)
    run = start(memory, events, order, rng.choice((4, 8)), rng.choice((1, 20)))
    assert check(run, rng) > 5


def _subscribe(name: str, time: int, **more: int) -> Json:
    query = {"kind": "knn", "at": [0, 0], "k": 1, "where": "a"}
    return {"op": "subscribe", "id": name, "time": time, "query": query, **more}


def test_what_ends_by_time_is_taken_off_once(memory: Path) -> None:
    """Some end in every batch, also between survey and plan; those are unsubscribed or replaced."""
    events = [_subscribe(f"s{n}", 0, expires=n // 2) for n in range(40)]
    events += [_subscribe(f"b{n}", n, expires=n) for n in range(20)]  # it never sees anything
    for n in range(20):
        at = {"time": n, "at": [n, 0], "text": "a"}
        events += [{"op": "publish", "id": f"o{n}", **at}, _subscribe(f"long{n}", n)]
    events += [{"op": "unsubscribe", "id": f"s{n}", "time": n} for n in range(0, 15)]
    events += [_subscribe(f"s{n}", n) for n in range(15, 20)]
    run = start(memory, events, "time", 6, 2)
    assert check(run, Random(1)) > 5
