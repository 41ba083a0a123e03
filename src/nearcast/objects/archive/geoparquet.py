"""Files of GeoParquet 1.1: points as WKB, a box per row, the place and limits of the whole file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nearcast.model.space import Space
from nearcast.objects.archive.columns import ARCHIVED
from nearcast.objects.archive.manifest import Box
from nearcast.wire.durable import sync_file

__all__ = ["GROUP_ROWS", "bounds", "write_file"]

GROUP_ROWS = 1 << 15
"""Rows of a row group: what a reader takes at once, and one compact place."""

_POINT = 1  # the geometry type in WKB
_WKB = np.dtype([("order", "u1"), ("type", "<u4"), ("x", "<f8"), ("y", "<f8")])
_EDGES = ("xmin", "ymin", "xmax", "ymax")
_BOX = pa.struct([pa.field(name, pa.float32(), nullable=False) for name in _EDGES])
_WRITTEN = pa.schema(
    [
        *ARCHIVED,
        pa.field("geometry", pa.large_binary(), nullable=False),
        pa.field("bbox", _BOX, nullable=False),
    ]
)
_LISTS = ("keywords", "words", "counts", "firsts")  # whose values repeat


def bounds(x: NDArray[np.float64], y: NDArray[np.float64]) -> Box:
    """The least box around points; there must be some."""
    return float(x.min()), float(y.min()), float(x.max()), float(y.max())


def write_file(path: Path, table: pa.Table, space: Space) -> None:
    """Write objects of ARCHIVED, in this order; when this returns, their bytes are on the disk."""
    x, y = table["x"].to_numpy(), table["y"].to_numpy()
    columns = [*table.columns, _points(x, y), _boxes(x, y)]
    with pq.ParquetWriter(
        path,
        _WRITTEN,
        compression="zstd",
        compression_level=1,
        use_dictionary=[f"{name}.list.element" for name in _LISTS],
        use_byte_stream_split=["x", "y", *(f"bbox.{name}" for name in _EDGES)],
        write_statistics=["time", "rank", "x", "y", *(f"bbox.{name}" for name in _EDGES)],
        store_schema=False,  # other tools need not know of Arrow's large types
    ) as writer:
        writer.write_table(pa.Table.from_arrays(columns, schema=_WRITTEN), GROUP_ROWS)
        # Without Arrow's schema, the metadata of a table would not be written.
        writer.add_key_value_metadata(
            {
                "geo": msgspec.json.encode(_described(space, bounds(x, y))).decode(),
                "nearcast": msgspec.json.encode({"space": space.value}).decode(),
            }
        )
    sync_file(path)


def _points(x: NDArray[np.float64], y: NDArray[np.float64]) -> pa.Array:
    points = np.empty(len(x), _WKB)
    points["order"], points["type"] = 1, _POINT  # 1: little endian
    points["x"], points["y"] = x, y
    offsets = np.arange(len(x) + 1, dtype=np.int64) * _WKB.itemsize
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(points)]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(x), buffers)


def _boxes(x: NDArray[np.float64], y: NDArray[np.float64]) -> pa.Array:
    """A box around each point in half the bytes, rounded outwards: it may only be too large."""
    edges = [_rounded(v, -np.inf) for v in (x, y)] + [_rounded(v, np.inf) for v in (x, y)]
    return pa.StructArray.from_arrays([pa.array(e) for e in edges], fields=list(_BOX))


def _rounded(v: NDArray[np.float64], towards: float) -> NDArray[np.float32]:
    with np.errstate(over="ignore", under="ignore"):  # a plane may be wider than float32
        near = v.astype(np.float32)
        further: NDArray[np.float32] = np.nextafter(near, np.float32(towards))
    wrong = near > v if towards < 0 else near < v
    return np.where(wrong, further, near)


def _described(space: Space, box: Box) -> dict[str, Any]:
    """The metadata that makes a Parquet file a GeoParquet file."""
    column: dict[str, Any] = {
        "encoding": "WKB",
        "geometry_types": ["Point"],
        "bbox": box,
        "covering": {"bbox": {name: ["bbox", name] for name in _EDGES}},
    }
    if space is Space.PLANAR:
        column["crs"] = None  # unknown; left out it means OGC:CRS84, which is what geographic is
    return {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": column}}
