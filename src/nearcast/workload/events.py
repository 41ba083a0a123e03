"""Objects and subscriptions as event logs: Arrow batches, written as JSONL or Parquet.

All text is put together by Arrow's compute functions, a column at a time, so that no Python runs
for each event.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nearcast.workload.corpus import Corpus, Objects
from nearcast.workload.jsontext import json_lines
from nearcast.workload.ragged import Floats, Longs
from nearcast.workload.subscriptions import Subscriptions

START_MS = 1_700_000_000_000
ROW_GROUP = 100_000

SCHEMA = pa.schema(
    [
        ("op", pa.string()),
        ("id", pa.string()),
        ("time", pa.int64()),
        ("at", pa.list_(pa.float64())),
        ("keywords", pa.list_(pa.string())),
        ("text", pa.string()),
        ("expires", pa.int64()),
        ("last", pa.int64()),
        ("query", pa.string()),
        ("owner", pa.string()),
        ("meta", pa.string()),
    ]
)

Progress = Callable[[int], None]


def publish_events(corpus: Corpus, objects: Objects, first: int, times: Longs) -> pa.RecordBatch:
    """Publish events ``o{first}``, ``o{first + 1}``, … at these times."""
    return batch(
        len(objects),
        op=_constant("publish", len(objects)),
        id=_numbered("o", np.arange(first, first + len(objects))),
        time=pa.array(times),
        at=points(objects.lon, objects.lat),
        keywords=_lists(objects.offsets, corpus.words(objects.keywords)),
    )


def subscribe_events(
    corpus: Corpus,
    subscriptions: Subscriptions,
    first: int,
    times: Longs,
    maxdist: float | None = None,
) -> pa.RecordBatch:
    """Subscribe events ``s{first}``, ``s{first + 1}``, … at these times."""
    n = len(subscriptions)
    return batch(
        n,
        op=_constant("subscribe", n),
        id=_numbered("s", np.arange(first, first + n)),
        time=pa.array(times),
        query=queries(corpus, subscriptions, maxdist),
    )


def unsubscribe_events(numbers: Longs, times: Longs) -> pa.RecordBatch:
    """Unsubscribe events of the subscriptions with these numbers at these times."""
    n = len(numbers)
    return batch(
        n, op=_constant("unsubscribe", n), id=_numbered("s", numbers), time=pa.array(times)
    )


def queries(
    corpus: Corpus, subscriptions: Subscriptions, maxdist: float | None = None
) -> pa.StringArray:
    """The query of each subscription as JSON text; `maxdist` is for those with alpha."""
    lists = _lists(subscriptions.offsets, corpus.words(subscriptions.keywords))
    if subscriptions.alpha is not None:
        return _top_queries(subscriptions, lists, maxdist)
    separators = pa.array([" AND ", " OR "]).take(pa.array(subscriptions.operator))
    where = pc.binary_join(lists, separators)
    if subscriptions.bbox is not None:
        numbers = pc.binary_join(_fixed_lists(subscriptions.bbox).cast(pa.list_(pa.string())), ",")
        head = ['{"kind":"range","region":{"bbox":[', numbers, "]}"]
    else:
        at = points(subscriptions.lon, subscriptions.lat).cast(pa.list_(pa.string()))
        k = pa.array(subscriptions.k).cast(pa.string())
        head = ['{"kind":"knn","at":[', pc.binary_join(at, ","), '],"k":', k]
    return pc.binary_join_element_wise(*head, ',"where":"', where, '"}', "")


def _top_queries(
    subscriptions: Subscriptions, lists: pa.ListArray, maxdist: float | None
) -> pa.StringArray:
    at = points(subscriptions.lon, subscriptions.lat).cast(pa.list_(pa.string()))
    own = "" if maxdist is None else f',"maxdist":{maxdist!r}'
    return pc.binary_join_element_wise(
        '{"kind":"topk","at":[', pc.binary_join(at, ","),
        '],"k":', pa.array(subscriptions.k).cast(pa.string()),
        ',"keywords":["', pc.binary_join(lists, '","'),
        '"],"alpha":', pa.array(subscriptions.alpha).cast(pa.string()),
        own + "}", "",
    )  # fmt: skip


def points(x: Floats, y: Floats) -> pa.ListArray:
    """Positions as a list column."""
    return _fixed_lists(np.stack([x, y], axis=1))


def batch(n: int, **columns: pa.Array) -> pa.RecordBatch:
    """A record batch of the event schema; columns that are not given are null."""
    filled = [columns[f.name] if f.name in columns else pa.nulls(n, f.type) for f in SCHEMA]
    return pa.RecordBatch.from_arrays(filled, schema=SCHEMA)


def write_jsonl(
    path: str | Path, batches: Iterable[pa.RecordBatch], progress: Progress | None = None
) -> int:
    """Write the events, one JSON object per line (gzip if the name ends in .gz); returns how many.

    ``progress`` receives the number of events written so far, after each batch.
    """
    written = 0
    with _opened(Path(path)) as out:
        for events in batches:
            out.write(json_lines(events))
            written += events.num_rows
            if progress is not None:
                progress(written)
    return written


def write_parquet(
    path: str | Path, batches: Iterable[pa.RecordBatch], progress: Progress | None = None
) -> int:
    """Write the events as Parquet (zstd, row groups of 100,000); returns how many.

    ``progress`` receives the number of events written so far, after each row group.
    """
    written = 0
    # A dictionary pays only where values repeat; ids and JSON texts are all different.
    repeating = ["op", "keywords.list.element", "owner"]
    with pq.ParquetWriter(path, SCHEMA, compression="zstd", use_dictionary=repeating) as writer:
        for events in regrouped(batches, ROW_GROUP):
            writer.write_table(events, row_group_size=ROW_GROUP)
            written += events.num_rows
            if progress is not None:
                progress(written)
    return written


def regrouped(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    """The same rows in the same order in tables of ``rows`` rows; only the last may be shorter."""
    held: list[pa.RecordBatch] = []
    count = 0
    for events in batches:
        held.append(events)
        count += events.num_rows
        while count >= rows:
            table = pa.Table.from_batches(held, SCHEMA)
            yield table.slice(0, rows)
            held = table.slice(rows).to_batches()
            count -= rows
    if count:
        yield pa.Table.from_batches(held, SCHEMA)


@contextmanager
def _opened(path: Path) -> Iterator[io.BufferedIOBase]:
    with path.open("wb") as raw:
        if path.suffix != ".gz":
            yield raw
            return
        # No file name and no time of writing in the header: the same seed gives the same bytes.
        with gzip.GzipFile("", "wb", 4, raw, mtime=0) as packed:
            yield packed


def _constant(value: str, n: int) -> pa.StringArray:
    return pa.repeat(pa.scalar(value), n)


def _numbered(prefix: str, numbers: Longs) -> pa.StringArray:
    return pc.binary_join_element_wise(prefix, pa.array(numbers).cast(pa.string()), "")


def _lists(offsets: Longs, values: pa.Array) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values)


def _fixed_lists(values: npt.NDArray[np.float64]) -> pa.ListArray:
    n, width = values.shape
    return _lists(np.arange(0, (n + 1) * width, width), pa.array(values.ravel()))
