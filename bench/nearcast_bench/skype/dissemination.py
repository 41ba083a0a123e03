"""Message dissemination side by side: the same stream through several indexes of `topk`.

One index (the first) finds the first results of all subscriptions; all others begin with its rows
and buffers, as a shard does that is restored. So each sees the same floors and the same messages.
What is reported must be the same, message by message. Candidates, entries, groups and cells are
counted; seconds are those of the processor.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index.arena import Memory
from nearcast.index.tops import state as st
from nearcast.index.tops.base import TopIndex
from nearcast.index.tops.dissemination import Candidates, Dissemination
from nearcast.kernels.slots import Slots
from nearcast.kinds import KINDS
from nearcast.kinds.topk import Topk
from nearcast.model.errors import NearcastError
from nearcast.model.frame import Frame, Window
from nearcast.model.space import Space
from nearcast.objects import DEFAULT, STORES
from nearcast.objects.tables import read_table, table_of_carried
from nearcast.wire.carried import carried_by
from nearcast.wire.changes import Changes
from nearcast.wire.tables import FOREVER, NEVER, object_columns, with_clock
from nearcast.workload import CORPORA
from nearcast.workload.tables import publish_rows, top_rows
from nearcast.workload.top_queries import farthest, fitted, top_subscriptions
from nearcast_bench.common.figures import Figure, Say

Longs = NDArray[np.int64]
INDEXES = ("reach", "igpt", "ipt", "ciq")
_START = 1_700_000_000_000
_CHUNK = 1 << 16


@dataclass(frozen=True)
class Stream:
    """What comes in."""

    corpus: str = "skype-tweets"
    subscriptions: int = 100_000
    window: int = 100_000
    messages: int = 2048  # timed
    warm: int = 512  # before them, not timed
    step: int = 512  # messages of a batch
    k: int = 20
    keywords: tuple[int, int] = (1, 5)
    space: Space = Space.PLANAR
    seed: int = 1


@dataclass
class Watch(Dissemination):
    """Passes on to a dissemination, and takes the time."""

    inner: Dissemination
    seconds: dict[str, float] = field(default_factory=lambda: {"post": 0.0, "find": 0.0})
    found: int = 0

    def post(self, t: st.Tops, s: Slots, slots: Longs) -> None:
        """As `inner` does."""
        started = time.process_time()
        self.inner.post(t, s, slots)
        self.seconds["post"] += time.process_time() - started

    def candidates(
        self, t: st.Tops, s: Slots, w: st.Weighed, first: int, stop: int, counts: Longs
    ) -> Candidates:
        """As `inner` does."""
        started = time.process_time()
        found = self.inner.candidates(t, s, w, first, stop, counts)
        self.seconds["find"] += time.process_time() - started
        self.found += len(found[1])
        return found


class Workload:
    """Window, messages, subscriptions and idf of a stream, made once."""

    def __init__(self, stream: Stream, say: Say) -> None:
        self.stream = stream
        corpus, space = CORPORA[stream.corpus], stream.space
        rng = np.random.default_rng([stream.seed, 1])
        total = stream.window + stream.step + stream.warm + stream.messages
        say(f"{total:,} messages, {stream.subscriptions:,} subscriptions …")
        objects = corpus.objects(total, rng)
        maxdist = farthest(corpus, space)
        window = Window(count=stream.window)
        frame = Frame(window, maxdist, fitted(corpus, objects))
        self.kind = cast("Topk", KINDS["topk"]).of_run(frame)
        times = _START + np.arange(total)
        self.table = publish_rows(corpus, objects, 0, times, self.kind.needs)
        queried = top_subscriptions(corpus, stream.subscriptions, rng, stream.k, stream.keywords)
        begun = np.full(stream.subscriptions, int(times[stream.window]))
        self.controls = top_rows(corpus, queried, 0, begun, maxdist)
        self.past = STORES[DEFAULT](space, Memory(), self.kind.slicing, frame.idf.hashed)
        stored = table_of_carried(self.table, np.arange(total))
        for first in range(0, total, _CHUNK):
            self.past.add(*read_table(stored.slice(first, _CHUNK)))

    def new_index(self, name: str) -> TopIndex:
        """An index without subscriptions, which knows the window."""
        index = cast("TopIndex", self.kind.index(name)(self.stream.space, Memory()))
        index.past = self.past
        return index

    def match(self, index: TopIndex, first: int, n: int) -> Changes:
        """Put n messages through an index; they are closed by the caller."""
        table = self.table.slice(first, n)
        table = pa.RecordBatch.from_arrays(
            [pa.concat_arrays([column]) for column in table.columns], schema=table.schema
        )
        index.carry(carried_by(table, [], np.arange(first, first + n), self.kind.needs))
        clock = _START + np.arange(first, first + n)
        return index.match(object_columns(table), clock, int(clock[-1]))

    def begin(self, say: Say) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """Subscriptions with their buffers, after the first step of messages."""
        say("first results …")
        index = self.new_index(INDEXES[0])
        n = self.stream.subscriptions
        index.apply(with_clock(self.controls, np.full(n, NEVER)), np.zeros(n, np.int32))
        self.match(index, self.stream.window, self.stream.step)
        index.close()
        return index.rows(index.living(-FOREVER))


def measure(
    stream: Stream, indexes: Sequence[str] = INDEXES, say: Say = lambda _: None
) -> Iterator[Figure]:
    """A row per index: what it looked at per message, and how long that took."""
    load = Workload(stream, say)
    controls, results = load.begin(say)
    reported: list[tuple[Any, ...]] = []
    for name in indexes:
        say(f"{name} …")
        yield _run(load, name, controls, results, reported)


def _run(
    load: Workload, name: str, controls: pa.RecordBatch, results: pa.RecordBatch,
    reported: list[tuple[Any, ...]],
) -> Figure:  # fmt: skip
    """One index; `reported` has what the first one reported, step by step."""
    stream, index = load.stream, load.new_index(name)
    index.apply(controls, np.zeros(controls.num_rows, np.int32))
    index.restore(results)
    index.close()
    watch = Watch(index._found_by)

    index._found_by = watch
    first = stream.window + stream.step
    load.match(index, first, stream.warm)
    index.close()
    posted, watch.seconds = watch.seconds["post"], {"post": 0.0, "find": 0.0}
    watch.found, index.counted[:] = 0, 0
    changes, seconds, checks = 0, 0.0, []
    first += stream.warm
    for at in range(first, first + stream.messages, stream.step):
        n = min(stream.step, first + stream.messages - at)
        started = time.process_time()
        found = load.match(index, at, n)
        seconds += time.process_time() - started
        changes += len(found)
        checks.append(
            (found.order.copy(), found.slot.copy(), found.event.copy(), found.value.copy())
        )
        index.close()
    _compare(name, checks, reported)
    counts, per = index.counted, 1.0 / stream.messages
    micro = 1e6 * per
    return {
        "figure": "dissemination", "index": name, "corpus": stream.corpus,
        "space": str(stream.space), "subscriptions": stream.subscriptions,
        "window": stream.window, "messages": stream.messages, "k": stream.k, "seed": stream.seed,
        "changes": round(changes * per, 2),
        "accepted": round(int(counts[st.OFFERED]) * per, 2),
        "candidates": round(int(counts[st.EXAMINED]) * per, 2),
        "lookups": round(int(counts[st.LOOKUPS]) * per, 2),
        "entries": round(int(counts[st.SCANNED]) * per, 2),
        "groups": round(int(counts[st.PARTS]) * per, 2),
        "groups_skipped": round(int(counts[st.PARTS_SKIPPED]) * per, 2),
        "cells": round(int(counts[st.CELLS]) * per, 2),
        "cells_skipped": round(int(counts[st.CELLS_SKIPPED]) * per, 2),
        "find_us": round(watch.seconds["find"] * micro, 1),
        "post_us": round(watch.seconds["post"] * micro, 1),
        "match_us": round(seconds * micro, 1),
        "built_s": round(posted, 2),
        "bytes_per_subscription": round(index.storage.bytes / stream.subscriptions),
    }  # fmt: skip


def _compare(name: str, checks: list[tuple[Any, ...]], reported: list[tuple[Any, ...]]) -> None:
    """What is reported is the same with every index."""
    if not reported:
        reported.extend(checks)
        return
    for step, (one, other) in enumerate(zip(checks, reported, strict=True)):
        if not all(np.array_equal(a, b) for a, b in zip(one, other, strict=True)):
            raise NearcastError(f"{name} reports something else than {INDEXES[0]} in step {step}")
