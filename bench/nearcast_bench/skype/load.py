"""One workload through several indexes of `topk`: work, seconds of the processor, and a check.

All indexes of a workload see the same messages, window and subscriptions, and search the same
store. What they report must be the same, message by message, and in the end the results of some
subscriptions must be what their definition in plain Python says. A point that differs raises.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index.arena import Memory
from nearcast.index.tops import state as st
from nearcast.index.tops.base import TopIndex
from nearcast.kernels.ragged import places
from nearcast.kinds import KINDS
from nearcast.kinds.topk import Topk
from nearcast.model.errors import NearcastError
from nearcast.model.frame import Frame, Window
from nearcast.model.space import Space
from nearcast.model.standing import Seen
from nearcast.objects import DEFAULT, STORES
from nearcast.objects.base import ObjectStore
from nearcast.objects.tables import read_table, table_of_carried
from nearcast.wire.carried import carried_by
from nearcast.wire.tables import NEVER, object_columns, with_clock
from nearcast.workload.tables import publish_rows, top_rows
from nearcast.workload.top_queries import KEYWORDS, Words, farthest, fitted
from nearcast_bench.common.figures import Figure
from nearcast_bench.skype.source import Source

__all__ = ["Load", "Shape", "measure"]

Longs = NDArray[np.int64]
_START = 1_700_000_000_000
_CHUNK = 1 << 16
_PIECES = 4  # of a window, in which the store is renewed
_GAP_MS = 1000  # between messages, on average, where a window is one of time
_CHECKED = 12  # subscriptions whose results are compared with their definition
SPACE = Space.PLANAR  # the paper's distance is Euclidean


@dataclass(frozen=True, slots=True)
class Shape:
    """What a workload is made of."""

    subscriptions: int
    window: int
    messages: int
    batch: int
    k: int = 20
    keywords: tuple[int, int] = KEYWORDS
    words: Words = "message"
    by_time: bool = False
    """A window of time, in which the number of messages goes up and down by a half."""


class Load:
    """Messages, window, subscriptions and store of a workload; made once."""

    def __init__(self, source: Source, shape: Shape, seed: int) -> None:
        self.shape = shape
        rng = np.random.default_rng([seed, 16])
        total = shape.window + 2 * shape.messages
        messages = source.messages(total, rng)
        corpus, maxdist = source.corpus, farthest(source.corpus, SPACE)
        window = Window(count=shape.window)
        self.times = _START + np.arange(total)
        if shape.by_time:
            window = Window(span_ms=shape.window * _GAP_MS)
            waves = np.sin(np.arange(total) * (4 * np.pi / shape.window))
            self.times = _START + np.cumsum((_GAP_MS * (1 + 0.5 * waves)).astype(np.int64))
        frame = Frame(window, maxdist, fitted(corpus, messages))
        self.kind = cast("Topk", KINDS["topk"]).of_run(frame)
        self.table = publish_rows(corpus, messages, 0, self.times, self.kind.needs)
        queried = source.subscriptions(
            shape.subscriptions, rng, shape.k, shape.keywords, shape.words
        )
        begun = np.full(shape.subscriptions, int(self.times[shape.window]))
        self.controls = top_rows(corpus, queried, 0, begun, maxdist)
        self.piece = max(shape.window // _PIECES, shape.batch)
        self._stores: dict[int, ObjectStore] = {}

    def past(self, at: int) -> ObjectStore:
        """A store for searches while the next piece of messages comes, from `at` on.

        It holds the window and that piece, and no more: what a search looks at should be that.
        """
        if at not in self._stores:
            window = self.kind.frame.window
            first = max(at - window.count, 0)
            if window.span_ms:
                first = int(np.searchsorted(self.times, self.times[at] - window.span_ms))
            idf = self.kind.frame.idf.hashed
            made = STORES[DEFAULT](SPACE, Memory(), self.kind.slicing, idf)
            stop = min(at + self.piece, len(self.times))
            stored = table_of_carried(self.table.slice(first, stop - first), np.arange(first, stop))
            for begin in range(0, stop - first, _CHUNK):
                made.add(*read_table(stored.slice(begin, _CHUNK)))
            self._stores[at] = made
        return self._stores[at]

    def index(self, name: str) -> TopIndex:
        """With all subscriptions, whose first results come with the first match."""
        index = cast("TopIndex", self.kind.index(name)(SPACE, Memory()))
        n = self.shape.subscriptions
        index.apply(with_clock(self.controls, np.full(n, NEVER)), np.zeros(n, np.int32))
        return index

    def batches(self, first: int, n: int) -> Iterator[tuple[int, int]]:
        """(first, count) of batches of n messages."""
        stop = first + n
        while first < stop:
            step = min(self.shape.batch, stop - first, self.piece - self._into(first))
            yield first, step
            first += step

    def _into(self, at: int) -> int:
        """How many messages of its piece came before message `at`."""
        return (at - self.shape.window) % self.piece

    def match(self, index: TopIndex, first: int, n: int) -> tuple[Any, ...]:
        """Put n messages through an index; what it reported, as numbers."""
        if self._into(first) == 0 or index.past is None:
            index.past = self.past(first - self._into(first))
        piece = self.table.slice(first, n)
        table = pa.RecordBatch.from_arrays(
            [pa.concat_arrays([column]) for column in piece.columns], schema=piece.schema
        )
        index.carry(carried_by(table, [], np.arange(first, first + n), self.kind.needs))
        clock = self.times[first : first + n]
        found = index.match(object_columns(table), clock, int(clock[-1]))
        index.close()
        return found.order, found.slot, found.event, found.time, found.value

    def with_matches(self, n: int) -> int:
        """How many subscriptions share a word with at least n messages of the window, on average.

        Counted in the window with which they begin.
        """
        offsets = np.asarray(self.table["words"].offsets, np.int64)[: self.shape.window + 1]
        words = self.table["words"].values.to_numpy()[: offsets[-1]]
        of_word = np.repeat(np.arange(self.shape.window), np.diff(offsets))
        order = np.argsort(words, kind="stable")
        words, of_word = words[order], of_word[order]
        starts = np.asarray(self.controls["keywords"].offsets, np.int64)
        wanted = self.controls["keywords"].values.to_numpy()
        lows = np.searchsorted(words, wanted)
        highs = np.searchsorted(words, wanted, side="right")
        held = 0
        for first, stop in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            lists = [of_word[lows[j] : highs[j]] for j in range(first, stop)]
            least = max(map(len, lists))
            held += least >= n or (
                sum(map(len, lists)) >= n and len(np.unique(np.concatenate(lists))) >= n
            )
        return held


class Clock:
    """Seconds of the processor in some methods of an index."""

    def __init__(self, index: TopIndex) -> None:
        self.seconds = {"arrival": 0.0, "search": 0.0, "leaving": 0.0}
        self._time(index, "_offer", "arrival")
        self._time(index, "_refill_short", "search")
        self._time(index, "_settle", "leaving")

    def _time(self, index: TopIndex, method: str, part: str) -> None:
        inner: Callable[..., Any] = getattr(index, method)

        def timed(*given: Any) -> Any:
            started = time.process_time()
            try:
                return inner(*given)
            finally:
                self.seconds[part] += time.process_time() - started

        setattr(index, method, timed)


def measure(load: Load, names: Sequence[str]) -> Iterator[Figure]:
    """A row per index, in the order of `names`."""
    reported: list[tuple[Any, ...]] = []
    for name in names:
        row, told = _run(load, name)
        if not reported:
            reported = told
        for step, (one, other) in enumerate(zip(told, reported, strict=True)):
            if not all(np.array_equal(a, b) for a, b in zip(one, other, strict=True)):
                raise NearcastError(f"{name} does not report what {names[0]} does, in step {step}")
        yield row


def _run(load: Load, name: str) -> tuple[Figure, list[tuple[Any, ...]]]:
    shape, index = load.shape, load.index(name)
    started = time.process_time()
    first = shape.window
    told = [load.match(index, first, 1)]
    begun = time.process_time() - started
    told += [load.match(index, *b) for b in load.batches(first + 1, shape.messages - 1)]
    timed, before, clock = len(told), _counters(index), Clock(index)
    started = time.process_time()
    first += shape.messages
    told += [load.match(index, *b) for b in load.batches(first, shape.messages)]
    seconds = time.process_time() - started
    work = {key: value - before[key] for key, value in _counters(index).items()}
    _check(load, index)
    per = 1.0 / shape.messages
    micro = 1e6 * per
    changes = sum(len(one[0]) for one in told[timed:])
    searching = work["searched"]
    return {
        "system": name,
        "subscriptions": shape.subscriptions, "window": shape.window, "messages": shape.messages,
        "batch": shape.batch, "k": shape.k,
        "changes": round(changes * per, 3),
        "arrival_us": round(clock.seconds["arrival"] * micro, 2),
        "expiry_us": round((clock.seconds["search"] + clock.seconds["leaving"]) * micro, 2),
        "all_us": round(seconds * micro, 2),
        "first_results_us": round(begun * 1e6 / shape.subscriptions, 2),
        "reevaluations": round(work["filled"] * per, 4),
        "looked_at_by_search": round(work["search_examined"] / searching, 1) if searching else 0.0,
        "searched": round(work["search_examined"] * per, 2),
        "touched": round(work["touched"] * per, 2),
        "compared": round(work["compared"] * per, 2),
        "candidates": round(work["candidates"] * per, 2),
        "taken": round(work["taken"] * per, 2),
        "work": round(
            (work["search_examined"] + work["touched"] + work["candidates"]) * per, 2
        ),
        **_sizes(load, index),
        "checked": _CHECKED,
    }, told  # fmt: skip


def _counters(index: TopIndex) -> dict[str, int]:
    """Counted work so far."""
    counts, meta, refills = index.counted, index._tops.meta, index.refills
    return {
        "filled": refills.filled - refills.begun,
        "searched": refills.searched,
        "search_examined": refills.examined,
        "touched": int(meta[st.TOUCHED]),
        "compared": int(meta[st.COMPARED]),
        "candidates": int(counts[st.EXAMINED]),
        "taken": int(counts[st.OFFERED]),
    }


def _sizes(load: Load, index: TopIndex) -> Figure:
    """Entries of a buffer on average, and bytes of a subscription; the window is not in them."""
    tops, n = index._tops, load.shape.subscriptions
    lengths = tops.state.half[:n, st.LENGTH].astype(np.int64)
    offsets, entries = places(np.zeros(n, np.int64), lengths)
    _, low = tops._entries(np.arange(n), offsets, entries)
    inside = tops.log.places(low) >= int(tops.meta[st.FIRST])
    window = tops.log.rows.nbytes + tops.log.names.nbytes
    return {
        "buffer": round(int(np.count_nonzero(inside)) / n, 2),
        "buffer_bytes": round(12 * int(tops.state.half[:n, st.ROOM].sum()) / n),
        "bytes": round((index.storage.bytes - window) / n),
    }


def _check(load: Load, index: TopIndex) -> None:
    """Some results are those that the definition gives."""
    n = load.shape.subscriptions
    slots = np.unique(np.linspace(0, n - 1, _CHECKED).astype(np.int64))
    rows, held = index.rows(slots)
    newest = len(load.table) - 1
    first = 0
    window = load.kind.frame.window
    if window.count:
        first = newest + 1 - window.count
    offsets = np.asarray(load.table["words"].offsets, np.int64)
    words = load.table["words"].values.to_numpy()
    of_word = np.repeat(np.arange(len(load.table)), np.diff(offsets))
    x, y = load.table["x"].to_numpy(), load.table["y"].to_numpy()
    firsts = load.table["firsts"].values.to_numpy()
    for n_row, row in enumerate(rows.to_pylist()):
        sub = load.kind.standing(row, SPACE)
        shared = np.unique(of_word[np.isin(words, np.array(row["keywords"], np.uint64))])
        scored = []
        for at in shared[shared >= first].tolist():
            if load.times[at] <= window.after(int(load.times[newest])):
                continue
            own = slice(offsets[at], offsets[at + 1])
            order = np.argsort(firsts[own])
            seen = Seen(at, int(load.times[at]), float(x[at]), float(y[at]),
                        dict.fromkeys(words[own][order].tolist(), 1), 0, at)  # fmt: skip
            scored.append((sub.score(seen), at))
        right = sorted(scored, reverse=True)[: row["k"]]
        result = held.slice(n_row, 1).to_pylist()[0]
        got = list(zip(result["score"], result["rank"], strict=True))[: row["k"]]
        if got != right:
            raise NearcastError(f"{row['id']!r}: its result is not what its definition says")
