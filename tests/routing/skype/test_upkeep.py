"""Maintenance of `skype-location`: overloaded leaves are split, idle ones merged; on the engine."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.contract import run_log

from nearcast.engine.options.settings import Settings
from nearcast.kinds import KINDS
from nearcast.model.space import Space
from nearcast.routing.balance import Balance
from nearcast.routing.skype.kd_tree import leaf_of, leaves_of, shard_of
from nearcast.routing.skype.spatial_partition import points, spatial_partition
from nearcast.routing.skype.upkeep import (
    GIVE,
    MERGE,
    SPLIT,
    adjusted,
    draft_of,
    drawn,
    flattened,
    loads_of,
    share_loads,
)

NAME = KINDS["topk"].name


def made(seed: int, shards: int, n: int = 400) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    x, y, ox, oy = rng.normal(0, 1, (4, n))
    of = points(x, y, ox, oy)
    return spatial_partition(of, shards), of


def test_a_draft_without_changes_is_the_tree() -> None:
    tree, of = made(1, 5)
    again = flattened(draft_of(tree, of))
    for a, b in zip(tree, again, strict=True):
        assert a.tolist() == b.tolist()
    root = draft_of(tree, of)
    held = {leaf.shard: leaf.here.subscriptions.shape[1] for leaf in root.leaves()}
    assert held == Counter(shard_of(tree, *of.subscriptions).tolist())


@pytest.mark.parametrize("hot", range(4))
def test_an_overloaded_leaf_is_split_and_idle_leaves_are_merged(hot: int) -> None:
    """Of eight shards one has nearly all the load: two idle leaves of one parent become one."""
    tree, of = made(2, 8)
    root = draft_of(tree, of)
    movable = np.full(8, 10.0)
    movable[hot] = 1000.0
    share_loads(root, movable)
    each = np.full(8, 1.0)
    decisions = adjusted(root, each, 1.2, 1)
    assert [d["kind"] for d in decisions] == [MERGE, SPLIT]
    merge, split = decisions
    assert split["from"] == hot
    assert split["to"] == merge["from"]  # the shard that the merge gave free
    after = flattened(root)
    assert len(leaves_of(after)) == 8
    assert set(after.shard[leaves_of(after)].tolist()) == set(range(8))
    before, then = (np.array(split[k]) for k in ("before", "after"))
    assert then.max() < 0.7 * before.max()
    assert then.sum() == pytest.approx(before.sum())
    assert loads_of(root, each).tolist() == then.tolist()


def test_with_two_shards_there_is_nothing_to_merge() -> None:
    tree, of = made(3, 2)
    root = draft_of(tree, of)
    share_loads(root, np.array([1000.0, 10.0]))
    decisions = adjusted(root, np.zeros(2), 1.1, 8)
    assert decisions[0]["kind"] == SPLIT
    assert {d["kind"] for d in decisions} <= {SPLIT, GIVE}
    then = decisions[-1]["after"]
    assert max(then) < 700


@given(st.integers(0, 10**6), st.integers(2, 9), st.integers(1, 12))
@settings(max_examples=40)
def test_adjusting_never_makes_the_largest_load_larger(seed: int, shards: int, rounds: int) -> None:
    rng = np.random.default_rng(seed)
    tree, of = made(seed, shards, int(rng.integers(0, 80)))
    root = draft_of(tree, of)
    share_loads(root, rng.exponential(100.0, shards))
    each = rng.exponential(5.0, shards)
    before = loads_of(root, each)
    decisions = adjusted(root, each, 1.0, rounds)
    after = loads_of(root, each)
    assert after.max() <= before.max()
    if decisions:
        assert after.max() < before.max()
    assert after.sum() == pytest.approx(before.sum())
    changed = flattened(root)
    inner = changed.axis >= 0
    assert len(changed.axis) == 2 * int((~inner).sum()) - 1
    assert set(changed.shard[~inner].tolist()) <= set(range(shards))
    assert (changed.axis[leaf_of(changed, *of.subscriptions)] == -1).all()
    cells = drawn(changed, np.array([-1.0, -1.0, 1.0, 1.0]), 4)
    assert np.array(cells).shape == (4, 4)


def jumping(seed: int, events: int) -> list[dict[str, Any]]:
    """Subscriptions and messages around a spot that jumps, so that there is cause for moves."""
    rng, log = Random(seed), []
    for n in range(events):
        spot = 10 * (n // (events // 3))
        at = [rng.gauss(spot, 2), rng.gauss(0, 2)]
        if n % 3 == 0 or n < 10:
            query = {"kind": NAME, "at": at, "k": rng.choice((1, 2)), "keywords": ["a", "b"],
                     "alpha": 0.5, "maxdist": 20}  # fmt: skip
            log.append({"op": "subscribe", "id": f"s{n}", "time": n, "query": query})
        else:
            words = rng.sample("abc", rng.randint(1, 2))
            log.append({"op": "publish", "id": f"o{n}", "time": n, "at": at, "keywords": words})
    return log


@pytest.mark.parametrize("order", ["time", "arrival"])
def test_splits_and_merges_do_not_show_on_the_engine(order: str, memory: Path) -> None:
    kinds: Counter[str] = Counter()
    for seed in range(2):
        folder = memory / str(seed)
        chosen = Settings(
            space=Space.PLANAR,
            shards=4,
            strategies={NAME: "skype-location+reach"},
            only=(NAME,),
            order=order,
            warmup=5,
            window="count:30",
            balance=Balance(mode="auto", threshold=1.0, least=0, wait=0, rounds=3),
            arena=str(folder / "arena"),
        )
        run = run_log(folder, jumping(seed, 150), chosen, 9, Random(seed))
        kinds.update(run.kinds())
    assert kinds[SPLIT] > 0
    assert len(kinds) > 1
