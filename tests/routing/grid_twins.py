"""The routing table in plain Python, and tables and logs for tests to draw."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from nearcast.kernels.hashing import mix64, word_hash
from nearcast.kinds import KINDS
from nearcast.kinds.range.definition import InRegion
from nearcast.model.events import Publish, Subscribe
from nearcast.model.region import outer_boxes
from nearcast.model.space import Space
from nearcast.model.standing import Seen
from nearcast.routing.grid import table as gt
from nearcast.routing.grid.survey import survey_of
from nearcast.routing.grid.table import GridTable, sealed
from nearcast.testing.reading import read_event
from nearcast.testing.strategies import event_logs
from nearcast.wire.jsonl import decode_jsonl
from nearcast.wire.programs import program_of
from nearcast.wire.tables import REGIONS, empty, lists

ANY = 3
Box = tuple[float, float, float, float]


@dataclass
class PlainTable:
    """Who owns what, as dictionaries."""

    bounds: Box
    cells: list[list[int]]
    maps: list[dict[int, int]] = field(default_factory=list)
    workers: list[list[int]] = field(default_factory=list)
    counts: dict[int, int] = field(default_factory=dict)

    def compiled(self) -> GridTable:
        maps = [sorted(m.items()) for m in self.maps]
        known = sorted(self.counts)
        return sealed(
            GridTable(
                np.array(self.bounds),
                np.array(self.cells),
                np.cumsum([0, *(len(m) for m in maps)]),
                np.array([w for m in maps for w, _ in m], np.uint64),
                np.array([s for m in maps for _, s in m], np.int32),
                np.cumsum([0, *(len(w) for w in self.workers)]),
                np.array([w for each in self.workers for w in each], np.int32),
                np.array(known, np.uint64),
                np.array([self.counts[w] for w in known], np.int64),
            )
        )

    def at(self, value: float, axis: int) -> int:
        low, high = self.bounds[axis], self.bounds[axis + 2]
        side = len(self.cells) if axis else len(self.cells[0])
        if value <= low:
            return 0
        if value >= high:
            return side - 1
        return min(int((0.5 * value - 0.5 * low) / (0.5 * high - 0.5 * low) * side), side - 1)

    def owner_in(self, cell: int, word: int) -> int:
        if cell >= 0:
            return cell
        known = self.maps[-1 - cell]
        among = self.workers[-1 - cell]
        return known[word] if word in known else among[int(mix64(np.uint64(word))) % len(among)]

    def owner(self, x: float, y: float, word: int) -> int:
        return self.owner_in(self.cells[self.at(y, 1)][self.at(x, 0)], word)

    def hooks(self, words: list[int], conjunction: bool) -> list[int]:
        if conjunction and words:
            words = [min(words, key=lambda w: (self.counts.get(w, 0), w))]
        return words or [ANY]

    def place(self, boxes: list[Box], hooks: list[int]) -> list[int]:
        found = set()
        for a, b, c, d in boxes:
            for line in range(self.at(b, 1), self.at(d, 1) + 1):
                for column in range(self.at(a, 0), self.at(c, 0) + 1):
                    found |= {self.owner_in(self.cells[line][column], w) for w in hooks}
        return sorted(found)

    def route(self, x: float, y: float, words: set[int]) -> list[int]:
        return sorted({self.owner(x, y, w) for w in words | {ANY}})


@dataclass(frozen=True)
class Posted:
    """A subscription: the query, its boxes, the words it can be posted under."""

    query: InRegion
    boxes: list[Box]
    words: list[int]
    conjunction: bool


@dataclass
class Log:
    """Range subscriptions and objects, as the model has them and as tables."""

    space: Space
    queried: list[Posted]
    published: list[Publish]
    controls: pa.RecordBatch
    objects: pa.RecordBatch

    def words(self, n: int) -> set[int]:
        return {word_hash(k) for k in self.published[n].keywords}


def log_of(space: Space, events: list[dict[str, Any]]) -> Log:
    queried, published, subscribes, publishes = [], [], [], []
    for raw in events:
        event = read_event(raw, space, KINDS)
        if isinstance(event, Publish):
            published.append(event)
            publishes.append(raw)
        elif isinstance(event, Subscribe) and isinstance(query := event.query[1], InRegion):
            program, cover, conjunction = program_of(query.where)
            words = [word_hash(str(w)) for w in (program if conjunction else cover)]
            boxes = outer_boxes(space, query.region)
            queried.append(Posted(query, boxes, words, conjunction))
            subscribes.append(raw)
    controls, objects = (
        decode_jsonl("\n".join(json.dumps(e) for e in part).encode(), space, KINDS)
        for part in (subscribes, publishes)
    )
    regions = controls.subscribes.get("range", empty(REGIONS))
    return Log(space, queried, published, regions, objects.objects)


@st.composite
def logs(draw: st.DrawFn, max_events: int = 50) -> Log:
    space = draw(st.sampled_from(list(Space)))
    return log_of(space, draw(event_logs(space, max_events)))


_EDGES = (-180.0, -4.0, -1.0, 0.0, 0.25, 1.0, 4.0, 16.0, 64.0, 180.0, 1e18, -1e300, 1e300)
_WORDS = [word_hash(w) for w in ("a", "b", "c", "d", "hot dog", "strasse", "fi", "9")]


@st.composite
def tables(draw: st.DrawFn, shards: int = 5) -> PlainTable:
    """Any table over the words of `event_logs`; bounds that leave much outside, too."""
    shard = st.integers(0, shards - 1)
    edges = st.lists(st.sampled_from(_EDGES), min_size=2, max_size=2, unique=True).map(sorted)
    (a, c), (b, d) = draw(edges), draw(edges)
    side, maps = draw(st.integers(1, 5)), draw(st.integers(0, 3))
    line = st.lists(st.integers(-maps, shards - 1), min_size=side, max_size=side)
    known = st.dictionaries(st.sampled_from([ANY, *_WORDS]), shard, max_size=6)
    return PlainTable(
        (a, b, c, d),
        draw(st.lists(line, min_size=side, max_size=side)),
        [draw(known) for _ in range(maps)],
        [draw(st.lists(shard, min_size=1, max_size=3, unique=True)) for _ in range(maps)],
        draw(st.dictionaries(st.sampled_from(_WORDS), st.integers(1, 3), max_size=6)),
    )


def near(value: float) -> list[float]:
    """The value and its neighbours."""
    return [math.nextafter(value, -math.inf), value, math.nextafter(value, math.inf)]


def plain_of(table: GridTable) -> PlainTable:
    """A compiled table as dictionaries."""
    m, w = table.map_offsets, table.worker_offsets
    return PlainTable(
        tuple(table.bounds.tolist()),
        table.cells.tolist(),
        [
            dict(zip(table.map_words[a:b].tolist(), table.map_shards[a:b].tolist(), strict=True))
            for a, b in pairwise(m)
        ],
        [table.workers[a:b].tolist() for a, b in pairwise(w)],
        dict(zip(table.words.tolist(), table.counts.tolist(), strict=True)),
    )


def by_row(pairs: gt.Pairs, rows: int) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(rows)]
    for row, shard in zip(*(p.tolist() for p in pairs), strict=True):
        found[row].append(shard)
    return found


def places(table: GridTable, controls: pa.RecordBatch) -> gt.Pairs:
    """(rows, shards): all copies of range subscriptions, in that order."""
    return gt.place_rows(table, survey_of(controls, np.zeros(controls.num_rows, np.uint64)))


def check_exact(plain: PlainTable, log: Log) -> None:
    """Every match reaches the shard that decides it, and that shard holds the subscription."""
    table = plain.compiled()
    placed = by_row(places(table, log.controls), len(log.queried))
    routed = by_row(gt.route(table, log.objects), len(log.published))
    offsets, held = lists(log.objects["words"], np.uint64)
    for s, queried in enumerate(log.queried):
        words = np.array(queried.words, np.uint64)
        assert placed[s] == plain.place(
            queried.boxes, plain.hooks(queried.words, queried.conjunction)
        )
        for o, event in enumerate(log.published):
            seen = Seen(event.id, event.time, event.x, event.y, event.keywords, event.time)
            if not queried.query.matches(seen):
                continue
            sees = set(placed[s]) & set(routed[o])
            hook = gt.held_posting_word(
                table, words, 0, len(words), queried.conjunction, held, offsets[o], offsets[o + 1]
            )
            reports = gt.owner(table, event.x, event.y, np.uint64(hook))
            assert reports in sees
            own = [w for w in plain.hooks(queried.words, queried.conjunction) if w in log.words(o)]
            assert reports == plain.owner(event.x, event.y, min(own, default=ANY))
    for o, event in enumerate(log.published):
        assert routed[o] == plain.route(event.x, event.y, log.words(o))
