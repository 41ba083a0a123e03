"""Fields for answers, cut and joined; slices as Arrow tables (STORED) and back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.kernels.ragged import gather
from nearcast.objects.base import STORED, Fields, Objects
from nearcast.objects.coded import Coded, chained
from nearcast.wire.tables import list_column, lists, numbers, string_column, strings

__all__ = [
    "NO_ROWS",
    "fields_joined",
    "fields_taken",
    "no_fields",
    "read_table",
    "stored_table",
]


def no_fields(n: int) -> Fields:
    """The fields of objects that have none."""
    none = np.zeros(n + 1, np.int64), np.empty(0, np.uint8)
    return Fields(*none, *none)


def fields_taken(fields: Fields, rows: NDArray[np.int64]) -> Fields:
    """The fields of some objects, in this order."""
    text, keyword = fields.text_offsets, fields.keyword_offsets
    if len(fields.text_bytes) + len(fields.keyword_bytes) == 0:
        return no_fields(len(rows))
    return Fields(
        *gather(fields.text_bytes, text[rows], text[rows + 1] - text[rows]),
        *gather(fields.keyword_bytes, keyword[rows], keyword[rows + 1] - keyword[rows]),
    )


def fields_joined(parts: Sequence[Fields]) -> Fields:
    """The fields of several slices, one after the other."""
    if len(parts) == 1:
        return parts[0]
    return Fields(
        chained([p.text_offsets for p in parts]),
        np.concatenate([p.text_bytes for p in parts]),
        chained([p.keyword_offsets for p in parts]),
        np.concatenate([p.keyword_bytes for p in parts]),
    )


def stored_table(objects: Objects, fields: Fields) -> pa.RecordBatch:
    """Objects with their fields as STORED."""
    offsets = objects.word_offsets
    columns = [
        pa.array(objects.time),
        pa.array(objects.rank),
        pa.array(objects.x),
        pa.array(objects.y),
        string_column(objects.id_offsets, objects.id_bytes),
        list_column(offsets, objects.words, STORED.field("words").type),
        list_column(offsets, objects.counts, STORED.field("counts").type),
        list_column(offsets, objects.firsts, STORED.field("firsts").type),
        string_column(fields.text_offsets, fields.text_bytes),
        string_column(fields.keyword_offsets, fields.keyword_bytes),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=STORED)


def read_table(table: pa.RecordBatch) -> tuple[Objects, Fields]:
    """The objects of a table of STORED."""
    objects = Objects(
        numbers(table["x"]),
        numbers(table["y"]),
        numbers(table["time"]),
        numbers(table["rank"]),
        *lists(table["words"], np.uint64),
        lists(table["counts"], np.int32)[1],
        lists(table["firsts"], np.int32)[1],
        *strings(table["id"]),
    )
    return objects, Fields(*strings(table["text"]), *strings(table["keywords"]))


NO_ROWS = Coded(
    np.empty((0, 2)), np.empty((0, 2), np.int64), np.zeros(1, np.int64), np.empty(0, np.uint32),
    np.empty(0, np.uint8), np.empty(0, np.int64), np.empty(0, np.int64), np.zeros(1, np.int64),
    np.empty(0, np.uint8), np.empty(0, np.uint64),
)  # fmt: skip


def table_of_carried(objects: pa.RecordBatch, ranks: NDArray[np.int64]) -> pa.RecordBatch:
    """STORED of objects that carry counts, with these ranks; other fields they may lack."""
    columns = []
    for field in STORED:
        if field.name == "rank":
            columns.append(pa.array(ranks))
        elif field.name in objects.schema.names:
            columns.append(objects[field.name])
        else:
            columns.append(pa.nulls(len(ranks), field.type).fill_null(b""))
    return pa.RecordBatch.from_arrays(columns, schema=STORED)
