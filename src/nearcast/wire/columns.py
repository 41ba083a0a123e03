"""Events in: rows with the fields of an event as columns (Parquet, Spark DataFrames)."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, get_args

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nearcast.model.errors import Invalid
from nearcast.model.events import MAX_ID_LENGTH
from nearcast.model.space import Space
from nearcast.model.standing import Needs
from nearcast.wire.decode import Decoded, Publishes, SplitBuilder, misplaced, why_misplaced
from nearcast.wire.jsonl import LINE_BITS, decode_values
from nearcast.wire.kind import Kinds
from nearcast.wire.plain_controls import plain_controls
from nearcast.wire.plain_types import without_views
from nearcast.wire.shapes import (
    EventShape,
    Shapes,
    SubscribeShape,
    UnsubscribeShape,
    shapes_of,
)
from nearcast.wire.tables import LIMIT, numbers
from nearcast.wire.times import timestamps_ms, to_ms

_META = msgspec.json.Decoder(dict[str, Any])
_EPOCH = datetime.datetime(1970, 1, 1)
_FIELDS = {"op", *(f.name for s in get_args(EventShape) for f in msgspec.structs.fields(s))}


def decode_columns(
    batch: pa.RecordBatch,
    space: Space,
    kinds: Kinds,
    *,
    file: str = "",
    first_line: int = 1,
    split: int = 0,
    needs: Needs = Needs.NOTHING,
) -> Decoded:
    """Decode rows; a table with a `value` and no `op` column holds one JSON event per value."""
    names = set(batch.schema.names)
    batch = without_views(batch)
    if "op" not in names and "value" in names:
        values = [v or b"" for v in batch["value"].cast(pa.binary()).to_pylist()]
        return decode_values(
            values, space, kinds, file=file, first_line=first_line, split=split, needs=needs
        )
    if "op" not in names:
        raise Invalid(f"{file or 'the input'} has no column `op` (its columns: {sorted(names)})")
    batch = _usual(batch)
    base = split << LINE_BITS
    builder = SplitBuilder(space, kinds, file, needs)
    shapes = shapes_of(kinds)
    publish = pc.equal(batch["op"].cast(pa.string()), "publish").fill_null(False)
    at = np.flatnonzero(publish.to_numpy(zero_copy_only=False))
    rest = np.flatnonzero(~publish.to_numpy(zero_copy_only=False))

    def refuse(n: int, reason: str) -> None:
        excerpt = msgspec.json.encode(_row(batch.slice(n, 1).to_pylist()[0]), enc_hook=str)
        builder.reject(base | n, first_line + n, reason, excerpt.decode())

    others = batch.take(pa.array(rest)) if len(rest) < batch.num_rows else batch
    if len(rest) and _typed(others):
        plain, *tables = plain_controls(others, rest | base, space, kinds)
        builder.plain(*tables)
        others, rest = others.filter(pa.array(~plain)), rest[~plain]
    for n, event in zip(rest.tolist(), _events(others, shapes), strict=True):
        try:
            read = _event(event, shapes) if isinstance(event, dict) else event
            builder.control(read, base | n, first_line + n)
        except Invalid as error:
            refuse(n, str(error))
    objects = batch if len(at) == batch.num_rows else batch.take(pa.array(at))
    return builder.finish(_Rows(objects, at, space, refuse).publishes(base))


def _usual(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The columns that events have, timestamps as milliseconds."""
    batch = batch.select([name for name in batch.schema.names if name in _FIELDS])
    for name in ("time", "expires"):
        at = batch.schema.get_field_index(name)
        if at >= 0 and pa.types.is_timestamp(batch[name].type):
            ms = pa.array(timestamps_ms(batch[name]), mask=~numbers_valid(batch[name]))
            batch = batch.set_column(at, name, ms)
    return batch


def _row(values: dict[str, Any]) -> dict[str, Any]:
    """A row as JSON would give it: no nulls, times as milliseconds, JSON texts read."""
    row: dict[str, Any] = _plain(values)
    for name in ("query", "meta"):
        if isinstance(row.get(name), str):
            # One that is no JSON stays a string, which the shape of an event then refuses.
            with suppress(msgspec.DecodeError, RecursionError):
                row[name] = msgspec.json.decode(row[name])
    return row


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if isinstance(value, datetime.datetime):
        naive = value.astimezone(datetime.UTC).replace(tzinfo=None) if value.tzinfo else value
        return (naive - _EPOCH) // datetime.timedelta(milliseconds=1)
    return value


