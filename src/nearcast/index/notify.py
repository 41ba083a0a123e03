"""Changes as notifications: JSON lines or an Arrow table (SPEC section 6)."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nearcast.index.base import ENTER, EVENTS, LEAVE, MATCH, Changes, LocalIndex
from nearcast.index.matches import Matches
from nearcast.kernels.codes import encode
from nearcast.kernels.lines import Lines, size, write
from nearcast.kernels.ragged import frozen, gather
from nearcast.wire.tables import string_column

NOTIFICATIONS = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("event", pa.string(), nullable=False),
        pa.field("object", pa.string(), nullable=False),
        pa.field("time", pa.int64(), nullable=False),
        ("distance", pa.float64()),
        ("owner", pa.string()),
        ("meta", pa.string()),  # JSON text
    ]
)
# The same with what repeats as codes: so it is written, and reads back as NOTIFICATIONS.
_CODED = pa.schema(
    [
        pa.field("id", pa.dictionary(pa.int32(), pa.large_string()), nullable=False),
        pa.field("event", pa.dictionary(pa.int8(), pa.string()), nullable=False),
        pa.field("object", pa.dictionary(pa.int32(), pa.large_string()), nullable=False),
        *(NOTIFICATIONS.field(name) for name in ("time", "distance", "owner", "meta")),
    ]
)

# Codes of ids hardly repeat in a way that zstd finds; it would take as long as all the rest.
_COMPRESSION = {n: "snappy" if n == "id" else "zstd" for n in NOTIFICATIONS.names}
_DICTIONARY = 1 << 27  # bytes; beyond, ids would be written out row by row
_ROWS = 1 << 21  # at a time: memory is used again, and ids repeat
_NAME_BITS = np.uint64(33)  # of a place in `names`, below the 31 of a slot


def net(changes: Changes) -> Changes:
    """Only the difference of each result before and after the batch.

    What entered and left again (or left and came back) within the batch is not told; what is told
    keeps the time and the place of its last change.
    """
    if isinstance(changes, Matches) or (changes.event == MATCH).all():
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


def _objects(changes: Changes) -> tuple[pa.Array, NDArray[np.int64]]:
    """(ids, times) of the objects."""
    ids = _text(changes.names, changes.name_starts, changes.name_lengths)
    return ids.dictionary_encode(), changes.time


def _runs(changes: Matches) -> tuple[pa.Array, NDArray[np.int64]]:
    """The same of matches: those of one object stand together, its id and time are read once."""
    first = np.flatnonzero(np.append(True, changes.order[1:] != changes.order[:-1]))
    heads, lengths = changes.take(first), np.diff(first, append=len(changes))
    codes = np.repeat(np.arange(len(first), dtype=np.int32), lengths)
    names = _text(heads.names, heads.name_starts, heads.name_lengths)
    ids = pa.DictionaryArray.from_arrays(pa.array(codes), names)
    return ids, np.repeat(heads.time, lengths)


Told = tuple[LocalIndex, Changes]


def tabulate(parts: Iterable[Told]) -> Iterator[pa.RecordBatch]:
    """The same notifications as rows, coded, some at a time; see `write_rows`."""
    scratch = np.empty(0, np.int32)
    for index, changes in parts:
        if len(scratch) < len(index):
            scratch = np.zeros(len(index), np.int32)
        for start in range(0, len(changes), _ROWS):
            yield _table(index, changes.take(slice(start, start + _ROWS)), scratch)


def _table(index: LocalIndex, some: Changes, scratch: NDArray[np.int32]) -> pa.RecordBatch:
    """Up to _ROWS notifications."""
    slots, codes = encode(some.slot, scratch)
    objects, times = _runs(some) if isinstance(some, Matches) else _objects(some)
    ids, owner, meta = _subscriptions(index, slots, codes)
    return pa.RecordBatch.from_arrays(
        [
            ids,
            _events(some),
            objects,
            pa.array(times),
            _distances(some),
            owner,
            meta,
        ],
        schema=_CODED,
    )


@functools.cache
def _nothing(type_: pa.DataType) -> pa.Array:
    """As many nulls as a table may have rows: made once."""
    return pa.nulls(_ROWS, type_)


def _subscriptions(
    index: LocalIndex, slots: NDArray[np.int64], codes: NDArray[np.int32]
) -> tuple[pa.Array, pa.Array, pa.Array]:
    """ids, owners and meta of the rows whose subscriptions are `slots`, by their codes."""
    texts = index.texts(slots)
    places = pa.array(codes)
    ids = _text(texts.text, texts.starts, texts.id_lengths)
    owner = meta = _nothing(pa.string()).slice(0, len(codes))
    if texts.tail_lengths.any():
        tails = gather(texts.text, texts.starts + texts.id_lengths, texts.tail_lengths)
        owner, meta = (c.take(places) for c in _echoes(string_column(*tails).to_pylist()))
    return pa.DictionaryArray.from_arrays(places, ids), owner, meta


def _events(changes: Changes) -> pa.DictionaryArray:
    """What happened."""
    if isinstance(changes, Matches):
        return _all_matches().slice(0, len(changes))
    return pa.DictionaryArray.from_arrays(pa.array(changes.event.view(np.int8)), list(EVENTS))


@functools.cache
def _all_matches() -> pa.DictionaryArray:
    """As many as a table may have rows: made once."""
    codes = pa.array(np.full(_ROWS, MATCH, np.int8))
    return pa.DictionaryArray.from_arrays(codes, list(EVENTS))


def _distances(changes: Changes) -> pa.Array:
    """How far away what entered is."""
    if isinstance(changes, Matches):
        return _nothing(pa.float64()).slice(0, len(changes))
    return pa.array(changes.distance, mask=changes.event != ENTER)


def write_rows(batches: Iterable[pa.RecordBatch], path: Path) -> None:
    """A Parquet file of what `tabulate` made, whose columns are NOTIFICATIONS.

    A row group a batch at least: codes mean something else in each.
    """
    with pq.ParquetWriter(
        path,
        _CODED,
        compression=_COMPRESSION,
        use_dictionary=["id", "event", "object"],
        dictionary_pagesize_limit=_DICTIONARY,
        write_statistics=["time"],
        store_schema=False,
    ) as writer:
        for batch in batches:
            writer.write_batch(batch, row_group_size=_ROWS)


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
