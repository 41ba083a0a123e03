"""Asks as rows: queries about the past, answered once (docs/spec.md, section 5).

An ask is a row of its kind's table, as if it were a subscription, with the columns of ASK_COLUMNS
behind. Its `end` is the time after which objects count.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pyarrow as pa

from nearcast.kernels.slots import CONJUNCTION, SUBSCRIBE
from nearcast.model.errors import Invalid
from nearcast.model.space import Space
from nearcast.wire.kind import Kinds, WireKind
from nearcast.wire.programs import compile_where
from nearcast.wire.shapes import AskShape, kind_name
from nearcast.wire.subscriptions import control_table, json_body
from nearcast.wire.tables import NEVER
from nearcast.wire.times import to_ms

__all__ = ["ASK_COLUMNS", "AT", "KEYWORDS", "TEXT", "TIME", "AskBuilder", "asks_with"]

FIELDS = ("at", "time", "text", "keywords")
AT, TIME, TEXT, KEYWORDS = (1 << n for n in range(4))  # bits of the column `fields`

ASK_COLUMNS = pa.schema(
    [
        ("limit", pa.int64()),  # 0: none
        ("fields", pa.int64()),  # bits: what each object of the answer shows
        ("file", pa.string()),  # for a reject on the shard, as in REJECTS
        ("line", pa.int64()),
        ("event", pa.string()),
    ]
)


def asks_with(kind: WireKind) -> pa.Schema:
    """The columns of asks of a kind."""
    return pa.schema([*kind.schema, *ASK_COLUMNS])


class AskBuilder:
    """Collects the asks of a split."""

    def __init__(self, space: Space, kinds: Kinds, file: str) -> None:
        self.space, self.kinds, self.file = space, kinds, file
        self._rows: dict[str, list[tuple[Any, ...]]] = {}

    def add(self, event: AskShape[Any], pos: int, line: int, excerpt: int) -> None:
        """Add an ask; `excerpt`: characters of it that a reject shows. Raises `Invalid`."""
        time = to_ms(event.time)
        query = event.query
        kind = self.kinds[kind_name(query)]
        if kind.answers is None:
            raise Invalid(f"query.kind: {kind.name} has no asks; subscribe to it")
        try:
            program, words, conjunction = compile_where(query.where or "")
        except Invalid as error:
            raise Invalid(f"query.where: {error}") from None
        bits, own = kind.compile(query, self.space)
        flags = bits | CONJUNCTION if conjunction else bits
        limit = _one_of("limit", event.limit, query.limit)
        fields = _one_of("fields", event.fields, query.fields) or []
        shown = sum(1 << FIELDS.index(name) for name in set(fields))
        text = msgspec.json.encode(event).decode()[:excerpt]
        row = (
            pos, SUBSCRIBE, time, time - event.last, NEVER, flags, json_body(event.id), b"",
            program, words, *own, limit or 0, shown, self.file, line, text,
        )  # fmt: skip
        self._rows.setdefault(kind.name, []).append(row)

    def tables(self) -> dict[str, pa.RecordBatch]:
        """The asks of each kind that has any, in the order of `pos`."""
        return {
            name: control_table(rows, asks_with(self.kinds[name]))
            for name, rows in self._rows.items()
        }


def _one_of(name: str, beside: Any, inside: Any) -> Any:
    """What stands beside the query or in it; both must agree."""
    if beside is not None and inside is not None and beside != inside:
        raise Invalid(f"{name}: stands beside the query and in it, and differs; give it once")
    return inside if beside is None else beside
