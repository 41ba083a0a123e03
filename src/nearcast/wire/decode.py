"""Splits of a log to tables: what every format of events is decoded into."""

from __future__ import annotations

import gc
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nearcast.kernels.slots import SUBSCRIBE
from nearcast.model.errors import Invalid
from nearcast.model.space import Space, check_position
from nearcast.wire.shapes import AskShape, EventShape, SubscribeShape, UnsubscribeShape
from nearcast.wire.subscriptions import ControlBuilder, json_body
from nearcast.wire.tables import NEVER, OBJECTS, REJECTS, empty, numbers, table_of, with_clock
from nearcast.wire.words import object_words

EXCERPT = 200  # characters of a refused event that its reject shows
_ESCAPED = re.compile(r'[\x00-\x1f"\\]')


@contextmanager
def no_collector() -> Iterator[None]:
    """Hold Python's collector of cycles: decoding makes many objects and no cycle, and looking
    through them again and again takes as long as making them."""
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
    controls: pa.RecordBatch
    rejects: pa.RecordBatch
    latest: int  # the latest time of a valid event; NEVER without one
    events: Counter[str] = field(default_factory=Counter)  # by op
    seconds: float = 0.0  # that reading and decoding took


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

    def table(self) -> pa.RecordBatch:
        """As OBJECTS, the clock still to be set."""
        if len(self.pos) == 0:
            return empty(OBJECTS)
        return pa.RecordBatch.from_arrays(
            [
                pa.array(self.pos),
                pa.array(self.time),
                pa.array(self.time),
                pa.array(self.x),
                pa.array(self.y),
                escaped(self.ids),
                object_words(self.text, self.entries, self.entry_offsets),
            ],
            schema=OBJECTS,
        )


def escaped(ids: pa.Array) -> pa.Array:
    """Strings in JSON form, as large binary. Nearly always they are that already."""
    ids = ids.cast(pa.large_string())
    odd = pc.match_substring_regex(ids, _ESCAPED.pattern)
    if pc.any(odd).as_py():
        fixed = [json_body(text).decode() for text in ids.filter(odd).to_pylist()]
        ids = pc.replace_with_mask(ids, odd, pa.array(fixed, pa.large_string()))
    return ids.cast(pa.large_binary())


class SplitBuilder:
    """Collects what is not an object, and puts a split together."""

    def __init__(self, space: Space, file: str) -> None:
        self.space = space
        self.file = file
        self._controls = ControlBuilder(space)
        self._rejects: list[tuple[int, str, int, str, str]] = []
        self.events: Counter[str] = Counter()

    def reject(self, pos: int, line: int, reason: str, event: str) -> None:
        """Note what is refused, and why."""
        self._rejects.append((pos, self.file, line, reason, event[:EXCERPT]))

    def plain(self, controls: pa.RecordBatch) -> None:
        """Add CONTROLS that hold."""
        self._controls.plain(controls)
        asks = int(np.count_nonzero(numbers(controls["op"]) == SUBSCRIBE))
        self.events["subscribe"] += asks
        self.events["unsubscribe"] += controls.num_rows - asks

    def control(self, event: EventShape, pos: int) -> None:
        """Add a subscribe or unsubscribe; raises `Invalid`."""
        if isinstance(event, SubscribeShape):
            self._controls.subscribe(event, pos)
            self.events["subscribe"] += 1
        elif isinstance(event, UnsubscribeShape):
            self._controls.unsubscribe(event, pos)
            self.events["unsubscribe"] += 1
        elif isinstance(event, AskShape):
            raise Invalid("op: ask is not supported yet; publish, subscribe and unsubscribe are")
        else:
            raise AssertionError(event)

    def finish(self, publishes: Publishes) -> Decoded:
        """The split as tables, with the clock of each event."""
        objects = publishes.table()
        self.events["publish"] += objects.num_rows
        self.events["reject"] += len(self._rejects)
        controls = self._controls.table()
        pos = np.concatenate([publishes.pos, numbers(controls["pos"])])
        time = np.concatenate([publishes.time, numbers(controls["time"])])
        if len(pos):
            order = np.argsort(pos, kind="stable") if len(controls) else np.arange(len(pos))
            clock = np.empty_like(time)
            clock[order] = np.maximum.accumulate(time[order])
            before = np.empty_like(time)
            before[order] = np.concatenate([[NEVER], clock[order][:-1]])
            objects = with_clock(objects, clock[: objects.num_rows])
            controls = with_clock(controls, before[objects.num_rows :])
        return Decoded(
            objects,
            controls,
            table_of(sorted(self._rejects), REJECTS),
            int(time.max(initial=NEVER)),
            self.events,
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