def _events(
    batch: pa.RecordBatch, shapes: Shapes
) -> Iterator[SubscribeShape[Any] | UnsubscribeShape | dict[str, Any]]:
    """Rows that are no objects. Where columns have the expected types they are read at once;
    others, and odd values, come as JSON would give them, for a closer look."""
    if not _typed(batch):
        yield from (_row(row) for row in batch.to_pylist())
        return
    names = batch.schema.names
    none = [None] * len(batch)
    columns = [
        batch[n].to_pylist() if n in names and batch[n].null_count < len(batch) else none
        for n in (*_USUAL, *_RARE)
    ]
    for n, (op, id_, time, query, expires, owner, meta, last) in enumerate(
        zip(*columns, strict=True)
    ):
        named = id_ and len(id_) <= MAX_ID_LENGTH and time is not None
        if op == "unsubscribe" and named:
            yield UnsubscribeShape(id_, time)
            continue
        if op == "subscribe" and named and query and last is None:
            try:
                decoded = shapes.queries.decode(query)
                extra = None if meta is None else _META.decode(meta)
                yield SubscribeShape(id_, time, decoded, expires, owner, extra)
                continue
            except (msgspec.DecodeError, RecursionError):
                pass
        yield _row(batch.slice(n, 1).to_pylist()[0])


def _typed(batch: pa.RecordBatch) -> bool:
    """Whether the columns of rows that are no objects have the expected types."""
    names = batch.schema.names
    return all(n in names and fits(batch[n].type) for n, fits in _USUAL.items()) and all(
        n not in names or batch[n].null_count == len(batch) or fits(batch[n].type)
        for n, fits in _RARE.items()
    )


def _event(row: dict[str, Any], shapes: Shapes) -> EventShape:
    try:
        return msgspec.convert(row, shapes.event)  # type: ignore[no-any-return]
    except msgspec.ValidationError as error:
        raise Invalid(shapes.explain(error, row)) from None


