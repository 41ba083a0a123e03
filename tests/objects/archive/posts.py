"""Objects for tests of the archive: STORED tables from posts, and what an archive should hold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from tests.objects.making import Post, objects_of

from nearcast.model.space import Space
from nearcast.objects.archive import Archive, ArchiveWriter, read
from nearcast.objects.archive.writing import DAY_MS
from nearcast.objects.tables import stored_table

RUN = "run-1"

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from(
    ['",', '","', "\\", "\\\\", '"', "[]", "", "\x00", "é\n", "\u2028"]
)
_TIMES = st.sampled_from([0, -1, 1, DAY_MS - 1, DAY_MS, -DAY_MS, -DAY_MS - 1, 2**61, -(2**61)])
_EDGES = st.sampled_from([0.0, -0.0, 180.0, -180.0, 90.0, -90.0, 1e-300, 0.1])


def _json(value: object) -> bytes:
    return msgspec.json.encode(value)


def posts(space: Space = Space.GEOGRAPHIC) -> st.SearchStrategy[Post]:
    """Posts with odd strings, times at borders of days, and places at the edges of space."""
    if space is Space.GEOGRAPHIC:
        x, y = st.floats(-180, 180) | _EDGES, st.floats(-90, 90) | _EDGES.filter(lambda v: v <= 90)
        y = y.map(lambda v: max(v, -90.0))
    else:
        x = y = st.floats(allow_nan=False, allow_infinity=False) | _EDGES
    return st.builds(
        Post,
        x,
        y,
        _TIMES | st.integers(-3 * DAY_MS, 3 * DAY_MS),
        st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 3), max_size=4),
        _TEXT.map(lambda t: _json(t)[1:-1].decode()),
        st.just(b"") | _TEXT.map(_json),
        st.just(b"") | st.lists(_TEXT, max_size=4).map(_json),
    )


def stored_of(posts: Sequence[Post], first_rank: int = 0) -> pa.RecordBatch:
    """Posts as STORED."""
    return stored_table(*objects_of(posts, first_rank))


def some(rng: np.random.Generator, n: int, days: int = 1, first_rank: int = 0) -> pa.RecordBatch:
    """Objects all over the world, on some days from 1970 on."""
    return stored_of(
        [
            Post(
                float(rng.uniform(-180, 180)),
                float(rng.uniform(-90, 90)),
                int(rng.integers(0, days * DAY_MS)),
                dict.fromkeys(rng.choice(list("abcdef"), 2, replace=False).tolist(), 1),
                f"o{first_rank + i}",
                b'"a text"',
                b'["k","l m"]',
            )
            for i in range(n)
        ],
        first_rank,
    )


def write_batch(archive: Archive, batch: int, tables: Sequence[pa.RecordBatch]) -> None:
    """One batch as the engine runs it: a table per shard, then the commit."""
    writer = ArchiveWriter(archive.folder, archive.manifest.space)
    parts = [p for shard, t in enumerate(tables) for p in writer.write(batch, shard, t)]
    archive.commit(batch, parts)


def everything(folder: Path) -> pa.RecordBatch:
    """All objects of an archive."""
    return read(folder, -(2**62), 2**62)


def joined(tables: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """All objects of tables in object order."""
    whole = pa.concat_batches(tables)
    return whole.take(pa.array(np.argsort(whole["rank"].to_numpy(), kind="stable")))
