"""Splits of a log to tables: what every format of events is decoded into."""

from __future__ import annotations

import gc
import itertools
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.model.errors import Invalid
from nearcast.model.space import Space, check_position
from nearcast.model.standing import Needs
from nearcast.wire.asks import AskBuilder
from nearcast.wire.carried import TEXTS, objects_with
from nearcast.wire.json_form import escaped, shown_fields
from nearcast.wire.kind import Kinds, WireKind
from nearcast.wire.shapes import AskShape, EventShape, SubscribeShape, UnsubscribeShape
from nearcast.wire.subscriptions import ControlBuilder
from nearcast.wire.tables import (
    NEVER,
    REJECTS,
    empty,
    numbers,
    replaced,
    table_of,
    with_clock,
    with_ends,
)
from nearcast.wire.words import carried_words, object_words

EXCERPT = 200  # characters of a refused event that its reject shows


@contextmanager
def no_collector() -> Iterator[None]:
    """Pause Python's collector of cycles: decoding makes many objects and no cycle, and the
    collector would take as long to scan them as it takes to make them."""
    held = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if held:
            gc.enable()


@dataclass(slots=True)
class Decoded:
    """A split: its valid events as tables, the rest as rejects."""

    objects: pa.RecordBatch
    subscribes: dict[str, pa.RecordBatch]  # by kind, of those that have any
    ends: pa.RecordBatch  # unsubscribes, ENDS
    rejects: pa.RecordBatch
    latest: int  # the latest time of a valid event; NEVER without one
    events: Counter[str] = field(default_factory=Counter)  # by op
    seconds: float = 0.0  # that reading and decoding took
    needs: Needs = Needs.NOTHING  # what its objects carry besides
    texts: pa.RecordBatch | None = None  # TEXTS of their words, if needed
    asks: dict[str, pa.RecordBatch] = field(default_factory=dict)  # by kind, of those that have any
    lasts: dict[str, pa.RecordBatch] = field(default_factory=dict)  # the same

    def of(self, kind: WireKind) -> pa.RecordBatch:
        """What an index of one kind must apply: its subscribes, and what ends ids, in order."""
        own = self.subscribes.get(kind.name, empty(kind.schema))
        others = [replaced(t) for name, t in self.subscribes.items() if name != kind.name]
        return with_ends(own, [self.ends, *others], kind.schema)


class Publishes:
    """Columns of the objects of a split, in the order of the log."""

    def __init__(
        self,
        pos: NDArray[np.int64],
        ids: pa.Array,
        time: NDArray[np.int64],
        x: NDArray[np.float64],
        y: NDArray[np.float64],
        text: pa.Array,
        entries: pa.Array,
        entry_offsets: NDArray[np.int64],
    ) -> None:
        self.pos, self.ids, self.time, self.x, self.y = pos, ids, time, x, y
        self.text, self.entries, self.entry_offsets = text, entries, entry_offsets

    def table(self, needs: Needs) -> tuple[pa.RecordBatch, pa.RecordBatch | None]:
        """As OBJECTS with what is needed besides, the clock still to be set; TEXTS if needed."""
        schema = objects_with(needs)
        if len(self.pos) == 0:
            return empty(schema), empty(TEXTS) if Needs.TEXTS in needs else None
        columns = [
            pa.array(self.pos),
            pa.array(self.time),
            pa.array(self.time),
            pa.array(self.x),
            pa.array(self.y),
            escaped(self.ids),
        ]
        spoken = self.text, self.entries, self.entry_offsets
        if needs & (Needs.COUNTS | Needs.TEXTS):
            words, texts = carried_words(*spoken, needs)
        else:
            words, texts = [object_words(*spoken)], None
        if Needs.FIELDS in needs:
            words += shown_fields(self.text, self.entries, self.entry_offsets)
        return pa.RecordBatch.from_arrays([*columns, *words], schema=schema), texts


