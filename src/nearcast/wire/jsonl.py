"""Events in: one JSON object per line."""

from __future__ import annotations

from itertools import chain
from typing import cast

import msgspec
import numpy as np
import pyarrow as pa

from nearcast.model.errors import Invalid
from nearcast.model.space import Space
from nearcast.model.standing import Needs
from nearcast.wire.decode import EXCERPT, Decoded, Publishes, SplitBuilder, misplaced, why_misplaced
from nearcast.wire.kind import Kinds
from nearcast.wire.shapes import EventShape, PublishShape, Shapes, shapes_of
from nearcast.wire.times import all_ms, to_ms

LINE_BITS = 32  # a position is split << LINE_BITS | line of the split


def decode_jsonl(
    data: bytes,
    space: Space,
    kinds: Kinds,
    *,
    file: str = "",
    first_line: int = 1,
    split: int = 0,
    needs: Needs = Needs.NOTHING,
) -> Decoded:
    """Decode whole lines. `first_line` numbers the first of them in `file`, for rejects."""
    events, lines = _events(data, shapes_of(kinds))
    return decode_events(
        events, lines, space, kinds, file=file, first_line=first_line, split=split, needs=needs
    )


def decode_values(
    lines: list[bytes],
    space: Space,
    kinds: Kinds,
    *,
    file: str = "",
    first_line: int = 1,
    split: int = 0,
    needs: Needs = Needs.NOTHING,
) -> Decoded:
    """Decode events that come one per value (a Kafka message, a column of strings)."""
    shapes = shapes_of(kinds)
    return decode_events(
        [_one(line, shapes) for line in lines],
        lines,
        space,
        kinds,
        file=file,
        first_line=first_line,
        split=split,
        needs=needs,
    )


def decode_records(
    values: list[bytes | None],
    space: Space,
    kinds: Kinds,
    *,
    publishes: bool = False,
    file: str = "",
    first_line: int = 1,
    split: int = 0,
    needs: Needs = Needs.NOTHING,
) -> Decoded:
    """Decode records of Kafka, one event each; with `publishes` others are refused."""
    shapes = shapes_of(kinds)
    lines = [value or b"" for value in values]
    joined = b"\n".join(lines)
    events: list[EventShape | Failure | None]
    if joined.count(b"\n") == len(lines) - 1:
        events, _ = _events(joined, shapes)
        events += [None] * (len(lines) - len(events))  # blank ones at the end
    else:  # JSON over several lines, or bytes of any sort
        events = [_one(line, shapes) for line in lines]
    for n, value in enumerate(values):
        if value is None:
            events[n] = ("the record has no value", "")
    if publishes:
        for n, event in enumerate(events):
            if event is not None and type(event) is not PublishShape:
                why = event[0] if isinstance(event, tuple) else "op: only publish comes this way"
                events[n] = (why, lines[n][:EXCERPT].decode("utf-8", "replace"))
    return decode_events(
        events, lines, space, kinds, file=file, first_line=first_line, split=split, needs=needs
    )


Failure = tuple[str, str]  # reason, excerpt


def _one(line: bytes, shapes: Shapes) -> EventShape | Failure | None:
    """One event, None for a blank line, or why it is none."""
    try:
        return shapes.events.decode(line)
    except Exception as error:  # a bad line is refused with a reason, whatever it holds
        if not line.strip():
            return None
        return _failure(line, error, shapes)


def _failure(line: bytes, error: Exception, shapes: Shapes) -> Failure:
    try:
        value = msgspec.json.decode(line)
    except Exception:  # then the first error says all there is to say
        value = {}
    return shapes.explain(error, value), line[:EXCERPT].decode("utf-8", "replace")


def _events(
    data: bytes, shapes: Shapes
) -> tuple[list[EventShape | Failure | None], bytes | list[bytes]]:
    """The events of all lines, in one call where every line is fine; and the lines."""
    lines = data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
    try:
        events = cast("list[EventShape | Failure | None]", shapes.events.decode_lines(data))
        if len(events) == lines and _one_a_line(data, lines):
            return events, data
    except Exception:
        pass
    split = data.split(b"\n")
    if split and not split[-1]:
        split.pop()
    return [_one(line, shapes) for line in split], split


def _one_a_line(data: bytes, lines: int) -> bool:
    """Whether `lines` objects in as many lines are one per line.

    The decoder also takes two objects in a line, one over several lines, and blank lines. Between
    `}` and `{` no object goes on: where all lines meet like that, each holds one.
    """
    return data.count(b"}\n{") + data.count(b"}\r\n{") == lines - 1


def decode_events(
    events: list[EventShape | Failure | None],
    lines: bytes | list[bytes],
    space: Space,
    kinds: Kinds,
    *,
    file: str,
    first_line: int,
    split: int,
    needs: Needs,
) -> Decoded:
    """Sort decoded events into objects, controls and rejects."""
    base = split << LINE_BITS
    builder = SplitBuilder(space, kinds, file, needs)

    def refuse(n: int, reason: str) -> None:
        nonlocal lines
        if isinstance(lines, bytes):  # only now: most logs have nothing to refuse
            lines = lines.split(b"\n")
        text = lines[n][:EXCERPT].decode("utf-8", "replace")
        builder.reject(base | n, first_line + n, reason, text)

    at: list[int] = []
    objects: list[PublishShape] = []
    for n, event in enumerate(events):
        if type(event) is PublishShape:
            at.append(n)
            objects.append(event)
        elif event is None:
            continue
        elif isinstance(event, tuple):
            builder.reject(base | n, first_line + n, *event)
        else:
            try:
                builder.control(event, base | n, first_line + n)
            except Invalid as error:
                refuse(n, str(error))
    if all_ms([o.time for o in objects]) is None:
        at, objects = _with_times(at, objects, refuse)
    xy = np.array([o.at for o in objects], np.float64).reshape(-1, 2)
    bad = misplaced(space, xy[:, 0], xy[:, 1])
    if bad.any():
        for n in np.flatnonzero(bad).tolist():
            refuse(at[n], why_misplaced(space, *xy[n].tolist()))
        kept = np.flatnonzero(~bad)
        xy = xy[kept]
        at = [at[n] for n in kept.tolist()]
        objects = [objects[n] for n in kept.tolist()]
    return builder.finish(_publishes(base, at, objects, xy))


def _with_times(
    at: list[int], objects: list[PublishShape], refuse: object
) -> tuple[list[int], list[PublishShape]]:
    """Turn every time into milliseconds; objects without a proper one are refused."""
    kept: list[int] = []
    for n, o in enumerate(objects):
        try:
            o.time = to_ms(o.time)
            kept.append(n)
        except Invalid as error:
            refuse(at[n], str(error))  # type: ignore[operator]
    return [at[n] for n in kept], [objects[n] for n in kept]


def _publishes(
    base: int,
    at: list[int],
    objects: list[PublishShape],
    xy: np.ndarray[tuple[int, int], np.dtype[np.float64]],
) -> Publishes:
    keywords = [o.keywords or () for o in objects]
    offsets = np.zeros(len(objects) + 1, np.int64)
    np.cumsum([len(k) for k in keywords], out=offsets[1:])
    return Publishes(
        np.array(at, np.int64) | base,
        pa.array([o.id for o in objects], pa.large_string()),
        np.array([o.time for o in objects], np.int64),
        xy[:, 0].copy(),
        xy[:, 1].copy(),
        pa.array([o.text for o in objects], pa.large_string()),
        pa.array(list(chain.from_iterable(keywords)), pa.large_string()),
        offsets,
    )
