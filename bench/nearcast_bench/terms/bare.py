"""The indexes without Spark: shards one after another, each with its part of the subscriptions.

As on a shard of the engine: store what came, then match it. A shard has a core of its own, so a run
is as fast as its slowest shard. Seconds are those of the processor. What is reported is compared
with a count over all posts first.
"""

from __future__ import annotations

import json
import time
from collections import Counter, deque
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from nearcast.index.arena import Memory
from nearcast.kernels.hashing import hash_ids
from nearcast.model.errors import NearcastError
from nearcast.model.space import Space
from nearcast.objects import DEFAULT, STORES
from nearcast.objects.base import Objects
from nearcast.wire.carried import TEXTS, Carried, WordTexts
from nearcast.wire.changes import Changes
from nearcast.wire.tables import lists, numbers, object_columns, strings
from nearcast.workload.tables import numbered, word_hashes
from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.terms.stream import CORPUS, KIND, Load, Longs, Posts, controls

_CHECKED = 40  # moments of each shard


def carried(posts: Posts) -> Carried:
    """What the posts carry besides their columns."""
    distinct = np.unique(posts.keywords)
    words = word_hashes(CORPUS)[distinct]
    order = np.argsort(words)
    texts = CORPUS.words(distinct[order]).cast(pa.large_binary())
    table = pa.RecordBatch.from_arrays([pa.array(words[order]), texts], schema=TEXTS)
    ranks = np.arange(posts.first, posts.first + len(posts.x))
    return Carried(ranks=ranks, texts=WordTexts(table))


def stored(table: pa.RecordBatch, ranks: Longs) -> Objects:
    """OBJECTS as a store takes them; each word once."""
    offsets, words = lists(table["words"], np.uint64)
    place = np.arange(len(words)) - np.repeat(offsets[:-1], np.diff(offsets))
    x, y, time_ms = (numbers(table[name]) for name in ("x", "y", "time"))
    counts = np.ones(len(words), np.int32)
    return Objects(
        x, y, time_ms, ranks, offsets, words, counts, place.astype(np.int32), *strings(table["id"])
    )


def dealt(load: Load, shards: int) -> list[Longs]:
    """The subscriptions of each shard, by their ids as the router `hash` does."""
    offsets, data = strings(numbered("s", np.arange(load.subscriptions)))
    home = hash_ids(data, offsets) % np.uint64(shards)
    return [np.flatnonzero(home == np.uint64(shard)) for shard in range(shards)]


def run_bare(load: Load, index: str, shards: int, step: int, say: Say) -> Iterator[Figure]:
    """One index on all shards."""
    found = []
    for shard, which in enumerate(dealt(load, shards)):
        say(f"{index}, shard {shard + 1} of {shards}: {len(which):,} subscriptions …")
        found.append(_shard(load, index, which, step, say))
    seconds = max(f["seconds"] for f in found)
    yield {
        "figure": "bare", "index": index, "shards": shards, "subscriptions": load.subscriptions,
        "objects": load.objects, "filling": load.filling, "rate": load.rate, "area": load.area,
        "every": load.every, "window": load.window, "seed": load.seed,
        "objects_per_second": round(load.objects / seconds),
        "moments": sum(f["moments"] for f in found),
        "examined_per_moment": round(
            sum(f["examined"] for f in found) / max(sum(f["moments"] for f in found), 1), 1
        ),
        "store_seconds": round(max(f["store"] for f in found), 2),
        "match_seconds": round(max(f["match"] for f in found), 2),
        "bytes": max(f["bytes"] for f in found),
        "store_bytes": max(f["store_bytes"] for f in found),
        "checked": sum(f["checked"] for f in found),
        **{k: v for k, v in found[0].items() if k.startswith("chosen_")},
    }  # fmt: skip


def _shard(load: Load, name: str, which: Longs, step: int, say: Say) -> Figure:
    storage = Memory()
    index = KIND.index(name)(Space.GEOGRAPHIC, storage)
    index.past = STORES[DEFAULT](Space.GEOGRAPHIC, Memory(), KIND.slicing)
    index.apply(controls(load, which), np.zeros(len(which), np.int32))
    kept: deque[Posts] = deque()
    took = {"store": 0.0, "match": 0.0}
    moments = examined = checked = 0
    rng = np.random.default_rng([load.seed, 4])
    for posts in load.steps(step):
        table, carries = posts.table(), carried(posts)
        kept.append(posts)
        now = int(posts.time[-1]) - 1
        ranks = carries.ranks
        assert ranks is not None
        objects = stored(table, ranks)
        started = time.thread_time()
        index.past.add(objects)
        added = time.thread_time()
        index.carry(carries)
        pieces = list(index.matching(object_columns(table), posts.time, now))
        index.changed()
        index.close()
        matched = time.thread_time()
        index.past.expire(now - max(index.reach(), 0), int(posts.first))
        while kept and kept[0].time[-1] <= now - load.window_ms - load.every_ms:
            kept.popleft()
        if posts.first >= load.filling:
            took["store"] += added - started
            took["match"] += matched - added
            moments += sum(map(len, pieces))
            examined += sum(p.work.examined for p in pieces)
            checked += _check(load, which, pieces, list(kept), _CHECKED - checked, rng)
        elif posts.first % (20 * step) == 0:
            say(f"{posts.first:,} of {load.filling:,} posts until the window is full …")
    if not checked:
        raise NearcastError("bench terms: no moment was due; give more objects or a lower rate")
    return {
        **took, "seconds": took["store"] + took["match"], "moments": moments,
        "examined": examined, "checked": checked, "bytes": storage.bytes,
        "store_bytes": index.past.bytes,
        **{f"chosen_{k}": v for k, v in getattr(index, "figures", dict)().items()},
    }  # fmt: skip


def _check(
    load: Load,
    which: Longs,
    pieces: list[Changes],
    kept: list[Posts],
    most: int,
    rng: np.random.Generator,
) -> int:
    """Compare some moments with a count over all posts; how many."""
    done = 0
    for piece in pieces:
        some = min(len(piece), max(most - done, 0), 4)
        for n in rng.choice(len(piece), some, replace=False).tolist():
            slot, moment = int(piece.slot[n]), int(piece.time[n])
            start = int(piece.name_starts[n])
            text = piece.names[start : start + int(piece.name_lengths[n])].tobytes()
            if json.loads(text) != right_words(load, int(which[slot]), moment, kept):
                raise NearcastError(f"bench terms: wrong words at {moment} for s{which[slot]}")
            done += 1
    return done


def right_words(load: Load, number: int, moment: int, kept: list[Posts]) -> list[list[str | int]]:
    """What subscription `number` reports at a moment."""
    west, south, east, north = load.boxes[number].tolist()
    counts: Counter[int] = Counter()
    for posts in kept:
        inside = (west <= posts.x) & (posts.x <= east) & (south <= posts.y) & (posts.y <= north)
        inside &= (moment - load.window_ms < posts.time) & (posts.time <= moment)
        inside &= posts.time >= load.begun[number]
        owner = np.repeat(inside, np.diff(posts.offsets))
        ids, n = np.unique(posts.keywords[owner], return_counts=True)
        counts.update(dict(zip(ids.tolist(), n.tolist(), strict=True)))
    ids = np.array(list(counts), np.int32)
    texts = CORPUS.words(ids).to_pylist()
    order = sorted((-n, text) for text, n in zip(texts, counts.values(), strict=True))
    return [[text, -n] for n, text in order[: load.k]]
