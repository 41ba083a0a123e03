"""One distribution on bare parts: shards one after another, each with its part.

Each shard of a cluster has a core of its own, so a run is as fast as its slowest shard: throughput
is messages over the seconds (of the processor) of that one. What the router, the stores of messages
and the merger take is told beside it. Counted work does not depend on the machine: copies of
messages (the paper's communication cost), copies of subscriptions (table 5), candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.index.arena import Memory
from nearcast.index.tops.reach.index import Reach
from nearcast.model.errors import NearcastError
from nearcast.model.space import Space
from nearcast.objects import DEFAULT, STORES
from nearcast.objects.base import ObjectStore, Slicing
from nearcast.routing.skype import deals
from nearcast.routing.skype.deals import ByHash, ByLocation, Deal
from nearcast.routing.skype.kd_tree import Longs, Reals
from nearcast.routing.skype.kscores import kscores
from nearcast.routing.skype.loose_prefix import Wanted, in_order, prefix_lengths
from nearcast.routing.skype.merging import Merged
from nearcast.routing.skype.parts import Parts, wanted_of
from nearcast.routing.skype.word_deals import ByKeyword, ByPrefix, KeywordFirst, SpatialFirst
from nearcast.routing.skype.words import rows_at
from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.dskype.load import Load, controls, id_hashes, load_of
from nearcast_bench.dskype.scanning import scanned
from nearcast_bench.dskype.setting import (
    HASH,
    KEYWORD,
    KEYWORD_FIRST,
    LOCATION,
    MECHANISMS,
    PREFIX,
    SPATIAL_FIRST,
    TABLE_5,
    Setting,
)

SAMPLE = 20_000  # messages that a distribution is made from
_SLICING = Slicing(most=1 << 18)


class Begun(NamedTuple):
    """Subscriptions when the window is full."""

    load: Load
    controls: pa.RecordBatch
    wanted: Wanted
    kscore: Reals
    sample: deals.Messages


@lru_cache(maxsize=1)
def begun(data: str, subscriptions: int, window: int, behind: int, k: int, seed: int) -> Begun:
    """What all distributions of one workload have in common."""
    load = load_of(data, window, behind, seed)
    table = controls(load, 0, subscriptions, k, seed)
    store = new_store(load)
    store.add(load.part(0, window))
    scores = kscores([store], load.frame, table, window)
    o = load.part(max(window - SAMPLE, 0), min(SAMPLE, window))
    sample = deals.Messages(o.x, o.y, o.word_offsets, o.words)
    return Begun(load, table, wanted_of(table, id_hashes(table), load.frame), scores, sample)


def new_store(load: Load) -> ObjectStore:
    """A store of messages."""
    return STORES[DEFAULT](Space.PLANAR, Memory(), _SLICING, load.frame.idf.hashed)


def deal_of(name: str, shards: int, levels: tuple[int, int] | None, b: Begun) -> Deal:
    """A distribution by its name; hybrids have two levels."""
    if name == HASH:
        return ByHash(shards)
    if name == LOCATION:
        return ByLocation(shards, b.wanted, b.sample)
    if levels is None:
        return {KEYWORD: ByKeyword, PREFIX: ByPrefix}[name](shards, b.wanted, b.kscore, b.sample)
    hybrid = {SPATIAL_FIRST: SpatialFirst, KEYWORD_FIRST: KeywordFirst}[name]
    return hybrid(*levels, b.wanted, b.kscore, b.sample)


def run_one(
    name: str,
    data: str,
    s: Setting,
    seed: int,
    subscriptions: int = 0,
    shards: int = 0,
    k: int = 0,
    levels: tuple[int, int] | None = None,
) -> Figure:
    """One point: a distribution on one workload."""
    n, shards, k = subscriptions or s.subscriptions, shards or s.shards, k or s.k
    b = begun(data, n, s.window, s.step + s.messages, k, seed)
    load = b.load
    deal = deal_of(name, shards, levels, b)
    index = partial(Reach, frame=load.frame)
    parts = Parts(deal, Space.PLANAR, load.frame, index, partial(new_store, load))
    parts.fill(load.part(0, s.window))
    parts.subscribe(b.controls, b.wanted, b.kscore)
    copies = int(parts.held.sum())
    rng = np.random.default_rng([seed, 5])
    watched = np.sort(rng.choice(n, min(s.checked, n), replace=False))
    results: dict[int, set[int]] = {int(q): set() for q in watched}
    _follow(results, _batch(parts, load, s.window, s.step))  # first results: not timed
    tally = parts.tally
    for shard in parts.shards:
        parts.take_arrivals(shard)
        shard.seconds, shard.work.examined, shard.work.scanned = 0.0, 0, 0
    tally.messages = tally.sent = tally.grown = tally.marked = tally.reported = 0
    tally.route_seconds = tally.store_seconds = tally.merge_seconds = 0.0
    changes = 0
    for first in range(s.window + s.step, s.window + s.step + s.messages, s.step):
        merged = _batch(parts, load, first, s.step)
        changes += int(merged.enters.sum())
        _follow(results, merged)
    published = s.window + s.step + s.messages
    compared = _check(name, b, watched, results, published)
    seconds = [shard.seconds for shard in parts.shards]
    examined = [shard.work.examined for shard in parts.shards]
    m = tally.messages
    return {
        "mechanism": name, "data": data, "subscriptions": n, "window": s.window, "messages": m,
        "shards": shards, "k": k, "seed": seed,
        **({"levels": f"{levels[0]}x{levels[1]}"} if levels else {}),
        "throughput": round(m / max(*seconds, 1e-9)) if shards > 1 else round(m / seconds[0]),
        "communication": round(tally.sent / m, 3),
        "replication": round(copies / n, 3),
        "replication_at_the_end": round(parts.replication, 3),
        "examined_per_message": round(sum(examined) / m, 2),
        "examined_by_one": round(max(examined) / m, 2),
        "scanned_by_one": round(max(sh.work.scanned for sh in parts.shards) / m, 1),
        "imbalance": round(max(examined) * shards / max(sum(examined), 1), 2),
        "changes_per_message": round(changes / m, 2),
        "reported_per_message": round(tally.reported / m, 2),
        "grown": tally.grown,
        "cpu_us_per_message": round(1e6 * sum(seconds) / m, 1),
        "route_us_per_message": round(1e6 * tally.route_seconds / m, 1),
        "store_us_per_message": round(1e6 * tally.store_seconds / m, 1),
        "merge_us_per_message": round(1e6 * tally.merge_seconds / m, 1),
        "compared_with_scan": compared,
    }  # fmt: skip


def _batch(parts: Parts, load: Load, first: int, n: int) -> Merged:
    objects = load.part(first, n)
    return parts.batch(objects, objects.time, int(objects.time[-1]))


def _follow(results: dict[int, set[int]], merged: Merged) -> None:
    """Let changes change some of the results."""
    mine = np.flatnonzero(np.isin(merged.query, list(results)))
    for row in mine.tolist():
        held, rank = results[int(merged.query[row])], int(merged.rank[row])
        if merged.enters[row]:
            held.add(rank)
        else:
            held.remove(rank)


def _check(
    name: str, b: Begun, watched: Longs, results: dict[int, set[int]], published: int
) -> int:
    """Compare what the changes lead to with a scan; how many subscriptions were compared."""
    wanted = scanned(b.load, b.controls.take(pa.array(watched)), published)
    for query, right in zip(watched.tolist(), wanted, strict=True):
        if results[query] != {rank for _, rank in right}:
            raise NearcastError(f"bench dskype: {name} reports a wrong result of s{query}")
    return len(watched)


def count_copies(s: Setting, data: str, seed: int) -> Iterator[Figure]:
    """Table 5: copies of subscriptions and of messages by each mechanism, nothing is matched."""
    b = begun(data, s.placed, s.full_window, SAMPLE, s.k, seed)
    o = b.load.part(s.full_window, SAMPLE)
    behind = deals.Messages(o.x, o.y, o.word_offsets, o.words)
    rows = rows_at(b.wanted.offsets)
    lengths = np.diff(b.wanted.offsets)
    for name in MECHANISMS:
        deal = deal_of(name, s.shards, None, b)
        copies, _ = deal.place(b.wanted, b.kscore)
        sent, _ = deal.route(behind)
        yield {
            "mechanism": name, "data": data, "subscriptions": s.placed, "window": s.full_window,
            "shards": s.shards, "k": s.k, "seed": seed,
            "replication": round(len(copies) / s.placed, 3),
            "communication": round(len(sent) / SAMPLE, 3),
            "words": round(len(rows) / s.placed, 3),
            "prefix_words": round(float(np.minimum(prefix_lengths(in_order(b.wanted, deal.order),
                                                                  b.kscore), lengths).mean()), 3)
            if isinstance(deal, ByPrefix) else round(len(rows) / s.placed, 3),
            "fewer_than_k": round(float(np.isinf(b.kscore).mean()), 3),
            "median_kscore": round(float(np.median(b.kscore)), 3),
        }  # fmt: skip


Point = Callable[[], Figure]


def points(s: Setting) -> Iterator[tuple[str, str, Point]]:
    """(figure, what, how to measure it), workload by workload; a point may serve two figures."""
    for seed in range(s.seed, s.seed + s.seeds):
        for data in s.data:
            run = partial(run_one, data=data, s=s, seed=seed)
            if "21" in s.figures:
                for name in MECHANISMS:
                    yield "21", name, partial(run, name)
            if "22" in s.figures:
                for shards in s.bolts:
                    for name in (HASH, LOCATION, PREFIX):
                        yield "22", f"{name}, {shards} shards", partial(run, name, shards=shards)
            if "25" in s.figures:
                for first in [1 << n for n in range(s.shards.bit_length())]:
                    levels = (first, s.shards // first)
                    for name in (SPATIAL_FIRST, KEYWORD_FIRST):
                        yield "25", f"{name} {levels}", partial(run, name, levels=levels)
            if "23" in s.figures:
                for k in s.ks:
                    for name in (HASH, LOCATION, PREFIX):
                        yield "23", f"{name}, k {k}", partial(run, name, k=k)
            if "24" in s.figures:
                for times in s.times:
                    n = times * s.subscriptions
                    for name in (HASH, LOCATION, PREFIX):
                        yield "24", f"{name}, {n:,}", partial(run, name, subscriptions=n)


def run_distributed(s: Setting, say: Say) -> Iterator[Figure]:
    """All points of the figures, measured once each."""
    if TABLE_5 in s.figures:
        for seed in range(s.seed, s.seed + s.seeds):
            for data in s.data:
                say(f"table 5: {data}, a window of {s.full_window:,} …")
                for made in count_copies(s, data, seed):
                    yield {"figure": TABLE_5, **made}
    tiny = replace(s, subscriptions=500, window=300, messages=100, step=50, k=1, checked=0)
    for name in MECHANISMS if set(s.figures) - {TABLE_5} else ():  # compiles what is timed
        run_one(name, s.data[0], tiny, s.seed, shards=4)
    for figure, what, measure in points(s):
        made = measure()
        say(f"figure {figure}: {made['data']}, {what}: {made['throughput']:,} messages/s …")
        yield {"figure": figure, **made}
