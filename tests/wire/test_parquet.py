"""Coded columns, as Arrow reads them back from the file."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.kernels.hybrid import pack
from nearcast.wire import parquet
from nearcast.wire.parquet import CodedWriter, Column, texts

SCHEMA = pa.schema(
    [
        pa.field("name", pa.string(), nullable=False),
        pa.field("number", pa.int64(), nullable=False),
        ("far", pa.float64()),
        ("echo", pa.string()),
    ]
)


def unpacked(data: bytes, width: int, count: int) -> list[int]:
    """What `pack` packed, by the letter of the format."""
    out: list[int] = []
    at = 0
    while len(out) < count:
        head = shift = 0
        while True:
            head |= (data[at] & 0x7F) << shift
            shift += 7
            at += 1
            if data[at - 1] < 0x80:
                break
        if head & 1:
            size = (head >> 1) * width
            bits = int.from_bytes(data[at : at + size], "little")
            out += [bits >> (width * n) & ((1 << width) - 1) for n in range((head >> 1) * 8)]
        else:
            size = (width + 7) // 8
            out += [int.from_bytes(data[at : at + size], "little")] * (head >> 1)
        at += size
    assert at == len(data)
    return out[:count]


@settings(max_examples=200)
@given(
    st.integers(1, 31).flatmap(
        lambda width: st.tuples(
            st.just(width),
            st.lists(
                st.tuples(
                    st.one_of(st.just((1 << width) - 1), st.integers(0, (1 << width) - 1)),
                    st.sampled_from([1, 1, 2, 7, 8, 9, 15, 16, 17, 200]),
                ),
                max_size=30,
            ),
        )
    )
)
def test_codes_come_back(drawn: tuple[int, list[tuple[int, int]]]) -> None:
    width, runs = drawn
    codes = [value for value, length in runs for _ in range(length)]
    packed = pack(np.array(codes, np.int32), width).tobytes()
    assert unpacked(packed, width, len(codes)) == codes


rows = st.lists(
    st.tuples(
        st.sampled_from(["a", "bc", "", "dé", "x" * 300]),
        st.integers(-(2**63), 2**63 - 1),
        st.none() | st.floats(allow_nan=False),
        st.none() | st.sampled_from(["{}", "1"]),
    ),
    min_size=1,
    max_size=40,
)


def columns_of(drawn: list[tuple[Any, ...]]) -> list[Column]:
    names, numbers, far, echo = zip(*drawn, strict=True)
    words = pa.array(names).dictionary_encode()
    echoes = pa.array(echo, pa.string())
    coded = echoes.drop_null().dictionary_encode()
    return [
        Column(*texts(words.dictionary), words.indices.to_numpy()),
        Column(np.array(numbers, np.int64), len(numbers)),
        Column(
            np.array([f for f in far if f is not None], np.float64),
            len(far) - far.count(None),
            present=np.array([f is not None for f in far]),
        ),
        Column(
            *texts(coded.dictionary),
            coded.indices.to_numpy(),
            echoes.is_valid().to_numpy(zero_copy_only=False),
        )
        if len(coded)
        else Column(np.empty(0), 0, present=False),
    ]


@settings(max_examples=60)
@given(st.lists(rows, max_size=4), st.sampled_from([1, 3, 8, 1 << 18]))
def test_rows_come_back(groups: list[list[tuple[Any, ...]]], page: int) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "_PAGE", page)
        path = Path(folder, "rows.parquet")
        with CodedWriter(path, SCHEMA) as writer:
            for group in groups:
                writer.write(columns_of(group), len(group))
        table = pq.read_table(path)
        file = pq.ParquetFile(path)
        assert table.schema == SCHEMA
        assert [tuple(row.values()) for row in table.to_pylist()] == [
            row for group in groups for row in group
        ]
        for n, group in enumerate(groups):
            reported = file.metadata.row_group(n)
            assert reported.num_rows == len(group)
            numbers = [row[1] for row in group]
            found = reported.column(1).statistics
            assert (found.min, found.max) == (min(numbers), max(numbers))
        assert sum(file.metadata.row_group(n).total_byte_size for n in range(len(groups))) == sum(
            file.metadata.row_group(n).column(c).total_uncompressed_size
            for n in range(len(groups))
            for c in range(len(SCHEMA))
        )


def test_a_file_that_was_not_finished_is_none(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    with pytest.raises(RuntimeError), CodedWriter(path, SCHEMA):
        raise RuntimeError
    with pytest.raises(pa.ArrowInvalid):
        pq.read_table(path)
