"""Changes as notifications: JSON lines or rows of Parquet (SPEC section 6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nearcast.kernels.codes import encode
from nearcast.kernels.lines import Lines, bodies, phrases, size, write
from nearcast.kernels.ragged import frozen, gather
from nearcast.wire.changes import Changes, Matches, Texts
from nearcast.wire.kind import Event, Kinds, WireKind
from nearcast.wire.parquet import CodedWriter, Column, texts
from nearcast.wire.tables import string_column


def notifications_schema(kinds: Kinds) -> pa.Schema:
    """The columns of notifications of these kinds: those that all have, and their values."""
    values = dict.fromkeys(kind.value for kind in kinds.values() if kind.value)
    fields = fields_of(kinds)
    return pa.schema(
        [
            pa.field("id", pa.string(), nullable=False),
            pa.field("event", pa.string(), nullable=False),
            pa.field("object", pa.string(), nullable=bool(fields)),
            pa.field("time", pa.int64(), nullable=False),
            *((name, pa.float64()) for name in values),
            *((name, pa.string()) for name in fields),  # JSON text
            ("owner", pa.string()),
            ("meta", pa.string()),  # JSON text
        ]
    )


def fields_of(kinds: Kinds) -> list[str]:
    """The fields that stand in the place of `object` in some events of these kinds."""
    return list(dict.fromkeys(e.field for k in kinds.values() for e in k.events if e.field))


def answers_schema(kinds: Kinds) -> pa.Schema:
    """The columns of answers, in files of their own; with these names also in a DataFrame."""
    found = {k.answers.field for k in kinds.values() if k.answers is not None} or {"objects"}
    return pa.schema(
        [
            pa.field("id", pa.string(), nullable=False),
            pa.field("event", pa.string(), nullable=False),
            pa.field("time", pa.int64(), nullable=False),
            *((name, pa.string()) for name in sorted(found)),  # JSON text
        ]
    )


_NOTHING = Column(np.empty(0), 0, present=False)
_ROWS = 1 << 21  # at a time: memory is used again, and ids repeat
_NAME_BITS = np.uint64(33)  # of a place in `names`, below the 31 of a slot


class Holder(Protocol):
    """What holds the subscriptions that changed: an index."""

    def texts(self, slots: NDArray[np.int64]) -> Texts:
        """Ids and echoes of slots."""

    def __len__(self) -> int:
        """Slots in use."""


class Reported(NamedTuple):
    """Changes to be written, of subscriptions of one kind in an index."""

    kind: WireKind
    held_in: Holder
    changes: Changes


def net(changes: Changes, events: tuple[Event, ...]) -> Changes:
    """Only the difference of each result before and after the batch.

    What entered and left again (or left and came back) within the batch is not reported. What is
    reported keeps the time and the place of its last change.
    """
    signs = np.array([event.sign for event in events])
    if not signs.any():
        return changes
    signs = signs[changes.event]
    signed = np.flatnonzero(signs)
    slots, names = changes.slot[signed], changes.name_starts[signed]
    pairs = (slots.astype(np.uint64) << _NAME_BITS) | names.astype(np.uint64)
    sort = np.argsort(pairs)
    first = np.flatnonzero(np.diff(pairs[sort], prepend=~pairs[sort[:1]]))
    total = np.add.reduceat(signs[signed[sort]], first)
    last = signed[np.maximum.reduceat(sort, first)]
    return changes.take(np.sort(np.concatenate([last[total != 0], np.flatnonzero(signs == 0)])))


def _numbers(
    changes: Changes, events: tuple[Event, ...]
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Values of events that carry one, as JSON numbers (the shortest that read back the same)."""
    offsets = np.zeros(len(changes) + 1, np.int64)
    carrying = [code for code, event in enumerate(events) if event.value]
    with_value = np.flatnonzero(np.isin(changes.event, carrying)) if carrying else ()
    if len(with_value) == 0:
        return offsets, np.empty(0, np.uint8)
    encoded = msgspec.json.encode(changes.value[with_value].tolist())
    text = np.frombuffer(encoded, np.uint8)[1:-1]
    commas = np.flatnonzero(text == ord(","))
    lengths = np.zeros(len(changes), np.int64)
    lengths[with_value] = np.diff(commas, prepend=-1, append=len(text)) - 1
    np.cumsum(lengths, out=offsets[1:])
    return offsets, np.delete(text, commas)


