"""Changes as notifications: JSON lines or an Arrow table (SPEC section 6)."""

from __future__ import annotations

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
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
    column = string_column(*gather(data, starts, lengths)).cast(pa.large_string())
    odd = pc.match_substring(column, "\\")
    if pc.any(odd).as_py():
        plain = [msgspec.json.decode(f'"{t}"'.encode()) for t in column.filter(odd).to_pylist()]
        column = pc.replace_with_mask(column, odd, pa.array(plain, pa.large_string()))
    return column.cast(pa.string())


def tabulate(index: LocalIndex, changes: Changes) -> pa.RecordBatch:
    """The same notifications as rows of NOTIFICATIONS."""
    texts = index.texts(changes.slot)
    n = len(changes)
    owner, meta = pa.nulls(n, pa.string()), pa.nulls(n, pa.string())
    if texts.tail_lengths.any():
        tails = gather(texts.text, texts.starts + texts.id_lengths, texts.tail_lengths)
        owner, meta = _echoes(string_column(*tails).to_pylist())
    distance = pa.array(changes.distance, mask=changes.event != ENTER)
    events = pa.array(EVENTS).take(pa.array(changes.event))
    return pa.RecordBatch.from_arrays(
        [
            _text(texts.text, texts.starts, texts.id_lengths),
            events,
            _text(changes.names, changes.name_starts, changes.name_lengths),
            pa.array(changes.time),
            distance,
            owner,
            meta,
        ],
        schema=NOTIFICATIONS,
    )


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