class SplitBuilder:
    """Collects what is not an object, and puts a split together."""

    def __init__(self, space: Space, kinds: Kinds, file: str, needs: Needs = Needs.NOTHING) -> None:
        self.space = space
        self.needs = needs
        self.file = file
        self._controls = ControlBuilder(space, kinds)
        self._asks = AskBuilder(space, kinds, file)
        self._rejects: list[tuple[int, str, int, str, str]] = []
        self.events: Counter[str] = Counter()

    def reject(self, pos: int, line: int, reason: str, event: str) -> None:
        """Note what is refused, and why: in one line, also where it quotes a line feed."""
        reason = "\\n".join(reason.splitlines())
        self._rejects.append((pos, self.file, line, reason, event[:EXCERPT]))

    def plain(self, subscribes: dict[str, pa.RecordBatch], ends: pa.RecordBatch) -> None:
        """Add valid subscribes and ENDS (`wire.plain_controls`)."""
        self._controls.plain(subscribes, ends)
        self.events["subscribe"] += sum(t.num_rows for t in subscribes.values())
        self.events["unsubscribe"] += ends.num_rows

    def control(self, event: EventShape, pos: int, line: int) -> None:
        """Add a subscribe, unsubscribe or ask; raises `Invalid`."""
        if isinstance(event, SubscribeShape):
            self._controls.subscribe(event, pos, self.file, line, EXCERPT)
            self.events["subscribe"] += 1
        elif isinstance(event, UnsubscribeShape):
            self._controls.unsubscribe(event, pos)
            self.events["unsubscribe"] += 1
        elif isinstance(event, AskShape):
            self._asks.add(event, pos, line, EXCERPT)
            self.events["ask"] += 1
        else:
            raise AssertionError(event)

    def finish(self, publishes: Publishes) -> Decoded:
        """The split as tables, with the clock of each event."""
        objects, texts = publishes.table(self.needs)
        self.events["publish"] += objects.num_rows
        self.events["reject"] += len(self._rejects)
        subscribes, ends = self._controls.tables()
        asks, lasts = self._asks.tables(), self._controls.lasts()
        tables = [objects, ends, *subscribes.values(), *asks.values(), *lasts.values()]
        pos, time = (np.concatenate([numbers(t[n]) for t in tables]) for n in ("pos", "time"))
        if len(pos):
            order = np.argsort(pos, kind="stable") if len(pos) > len(objects) else slice(None)
            clock = np.empty_like(time)
            clock[order] = np.maximum.accumulate(time[order])
            before = np.empty_like(time)
            before[order] = np.concatenate([[NEVER], clock[order][:-1]])
            starts = np.cumsum([0, *(t.num_rows for t in tables)])
            parts = [before[a:b] for a, b in itertools.pairwise(starts)]
            objects = with_clock(objects, clock[: objects.num_rows])
            ends = with_clock(ends, parts[1])
            clocks = iter(parts[2:])
            subscribes = {n: with_clock(t, next(clocks)) for n, t in subscribes.items()}
            asks = {n: with_clock(t, next(clocks)) for n, t in asks.items()}
            lasts = {n: with_clock(t, next(clocks)) for n, t in lasts.items()}
        return Decoded(
            objects,
            subscribes,
            ends,
            table_of(sorted(self._rejects), REJECTS),
            int(time.max(initial=NEVER)),
            self.events,
            needs=self.needs,
            texts=texts,
            asks=asks,
            lasts=lasts,
        )


def misplaced(space: Space, x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which positions are not in the space (`check_position` says why)."""
    bad = ~(np.isfinite(x) & np.isfinite(y))
    if space is Space.GEOGRAPHIC:
        bad |= (np.abs(x) > 180) | (np.abs(y) > 90)
    return bad


def why_misplaced(space: Space, x: float, y: float) -> str:
    """The reason for the reject of a misplaced object."""
    try:
        check_position(space, x, y)
    except Invalid as error:
        return str(error)
    raise AssertionError("the position is fine")
