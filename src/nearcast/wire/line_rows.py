"""Notifications as rows of Parquet, from their JSON lines."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.wire.kind import Kinds
from nearcast.wire.notifications import answers_schema, fields_of, notifications_schema

__all__ = ["table_of", "write_table"]


def write_table(lines: bytes, kinds: Kinds, answers: bool, path: Path) -> None:
    """Write a Parquet file of lines, all of them answers or none."""
    pq.write_table(table_of(lines, kinds, answers), path)


def table_of(lines: bytes, kinds: Kinds, answers: bool = False) -> pa.Table:
    """The rows of JSON lines. What has no column type of its own is JSON text, as it stands."""
    schema = answers_schema(kinds) if answers else notifications_schema(kinds)
    raw = set(answers_schema(kinds).names[3:]) if answers else {*fields_of(kinds), "meta"}
    rows = msgspec.json.Decoder(_row(tuple(schema), frozenset(raw))).decode_lines(lines)
    columns = []
    for field in schema:
        values = [getattr(row, f"_{field.name}") for row in rows]
        if field.name in raw:
            values = [bytes(v).decode() or None for v in values]
        columns.append(pa.array(values, field.type))
    return pa.Table.from_arrays(columns, schema=schema)


@lru_cache(maxsize=8)
def _row(fields: tuple[pa.Field, ...], raw: frozenset[str]) -> type[msgspec.Struct]:
    """A struct with a field per column."""
    types: dict[pa.DataType, Any] = {pa.string(): str, pa.int64(): int, pa.float64(): float}
    none = msgspec.Raw(b"")
    declared: list[tuple[str, Any, Any]] = [
        (f"_{f.name}", msgspec.Raw, none)
        if f.name in raw
        else (f"_{f.name}", types[f.type] | None, None)
        for f in fields
    ]
    names = {f"_{f.name}": f.name for f in fields}
    return msgspec.defstruct("Row", declared, rename=names)
