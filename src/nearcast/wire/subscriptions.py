"""Subscribes as rows of their kind's table, unsubscribes as rows of ENDS."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from nearcast.kernels.slots import CONJUNCTION, REPORTS, SUBSCRIBE, UNSUBSCRIBE
from nearcast.model.errors import Invalid
from nearcast.model.space import Space
from nearcast.wire.kind import Kinds
from nearcast.wire.lasts import lasts_with
from nearcast.wire.programs import Token, compile_where
from nearcast.wire.shapes import SubscribeShape, UnsubscribeShape, kind_name
from nearcast.wire.tables import (
    ENDS,
    FOREVER,
    NEVER,
    WORDS,
    empty,
    join,
    list_column,
    numbers,
    table_of,
)
from nearcast.wire.times import to_ms
from nearcast.wire.words import hash_words

_ENCODE = msgspec.json.Encoder().encode


def json_body(text: str) -> bytes:
    """`text` as it stands between the quotes of a JSON string."""
    return _ENCODE(text)[1:-1]


class ControlBuilder:
    """Collects the subscribes and unsubscribes of a split; words are hashed all at once."""

    def __init__(self, space: Space, kinds: Kinds) -> None:
        self.space = space
        self.kinds = kinds
        self._rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in kinds}
        self._ends: list[tuple[Any, ...]] = []
        self._lasts: dict[str, list[tuple[Any, ...]]] = {}
        self._plain: dict[str, pa.RecordBatch] = {}
        self._plain_ends = empty(ENDS)

    def plain(self, subscribes: dict[str, pa.RecordBatch], ends: pa.RecordBatch) -> None:
        """Add what `wire.plain_controls` read, each table in the order of `pos`; once."""
        self._plain, self._plain_ends = subscribes, ends

    def unsubscribe(self, event: UnsubscribeShape, pos: int) -> None:
        """Add an unsubscribe."""
        self._ends.append((pos, UNSUBSCRIBE, to_ms(event.time), NEVER, json_body(event.id)))

    def subscribe(
        self, event: SubscribeShape[Any], pos: int, file: str, line: int, excerpt: int
    ) -> None:
        """Add a subscribe; `excerpt`: characters of it that a reject shows. Raises `Invalid`."""
        time = to_ms(event.time)
        query = event.query
        kind = self.kinds[kind_name(query)]
        last = event.last if kind.window is None else None  # it begins with the window anyway
        if last is not None and kind.firsts is None:
            raise Invalid(f"last: {kind.name} does not look back; leave it out")
        try:
            program, words, conjunction = compile_where(query.where or "")
        except Invalid as error:
            raise Invalid(f"query.where: {error}") from None
        bits, own = kind.compile(query, self.space)
        flags = bits | REPORTS | CONJUNCTION if conjunction else bits | REPORTS
        end = FOREVER if event.expires is None else to_ms(event.expires, "expires")
        tail = _tail(event) if event.owner is not None or event.meta is not None else b""
        row = (
            pos, SUBSCRIBE, time, end, NEVER, flags, json_body(event.id), tail, program, words,
            *own,
        )  # fmt: skip
        self._rows[kind.name].append(row)
        if last is not None:
            text = msgspec.json.encode(event).decode()[:excerpt]
            more = (time - last, file, line, text)
            self._lasts.setdefault(kind.name, []).append(row + more)

    def tables(self) -> tuple[dict[str, pa.RecordBatch], pa.RecordBatch]:
        """(subscribes of each kind that has any, ENDS), all in the order of `pos`."""
        subscribes = {}
        for name, kind in self.kinds.items():
            found = [control_table(self._rows[name], kind.schema)]
            if name in self._plain:
                found.append(self._plain[name])
            table = _by_pos(found, kind.schema)
            if table.num_rows:
                subscribes[name] = table
        return subscribes, _by_pos([self._plain_ends, table_of(self._ends, ENDS)], ENDS)

    def lasts(self) -> dict[str, pa.RecordBatch]:
        """Those that look back, by kind, in the order of `pos`."""
        return {
            name: control_table(rows, lasts_with(self.kinds[name]))
            for name, rows in self._lasts.items()
        }


def control_table(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    """Rows whose lists of words hold them as text; here they are hashed, all at once."""
    if not rows:
        return empty(schema)
    columns = [list(c) for c in zip(*rows, strict=True)]
    arrays = [
        _hashed(c) if field.type == WORDS else pa.array(c, field.type)
        for field, c in zip(schema, columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _hashed(column: list[list[Token]]) -> pa.Array:
    offsets = np.zeros(len(column) + 1, np.int64)
    np.cumsum([len(c) for c in column], out=offsets[1:])
    flat = [token for tokens in column for token in tokens]
    words = [token for token in flat if isinstance(token, str)]
    hashes = hash_words(words)
    if len(words) == len(flat):
        values = hashes
    else:
        values = np.array([0 if isinstance(t, str) else t for t in flat], np.uint64)
        values[[isinstance(t, str) for t in flat]] = hashes
    return list_column(offsets, values, WORDS)


def _by_pos(tables: list[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """All rows, in the order of `pos`; each table is in that order already."""
    whole = join(tables, schema)
    if sum(t.num_rows > 0 for t in tables) < 2:
        return whole
    return whole.take(pa.array(np.argsort(numbers(whole["pos"]))))


def _tail(event: SubscribeShape[Any]) -> bytes:
    """What notifications echo, ready to be written."""
    tail = b""
    if event.owner is not None:
        tail += b',"owner":' + msgspec.json.encode(event.owner)
    if event.meta is not None:
        try:
            tail += b',"meta":' + msgspec.json.encode(event.meta)
        except (OverflowError, RecursionError, ValueError) as error:
            raise Invalid(f"meta: cannot be echoed ({error})") from None
    return tail
