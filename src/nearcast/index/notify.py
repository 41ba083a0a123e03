"""Changes as notifications: JSON lines or an Arrow table (SPEC section 6)."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nearcast.index.base import ENTER, EVENTS, LEAVE, MATCH, Changes, LocalIndex
from nearcast.kernels.lines import Lines, size, write
from nearcast.kernels.ragged import frozen, gather
from nearcast.wire.tables import string_column

NOTIFICATIONS = pa.schema(
    [
        ("id", pa.string()),
        ("event", pa.string()),
        ("object", pa.string()),
        ("time", pa.int64()),
        ("distance", pa.float64()),
        ("owner", pa.string()),
        ("meta", pa.string()),  # JSON text
    ]
)
# The same with what repeats as codes: so it is written, and reads back as NOTIFICATIONS.
_CODED = pa.schema(
    [
        ("id", pa.large_string()),
        ("event", pa.dictionary(pa.int8(), pa.string())),
        ("object", pa.dictionary(pa.int32(), pa.large_string())),
        *(NOTIFICATIONS.field(name) for name in ("time", "distance", "owner", "meta")),
    ]
)

_NAME_BITS = np.uint64(33)  # of a place in `names`, below the 31 of a slot


def net(changes: Changes) -> Changes:
    """Only the difference of each result before and after the batch.

    What entered and left again (or left and came back) within the batch is not told; what is told
    keeps the time and the place of its last change.
    """
    if len(changes) == 0 or (changes.event == MATCH).all():
        return changes
    signs = np.where(changes.event == ENTER, 1, np.where(changes.event == LEAVE, -1, 0))
    pairs = (changes.slot.astype(np.uint64) << _NAME_BITS) | changes.name_starts.astype(np.uint64)
    sort = np.argsort(pairs)
    first = np.flatnonzero(np.diff(pairs[sort], prepend=~pairs[sort[:1]]))
    total = np.add.reduceat(signs[sort], first)
    last = np.maximum.reduceat(sort, first)
    matches = np.flatnonzero(changes.event == MATCH)
    return changes.take(np.sort(np.concatenate([last[total != 0], matches])))


def _numbers(changes: Changes) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Distances of what entered, as JSON numbers (the shortest that read back the same)."""
    offsets = np.zeros(len(changes) + 1, np.int64)
    entered = np.flatnonzero(changes.event == ENTER)
    if len(entered) == 0:
        return offsets, np.empty(0, np.uint8)
    encoded = msgspec.json.encode(changes.distance[entered].tolist())
    text = np.frombuffer(encoded, np.uint8)[1:-1]
    commas = np.flatnonzero(text == ord(","))
    lengths = np.zeros(len(changes), np.int64)
    lengths[entered] = np.diff(commas, prepend=-1, append=len(text)) - 1
    np.cumsum(lengths, out=offsets[1:])
    return offsets, np.delete(text, commas)


def render(index: LocalIndex, changes: Changes) -> NDArray[np.uint8]:
    """JSON lines, as bytes."""
    texts = index.texts(changes.slot)
    offsets, numbers = _numbers(changes)
    columns = (
        changes.event,
        changes.time,
        texts.text,
        texts.starts,
        texts.id_lengths,
        texts.tail_lengths,
        changes.names,
        changes.name_starts,
        changes.name_lengths,
        numbers,
        offsets,
    )
    lines = Lines(*(frozen(column) for column in columns))
    out = np.empty(size(lines), np.uint8)
    return out[: write(lines, out)]


def _text(
    data: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> pa.Array:
    """Strings from their JSON form."""
    offsets, text = gather(data, starts, lengths)
    column = string_column(offsets, text).cast(pa.large_string())
    if (text == ord("\\")).any():
        odd = pc.match_substring(column, "\\")
        plain = [msgspec.json.decode(f'"{t}"'.encode()) for t in column.filter(odd).to_pylist()]
        column = pc.replace_with_mask(column, odd, pa.array(plain, pa.large_string()))
    return column


def _objects(changes: Changes) -> pa.Array:
    """Ids of the objects: of many matches in a row that are one object's, it is made once."""
    starts, lengths = changes.name_starts, changes.name_lengths
    first = np.flatnonzero(np.append(True, starts[1:] != starts[:-1])[: len(starts)])
    if 2 * len(first) > len(starts):
        return _text(changes.names, starts, lengths).dictionary_encode()
    codes = np.repeat(np.arange(len(first), dtype=np.int32), np.diff(first, append=len(starts)))
    names = _text(changes.names, starts[first], lengths[first])
    return pa.DictionaryArray.from_arrays(pa.array(codes), names)


def tabulate(index: LocalIndex, changes: Changes) -> pa.RecordBatch:
    """The same notifications as rows, coded; see `write_rows`."""
    texts = index.texts(changes.slot)
    n = len(changes)
    owner, meta = pa.nulls(n, pa.string()), pa.nulls(n, pa.string())
    if texts.tail_lengths.any():
        tails = gather(texts.text, texts.starts + texts.id_lengths, texts.tail_lengths)
        owner, meta = _echoes(string_column(*tails).to_pylist())
    return pa.RecordBatch.from_arrays(
        [
            _text(texts.text, texts.starts, texts.id_lengths),
            pa.DictionaryArray.from_arrays(pa.array(changes.event.view(np.int8)), list(EVENTS)),
            _objects(changes),
            pa.array(changes.time),
            pa.array(changes.distance, mask=changes.event != ENTER),
            owner,
            meta,
        ],
        schema=_CODED,
    )


def write_rows(batches: list[pa.RecordBatch], path: Path) -> None:
    """A Parquet file of what `tabulate` made, whose columns are NOTIFICATIONS.

    A row group a batch at least: codes mean something else in each. Ids hardly repeat within one,
    and looking for those that do takes longer than the rest.
    """
    with pq.ParquetWriter(
        path,
        _CODED,
        compression="zstd",
        use_dictionary=["event", "object"],
        write_statistics=["time"],
        store_schema=False,
    ) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _echoes(tails: list[bytes]) -> tuple[pa.Array, pa.Array]:
    """owner and meta (as JSON text) of what is echoed."""
    owners: list[str | None] = []
    metas: list[str | None] = []
    for tail in tails:
        fields = msgspec.json.decode(b"{" + tail[1:] + b"}", type=dict[str, msgspec.Raw])
        owner, meta = fields.get("owner"), fields.get("meta")
        owners.append(None if owner is None else msgspec.json.decode(owner))
        metas.append(None if meta is None else bytes(meta).decode())
    return pa.array(owners, pa.string()), pa.array(metas, pa.string())