class _Rows:
    """Publish rows, checked column by column."""

    def __init__(
        self, batch: pa.RecordBatch, at: NDArray[np.int64], space: Space, refuse: Any
    ) -> None:
        self.batch, self.at, self.space, self.refuse = batch, at, space, refuse
        self.bad = np.zeros(batch.num_rows, bool)

    def _fail(self, rows: NDArray[np.bool_], reason: str) -> None:
        for n in np.flatnonzero(rows & ~self.bad).tolist():
            self.refuse(int(self.at[n]), reason)
        self.bad |= rows

    def _fail_one(self, row: int, reason: str) -> None:
        if not self.bad[row]:
            self.refuse(int(self.at[row]), reason)
            self.bad[row] = True

    def _column(self, name: str, type_: pa.DataType) -> pa.Array:
        if name not in self.batch.schema.names:
            return pa.nulls(self.batch.num_rows, type_)
        return self.batch[name]

    def publishes(self, base: int) -> Publishes:
        """The valid rows; the others are refused."""
        ids = self._column("id", pa.large_string())
        if not _is_string(ids.type):
            self._fail(np.ones(len(ids), bool), f"id: expected a string, got {ids.type}")
            ids = pa.nulls(len(ids), pa.large_string())
        ids = ids.cast(pa.large_string())
        length = numbers(pc.utf8_length(ids).fill_null(0))
        self._fail(
            (length < 1) | (length > MAX_ID_LENGTH),
            f"id: expected a string of 1 to {MAX_ID_LENGTH} characters",
        )
        time = self._times()
        x, y = self._positions()
        text = self._column("text", pa.large_string())
        if not _is_string(text.type) and not pa.types.is_null(text.type):
            self._fail(numbers_valid(text), f"text: expected a string, got {text.type}")
            text = pa.nulls(len(ids), pa.large_string())
        keywords = self._keywords()
        kept = np.flatnonzero(~self.bad)
        if len(kept) < len(ids):
            rows = pa.array(kept)
            ids, text, keywords = ids.take(rows), text.take(rows), keywords.take(rows)
            time, x, y = time[kept], x[kept], y[kept]
        offsets, values = _entries(keywords)
        return Publishes(self.at[kept] | base, ids, time, x, y, text, values, offsets)

    def _times(self) -> NDArray[np.int64]:
        column = self._column("time", pa.int64())
        n = len(column)
        if pa.types.is_integer(column.type):
            whole = numbers(column.fill_null(0))
            time = np.where(whole > LIMIT, LIMIT, whole).astype(np.int64)  # uint64 would turn over
        elif _is_string(column.type):
            time = np.zeros(n, np.int64)
            for i, value in enumerate(column.to_pylist()):
                try:
                    time[i] = to_ms(value) if value is not None else 0
                except Invalid as error:
                    self._fail_one(i, str(error))
        else:
            time = np.zeros(n, np.int64)
            self._fail(np.ones(n, bool), f"time: expected an integer, got {column.type}")
        self._fail(~numbers_valid(column), "time: missing")
        far = (time >= LIMIT) | (time <= -LIMIT)
        self._fail(far, "time: beyond what epoch milliseconds can hold here")
        return time

    def _positions(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        column = self._column("at", pa.large_list(pa.float64()))
        n = len(column)
        wrong = "at: expected [x, y], two finite numbers"
        if not (_is_list(column.type) and _is_number(column.type.value_type)):
            self._fail(np.ones(n, bool), f"{wrong}, got {column.type}")
            return np.zeros(n), np.zeros(n)
        two = pc.equal(pc.list_value_length(column), 2).fill_null(False)
        ok = two.to_numpy(zero_copy_only=False)
        self._fail(~ok, wrong)
        flat = column.filter(two) if not ok.all() else column
        # Not safe: an integer beyond 2^53 is rounded, as in JSON.
        values = pc.list_flatten(flat).cast(pa.float64(), safe=False)
        pairs = np.full((n, 2), np.nan)
        pairs[ok] = values.to_numpy(zero_copy_only=False).reshape(-1, 2)
        x, y = pairs[:, 0].copy(), pairs[:, 1].copy()
        for i in np.flatnonzero(misplaced(self.space, x, y) & ~self.bad).tolist():
            self._fail_one(i, why_misplaced(self.space, float(x[i]), float(y[i])))
        return x, y

    def _keywords(self) -> pa.Array:
        column = self._column("keywords", pa.large_list(pa.large_string()))
        n = len(column)
        if pa.types.is_null(column.type):
            return pa.nulls(n, pa.large_list(pa.large_string()))
        if _is_list(column.type) and pa.types.is_null(column.type.value_type):
            column = column.cast(pa.large_list(pa.large_string()))  # no object has any
        if not (_is_list(column.type) and _is_string(column.type.value_type)):
            self._fail(numbers_valid(column), f"keywords: expected strings, got {column.type}")
            return pa.nulls(n, pa.large_list(pa.large_string()))
        if column.flatten().null_count:
            lost = [v is not None and None in v for v in column.to_pylist()]
            self._fail(np.array(lost), "keywords: a keyword is null")
        return column


def numbers_valid(column: pa.Array) -> NDArray[np.bool_]:
    """Which rows are not null."""
    valid: NDArray[np.bool_] = pc.is_valid(column).to_numpy(zero_copy_only=False)
    return valid


def _is_string(type_: pa.DataType) -> bool:
    if pa.types.is_dictionary(type_):
        return _is_string(type_.value_type)
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


# Columns of rows that are no objects, and the types that need no closer look.
_USUAL = {"op": _is_string, "id": _is_string, "time": pa.types.is_integer, "query": _is_string}
_RARE = {
    "expires": pa.types.is_integer,
    "owner": _is_string,
    "meta": _is_string,
    "last": pa.types.is_integer,
}


def _is_number(type_: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_)
    )


def _is_list(type_: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(type_)
        or pa.types.is_large_list(type_)
        or pa.types.is_fixed_size_list(type_)
    )


def _entries(keywords: pa.Array) -> tuple[NDArray[np.int64], pa.Array]:
    """(offsets of each object's entries, all entries) of a list column that may hold nulls."""
    lengths = pc.list_value_length(keywords).fill_null(0)
    offsets = np.zeros(len(keywords) + 1, np.int64)
    np.cumsum(numbers(lengths), out=offsets[1:])
    return offsets, pc.list_flatten(keywords)