def render(reported: Reported) -> NDArray[np.uint8]:
    """JSON lines, as bytes."""
    kind, index, changes = reported
    texts = index.texts(changes.slot)
    offsets, numbers = _numbers(changes, kind.events)
    columns = (
        changes.event,
        *phrases((event.name, event.field) for event in kind.events),
        changes.time,
        texts.text,
        texts.starts,
        texts.id_lengths,
        texts.tail_lengths,
        changes.names,
        changes.name_starts,
        changes.name_lengths,
        *bodies(event.field for event in kind.events),
        np.frombuffer(f',"{kind.value}":'.encode(), np.uint8),
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


# -- rows ----------------------------------------------------------------------------------------


class Rows(NamedTuple):
    """Some notifications as columns, in the order of `notifications_schema`."""

    size: int
    columns: list[Column]


def tabulate(parts: Iterable[Reported], kinds: Kinds) -> Iterator[Rows]:
    """The same notifications as rows, some at a time; see `write_rows`."""
    scratch = np.empty(0, np.int32)
    schema = notifications_schema(kinds)
    events = list(dict.fromkeys(e.name for kind in kinds.values() for e in kind.events))
    for kind, index, changes in parts:
        if len(scratch) < len(index):
            scratch = np.zeros(len(index), np.int32)
        for start in range(0, len(changes), _ROWS):
            some = changes.take(slice(start, start + _ROWS))
            slots, codes = encode(some.slot, scratch)
            id_, owner, meta = _subscriptions(index, slots, codes)
            said, time = _said(some, kind.events)
            found = {
                "id": id_,
                "event": _event(some, kind.events, events),
                **said,
                "time": time,
                kind.value: _value(some, kind.events),
                "owner": owner,
                "meta": meta,
            }
            yield Rows(len(some), [found.get(name, _NOTHING) for name in schema.names])


def write_rows(rows: Iterable[Rows], path: Path, kinds: Kinds) -> None:
    """A Parquet file of what `tabulate` made."""
    with CodedWriter(path, notifications_schema(kinds)) as writer:
        for some in rows:
            writer.write(some.columns, some.size)


def _subscriptions(
    index: Holder, slots: NDArray[np.int64], codes: NDArray[np.int32]
) -> tuple[Column, Column, Column]:
    """ids, owners and meta of the rows whose subscriptions are `slots`, by their codes."""
    held = index.texts(slots)
    ids = Column(*texts(_text(held.text, held.starts, held.id_lengths)), codes)
    if not held.tail_lengths.any():
        return ids, _NOTHING, _NOTHING
    tails = gather(held.text, held.starts + held.id_lengths, held.tail_lengths)
    owner, meta = (_echo(c, codes) for c in _echoes(string_column(*tails).to_pylist()))
    return ids, owner, meta


def _echo(echoed: pa.Array, codes: NDArray[np.int32]) -> Column:
    """What the subscriptions of the rows echo, or nothing."""
    some = echoed.is_valid().to_numpy(zero_copy_only=False)
    present = some[codes]
    return Column(
        *texts(echoed.drop_null()), (np.cumsum(some, dtype=np.int32) - 1)[codes[present]], present
    )


def _objects(changes: Changes) -> tuple[Column, Column]:
    """ids and times of the objects."""
    ids = _text(changes.names, changes.name_starts, changes.name_lengths).dictionary_encode()
    codes = ids.indices.to_numpy(zero_copy_only=False)
    return Column(*texts(ids.dictionary), codes), Column(changes.time, len(changes))


def _runs(changes: Matches) -> tuple[Column, Column]:
    """The same for matches: those of one object stand together; its id and time are read once."""
    first = np.flatnonzero(np.append(True, changes.order[1:] != changes.order[:-1]))
    heads, lengths = changes.take(first), np.diff(first, append=len(changes))
    codes = np.repeat(np.arange(len(first), dtype=np.int32), lengths)
    names = _text(heads.names, heads.name_starts, heads.name_lengths)
    return Column(*texts(names), codes), Column(heads.time, len(heads), codes)


def _said(changes: Changes, events: tuple[Event, ...]) -> tuple[dict[str, Column], Column]:
    """ids of objects, or what stands in other fields instead of these, as JSON text; times."""
    if not any(event.field for event in events):
        name, time = _runs(changes) if isinstance(changes, Matches) else _objects(changes)
        return {"object": name}, time
    found: dict[str, Column] = {}
    for field in {event.field for event in events}:
        some = np.array([event.field == field for event in events])[changes.event]
        own = changes.take(np.flatnonzero(some))
        if not field:
            names = _text(own.names, own.name_starts, own.name_lengths)
        else:
            names = string_column(*gather(own.names, own.name_starts, own.name_lengths))
        coded = names.cast(pa.large_string()).dictionary_encode()
        codes = coded.indices.to_numpy(zero_copy_only=False)
        found[field or "object"] = Column(*texts(coded.dictionary), codes, some)
    return found, Column(changes.time, len(changes))


def _event(changes: Changes, events: tuple[Event, ...], names: list[str]) -> Column:
    """What happened; `names` are those of all kinds."""
    places = np.array([names.index(event.name) for event in events], np.int32)
    if len(places) == 1:
        codes = np.full(len(changes), places[0])
    else:
        codes = places[changes.event]
    return Column(*texts(pa.array(names)), codes)


def _value(changes: Changes, events: tuple[Event, ...]) -> Column:
    """The values of events that carry one."""
    carry = np.array([event.value for event in events])
    if not carry.any():
        return _NOTHING
    present = carry[changes.event]
    values = changes.value[present]
    return Column(values, len(values), present=present)


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
