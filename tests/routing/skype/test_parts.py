"""Every distribution of DSkype reports what the oracle reports, also when prefixes grow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.index.arena import Memory
from nearcast.index.tops.reach.index import Reach
from nearcast.kernels.hashing import hash_ids
from nearcast.kinds import KINDS
from nearcast.kinds.topk import Topk
from nearcast.model.frame import Frame, Window
from nearcast.model.space import Space
from nearcast.objects import DEFAULT, STORES
from nearcast.objects.base import Objects, Slicing
from nearcast.objects.tables import read_table
from nearcast.routing.skype.deals import ByHash, ByLocation, Deal, Messages
from nearcast.routing.skype.kscores import kscores
from nearcast.routing.skype.loose_prefix import Wanted
from nearcast.routing.skype.parts import Parts, wanted_of
from nearcast.routing.skype.word_deals import ByKeyword, ByPrefix, KeywordFirst, SpatialFirst
from nearcast.testing.cases import publish, subscribe
from nearcast.testing.drive import plan
from nearcast.testing.oracle import replay
from nearcast.wire.idf import Fitted
from nearcast.wire.tables import strings

Json = dict[str, Any]
SPACE = Space.PLANAR
WORDS = "abcdefgh"
FITTED = Fitted(60, {w: n * n for n, w in enumerate(WORDS)})
Make = Callable[[Wanted, np.ndarray, Messages], Deal]
DEALS: dict[str, Make] = {
    "hash": lambda *_: ByHash(3),
    "location": lambda of, _, m: ByLocation(3, of, m),
    "keyword": lambda of, k, m: ByKeyword(4, of, k, m),
    "prefix": lambda of, k, m: ByPrefix(4, of, k, m),
    "spatial-first": lambda of, k, m: SpatialFirst(2, 3, of, k, m),
    "keyword-first": lambda of, k, m: KeywordFirst(3, 2, of, k, m),
}


def log_of(rng: Random, before: int, objects: int, later: bool) -> tuple[list[Json], list[int]]:
    """Messages, then subscriptions, then messages; where batches begin. Frequent words and rare."""
    clock, log, cuts = 0, [], []

    def message(n: int) -> None:
        nonlocal clock
        clock += rng.choice((0, 1, 1, 3))
        words = rng.choices(WORDS, range(1, 9), k=rng.randint(0, 4))
        log.append(publish(f"o{n}", clock, rng.randint(-4, 4), rng.randint(-4, 4), *words))

    def subscription(n: int) -> None:
        query = {
            "kind": "topk", "at": [rng.randint(-4, 4), rng.randint(-4, 4)],
            "k": rng.choice((1, 2, 3, 5)), "keywords": rng.sample(WORDS, rng.randint(1, 5)),
            "alpha": rng.choice((0, 0.1, 0.3, 0.5, 1)), "maxdist": rng.choice((5, 12)),
        }  # fmt: skip
        if rng.random() < 0.2:
            query["where"] = "NOT h"
        log.append(subscribe(f"s{n}", clock, query))

    for n in range(before):
        message(n)
    clock += 1
    cuts.append(len(log))
    for n in range(20):
        subscription(n)
    for n in range(before, before + objects):
        message(n)
        if rng.random() < 0.15 and n + 1 < before + objects:
            clock += 1
            cuts.append(len(log))
            if later and rng.random() < 0.3:
                subscription(20 + n)
    return log, cuts


def run(name: str, log: list[Json], cuts: list[int], window: Window) -> tuple[Counter[Any], Parts]:
    """What a distribution reports of a log that is cut before its subscriptions."""
    frame = Frame(window, 10.0, FITTED)
    kind = Topk(frame)
    batches = plan(log, kind, SPACE, "time", cuts)
    store = STORES[DEFAULT](SPACE, Memory(), Slicing(), frame.idf.hashed)
    parts: Parts | None = None
    said: Counter[Any] = Counter()
    ids: list[bytes] = []
    names: dict[int, bytes] = {}
    window_objects: Objects | None = None
    ranked = 0
    for batch in batches:
        assert batch.stored is not None
        objects, _ = read_table(batch.stored)
        texts = batch.stored["id"].to_pylist()
        names |= dict(zip(objects.rank.tolist(), texts, strict=True))
        if batch.controls.num_rows == 0 and parts is None:
            store.add(objects)
            window_objects, ranked = objects, len(objects.x)
            continue
        if batch.controls.num_rows:
            assert not batch.at.any()
            of = wanted_of(batch.controls, hash_ids(*strings(batch.controls["id"])[::-1]), frame)
            held = [store] if parts is None else [s.store for s in parts.shards]
            scores = kscores(held, frame, batch.controls, ranked)
            if parts is None:
                assert window_objects is not None
                o = window_objects
                sample = Messages(o.x, o.y, o.word_offsets, o.words)
                parts = Parts(
                    DEALS[name](of, scores, sample), SPACE, frame, partial(Reach, frame=frame),
                    lambda: STORES[DEFAULT](SPACE, Memory(), Slicing(), frame.idf.hashed),
                )  # fmt: skip
                parts.fill(o)
            parts.subscribe(batch.controls, of, scores)
            ids += batch.controls["id"].to_pylist()
        assert parts is not None
        m = parts.batch(objects, batch.clock, batch.now)
        ranked += len(objects.x)
        for time, query, rank, score, enters in zip(
            m.time.tolist(), m.query.tolist(), m.rank.tolist(), m.score.tolist(),
            m.enters.tolist(), strict=True,
        ):  # fmt: skip
            what = ("enter", score) if enters else ("leave", None)
            said[ids[query].decode(), names[rank].decode(), time, *what] += 1
    assert parts is not None
    return said, parts


def right(log: list[Json], window: Window) -> Counter[Any]:
    kinds = {**KINDS, "topk": Topk(Frame(window, 10.0, FITTED))}
    made = replay(log, SPACE, kinds=kinds).notifications
    return Counter((n["id"], n["object"], n["time"], n["event"], n.get("score")) for n in made)


WINDOWS = [Window(count=12), Window(count=1000), Window(span_ms=15)]


@pytest.mark.parametrize("name", DEALS)
def test_a_distribution_reports_what_the_oracle_reports(name: str) -> None:
    grown = 0
    for seed, window in enumerate(WINDOWS):
        log, cuts = log_of(Random(seed), 30, 90, later=True)
        said, parts = run(name, log, cuts, window)
        assert said == right(log, window)
        grown += parts.tally.grown
        assert parts.tally.messages == 90
    assert (grown > 0) == parts.deal.grows


@given(st.integers(0, 10**6), st.sampled_from([*DEALS][2:]), st.sampled_from(WINDOWS))
@settings(max_examples=25)
def test_growth_anywhere_does_not_show(seed: int, name: str, window: Window) -> None:
    rng = Random(seed)
    log, cuts = log_of(rng, rng.choice((1, 12, 40)), 40, later=rng.random() < 0.5)
    said, _ = run(name, log, cuts, window)
    assert said == right(log, window)
