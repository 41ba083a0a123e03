"""Parquet files of columns that are coded already.

Notifications are mostly repetition: the id of an object stands once for each of its matches, that
of a subscription once for each of its objects. They are found as codes, so they are written as
codes. Arrow's writer takes codes too, but spends four times as long on them as finding them took
(it looks up every string again, and goes through nulls and levels row by row). At ten million
notifications per second that matters. Everything else about Parquet is left to Arrow.

The format: github.com/apache/parquet-format (README.md, Encodings.md, parquet.thrift). A row group
is one column after the other. A column is a page of its distinct values, if it is coded, and pages
of rows. Page headers and the footer of the file are Thrift structs in the compact protocol.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.kernels.hybrid import pack, plain_strings
from nearcast.wire.tables import strings

_PAGE = 1 << 18  # rows
_MAGIC = b"PAR1"
# parquet.thrift: Type, CompressionCodec, Encoding, PageType, FieldRepetitionType, ConvertedType
_TYPES = {pa.int64(): 2, pa.float64(): 5, pa.string(): 6}
_SNAPPY = 1
_PLAIN, _RLE, _CODES = 0, 3, 8
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_REQUIRED, _OPTIONAL = 0, 1
_UTF8 = 0


@dataclass(frozen=True, slots=True)
class Column:
    """Values of some rows: as they come, or each different one once, and codes."""

    values: NDArray[Any]  # int64, float64, or bytes as `texts` gives them
    count: int  # of values
    codes: NDArray[np.int32] | None = None  # of the rows that have a value
    present: NDArray[np.bool_] | bool = True  # which rows have one


def texts(column: pa.Array) -> tuple[NDArray[np.uint8], int]:
    """(values for a Column, how many) of an Arrow array of strings without nulls."""
    return plain_strings(*strings(column.cast(pa.large_string()))), len(column)


# -- Thrift --------------------------------------------------------------------------------------

_I32, _I64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12


class _Struct(dict[int, "tuple[int, Any]"]):
    """Fields by their number: (type, value); those without a value are left out."""

    def set(self, number: int, type_: int, value: Any) -> _Struct:
        if value is not None:
            self[number] = (type_, value)
        return self

    def encode(self) -> bytes:
        out, last = b"", 0
        for number, (type_, value) in sorted(self.items()):
            step = number - last
            out += bytes([step << 4 | type_]) if step < 16 else bytes([type_]) + _zigzag(number)
            out += _encoded(type_, value)
            last = number
        return out + b"\0"


def _varint(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def _zigzag(number: int) -> bytes:
    return _varint(number << 1 if number >= 0 else (-number << 1) - 1)


def _encoded(type_: int, value: Any) -> bytes:
    if type_ in (_I32, _I64):
        return _zigzag(value)
    if type_ == _BINARY:
        return _varint(len(value)) + bytes(value)
    if type_ == _STRUCT:
        encoded: bytes = value.encode()
        return encoded
    kind, items = value
    size = bytes([len(items) << 4 | kind]) if len(items) < 15 else bytes([0xF0 | kind])
    head = size if len(items) < 15 else size + _varint(len(items))
    return head + b"".join(_encoded(kind, item) for item in items)


# -- the file ------------------------------------------------------------------------------------


class _Page(NamedTuple):
    head: bytes
    data: memoryview | bytes
    raw: int  # bytes before compression


class CodedWriter:
    """Writes row groups of coded columns; complete, and on the disk, when it is closed."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.schema = schema
        self._file = path.open("wb")
        self._file.write(_MAGIC)
        self._groups: list[_Struct] = []
        self._rows = 0

    def __enter__(self) -> CodedWriter:
        """Nothing to prepare."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        """Close it."""
        with self._file:
            if error is None:
                self._finish()
                self._file.flush()
                os.fsync(self._file.fileno())

    def write(self, columns: Sequence[Column], rows: int) -> None:
        """A row group."""
        chunks = [
            self._chunk(field, column, rows)
            for field, column in zip(self.schema, columns, strict=True)
        ]
        raw = sum(chunk[3][1][6][1] for chunk in chunks)
        group = _Struct().set(1, _LIST, (_STRUCT, chunks)).set(2, _I64, raw).set(3, _I64, rows)
        self._groups.append(group)
        self._rows += rows

    def _chunk(self, field: pa.Field, column: Column, rows: int) -> _Struct:
        """A column of a row group, written; its ColumnChunk."""
        first = self._file.tell()
        pages = []
        if column.codes is not None:
            pages.append(_dictionary(column))
        pages += _pages(field, column, rows)
        starts = []
        for page in pages:
            starts.append(self._file.tell())
            self._file.write(page.head)
            self._file.write(page.data)
        coded = column.codes is not None
        meta = (
            _Struct()
            .set(1, _I32, _TYPES[field.type])
            .set(2, _LIST, (_I32, [_RLE, _PLAIN, _CODES] if coded else [_RLE, _PLAIN]))
            .set(3, _LIST, (_BINARY, [field.name.encode()]))
            .set(4, _I32, _SNAPPY)
            .set(5, _I64, rows)
            .set(6, _I64, sum(len(p.head) + p.raw for p in pages))
            .set(7, _I64, self._file.tell() - first)
            .set(9, _I64, starts[1 if coded else 0])
            .set(11, _I64, starts[0] if coded else None)
            .set(12, _STRUCT, _extent(field, column))
        )
        return _Struct().set(2, _I64, first).set(3, _STRUCT, meta)

    def _finish(self) -> None:
        root = _Struct().set(4, _BINARY, b"schema").set(5, _I32, len(self.schema))
        elements = [root, *(_element(field) for field in self.schema)]
        by_type = _Struct().set(1, _STRUCT, _Struct())
        foot = (
            _Struct()
            .set(1, _I32, 2)
            .set(2, _LIST, (_STRUCT, elements))
            .set(3, _I64, self._rows)
            .set(4, _LIST, (_STRUCT, self._groups))
            .set(6, _BINARY, b"nearcast")
            .set(7, _LIST, (_STRUCT, [by_type] * len(self.schema)))
            .encode()
        )
        self._file.write(foot + len(foot).to_bytes(4, "little") + _MAGIC)


def _element(field: pa.Field) -> _Struct:
    """A SchemaElement."""
    text = field.type == pa.string()
    return (
        _Struct()
        .set(1, _I32, _TYPES[field.type])
        .set(3, _I32, _OPTIONAL if field.nullable else _REQUIRED)
        .set(4, _BINARY, field.name.encode())
        .set(6, _I32, _UTF8 if text else None)
        .set(10, _STRUCT, _Struct().set(1, _STRUCT, _Struct()) if text else None)
    )


def _extent(field: pa.Field, column: Column) -> _Struct | None:
    """Statistics: the least and the largest of whole numbers, for readers that filter by them."""
    if field.type != pa.int64() or column.count == 0:
        return None
    least, most = (np.int64(v).tobytes() for v in (column.values.min(), column.values.max()))
    return _Struct().set(5, _BINARY, most).set(6, _BINARY, least)


def _page(type_: int, data: bytes, head: _Struct, number: int) -> _Page:
    """A page with its PageHeader; `head` is the field of that `number`."""
    packed = pa.Codec("snappy").compress(data)
    whole = (
        _Struct()
        .set(1, _I32, type_)
        .set(2, _I32, len(data))
        .set(3, _I32, packed.size)
        .set(number, _STRUCT, head)
    )
    return _Page(whole.encode(), memoryview(packed), len(data))


def _dictionary(column: Column) -> _Page:
    """The page of the different values."""
    head = _Struct().set(1, _I32, column.count).set(2, _I32, _PLAIN)
    return _page(_DICTIONARY_PAGE, column.values.tobytes(), head, 7)


def _pages(field: pa.Field, column: Column, rows: int) -> list[_Page]:
    """The pages of rows."""
    encoding = _PLAIN if column.codes is None else _CODES
    width = max(int(column.count - 1).bit_length(), 1)
    pages, done = [], 0
    for start in range(0, rows, _PAGE):
        count = min(_PAGE, rows - start)
        levels = b""
        held = count
        if field.nullable:
            some = column.present
            there = np.full(count, some) if isinstance(some, bool) else some[start : start + count]
            held = int(np.count_nonzero(there))
            packed = pack(there.astype(np.int32), 1).tobytes()
            levels = len(packed).to_bytes(4, "little") + packed
        if column.codes is None:
            data = column.values[done : done + held].tobytes()
        else:
            data = bytes([width]) + pack(column.codes[done : done + held], width).tobytes()
        done += held
        head = (
            _Struct()
            .set(1, _I32, count)
            .set(2, _I32, encoding)
            .set(3, _I32, _RLE)
            .set(4, _I32, _RLE)
        )
        pages.append(_page(_DATA_PAGE, levels + data, head, 5))
    return pages
