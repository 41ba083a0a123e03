"""The stream of `bench range-index`: subscriptions, objects, and churn between them, as tables."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.kernels.slots import BOXES_SHIFT, CONJUNCTION, REPORTS
from nearcast.model.region import CIRCLE, Circle, outer_boxes
from nearcast.model.space import Space
from nearcast.wire.tables import REGIONS, ObjectColumns, list_column, object_columns
from nearcast.workload.range_queries import (
    OBJECT_COUNT,
    QUERIES,
    SEED,
    SIDE_MAX,
    Places,
    Queries,
    RangeWorkload,
    more_queries,
    object_table,
    range_workload,
    subscribe_table,
    unsubscribe_table,
)

BATCH = 50_000  # objects
CHUNK = 250_000  # subscriptions applied at once
EVERY = 5  # objects to one insertion or deletion
SHAPES = ("box", "circle")
_CORNER = (139.0, 35.0)  # on the earth, the square is a degree long, and begins here
_METRES = 111_195.0  # of a degree of latitude


@dataclass(frozen=True, slots=True)
class Setting:
    """One run."""

    queries: int = QUERIES
    objects: int = OBJECT_COUNT
    side_max: float = SIDE_MAX
    seed: int = SEED
    churn: bool = False
    indexes: tuple[str, ...] = ()
    shape: str = "box"
    space: Space = Space.PLANAR


@dataclass(slots=True)
class Batch:
    """What an index is given at once."""

    objects: ObjectColumns
    controls: pa.RecordBatch | None  # with churn
    at: NDArray[np.int32]


@dataclass(slots=True)
class Stream:
    """The workload as tables, and as plain arrays for the check."""

    subscribes: list[pa.RecordBatch]
    batches: list[Batch]
    work: RangeWorkload
    queries: Queries  # those that come later too
    begins: NDArray[np.int64]  # the first object that each query sees
    ends: NDArray[np.int64]  # and the first that it does not
    space: Space


def make_stream(setting: Setting) -> Stream:
    """Generate everything."""
    work = range_workload(setting.queries, setting.objects, setting.side_max, setting.seed)
    return stream_of(setting, work)


def stream_of(setting: Setting, work: RangeWorkload) -> Stream:
    """The stream of a workload of that size."""
    work = _placed(work, setting)
    n, m = setting.queries, setting.objects
    subscribes = [
        _shaped(
            subscribe_table(
                Queries(work.queries.boxes[i : i + CHUNK], work.queries.words[i : i + CHUNK]),
                work.hashes,
                i,
                np.zeros(len(work.queries.boxes[i : i + CHUNK]), np.int64),
            ),
            setting,
        )
        for i in range(0, n, CHUNK)
    ]
    times = np.arange(1, m + 1)
    table = object_table(work.objects, work.hashes, times)
    slices = [(i, min(i + BATCH, m)) for i in range(0, m, BATCH)]
    batches = [
        Batch(object_columns(table.slice(a, b - a)), None, np.empty(0, np.int32)) for a, b in slices
    ]
    stream = Stream(
        subscribes,
        batches,
        work,
        work.queries,
        np.zeros(n, np.int64),
        np.full(n, m, np.int64),
        setting.space,
    )
    if setting.churn:
        _add_churn(stream, setting, slices)
    return stream


def _add_churn(stream: Stream, setting: Setting, slices: list[tuple[int, int]]) -> None:
    """Insertions of new queries and deletions of old ones, in turns, after every fifth object."""
    n, m = setting.queries, setting.objects
    places = np.arange(EVERY, m, EVERY)  # the object that each comes before
    comes, goes = places[0::2], places[1::2][:n]
    new = more_queries(len(comes), setting.side_max, setting.seed)
    new = Queries(_on(setting, new.boxes), new.words)
    deleted = np.random.default_rng([setting.seed, 2]).permutation(n)[: len(goes)]
    stream.begins = np.concatenate([stream.begins, comes])
    stream.ends = np.concatenate([stream.ends, np.full(len(comes), m)])
    stream.ends[deleted] = goes
    old = stream.queries
    width = max(old.words.shape[1], new.words.shape[1])
    stream.queries = Queries(
        np.concatenate([old.boxes, new.boxes]),
        np.concatenate([_widened(old.words, width), _widened(new.words, width)]),
    )
    insertions = _shaped(subscribe_table(new, stream.work.hashes, n, comes + 1), setting)
    deletions = unsubscribe_table(deleted, goes + 1)
    both = pa.Table.from_batches([insertions, deletions]).combine_chunks().to_batches()[0]
    position = np.concatenate([comes, goes])
    order = np.argsort(position, kind="stable")
    both, position = both.take(pa.array(order)), position[order]
    for batch, (a, b) in zip(stream.batches, slices, strict=True):
        first, stop = np.searchsorted(position, [a, b])
        batch.controls = both.slice(first, stop - first)
        batch.at = (position[first:stop] - a).astype(np.int32)


def _placed(work: RangeWorkload, setting: Setting) -> RangeWorkload:
    """The workload in the space of the setting."""
    queries = Queries(_on(setting, work.queries.boxes), work.queries.words)
    return replace(
        work, queries=queries, objects=Places(_on(setting, work.objects.at), work.objects.words)
    )


def _on(setting: Setting, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Coordinates of the unit square, x and y in turns, in the space of the setting."""
    if setting.space is Space.PLANAR:
        return numbers
    moved: NDArray[np.float64] = numbers + np.tile(_CORNER, numbers.shape[1] // 2)
    return moved


def circle_in(setting: Setting, box: NDArray[np.float64]) -> Circle:
    """The circle that stands in the place of a box; as high as it."""
    west, south, east, north = box.tolist()
    unit = 1.0 if setting.space is Space.PLANAR else _METRES
    return Circle((west + east) / 2, (south + north) / 2, (north - south) / 2 * unit)


def _shaped(table: pa.RecordBatch, setting: Setting) -> pa.RecordBatch:
    """REGIONS of boxes as those of the shape of the setting."""
    if setting.shape == "box":
        return table
    boxes = np.asarray(table["region"].flatten()).reshape(-1, 4)
    circles = [circle_in(setting, box) for box in boxes]
    numbers = np.array([(c.x, c.y, c.radius) for c in circles]).ravel()
    outer = np.array([outer_boxes(setting.space, c) for c in circles]).ravel()
    n, reals = len(boxes), REGIONS.field("region").type
    flags = CIRCLE | REPORTS | CONJUNCTION | 1 << BOXES_SHIFT
    columns = {
        "flags": pa.array(np.full(n, flags, np.int32)),
        "region": list_column(np.arange(0, 3 * n + 1, 3), numbers, reals),
        "boxes": list_column(np.arange(0, 4 * n + 1, 4), outer, reals),
    }
    return pa.RecordBatch.from_arrays(
        [columns.get(name, table[name]) for name in table.schema.names], schema=table.schema
    )


def _widened(words: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    more = np.full((len(words), width - words.shape[1]), -1, np.int64)
    return np.hstack([words, more])
