"""What the results of subscriptions are now, folded from the notification log.

Of a kind whose objects enter and leave, the objects that are in; of one that reports something
else than objects, the last report; of the rest, the latest matches. One row per subscription, no
longer than its result, or `LATEST` matches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from nearcast.gateway.registering import Registering
from nearcast.gateway.registry import Registry
from nearcast.kinds import Event, Kind
from nearcast.kinds.answers import BestFirst
from nearcast.wire.told import BEGIN, Cursor, Told

__all__ = ["LATEST", "Results", "present"]

LATEST = 20
"""Matches that are kept of each subscription."""
_MARK = "results"
_LINES = 20_000  # of a transaction


class _Note(msgspec.Struct):
    id: str
    event: str
    time: int
    object: str | None = None


class _Held(msgspec.Struct, array_like=True):
    """An object of a result."""

    object: str
    value: float | None
    time: int


class _Result(msgspec.Struct, array_like=True):
    """The row of a subscription."""

    held: list[_Held]  # in the order in which they came
    said: dict[str, Any] | None = None  # the last report that is not of an object


_NOTE = msgspec.json.Decoder(_Note)
_ANY = msgspec.json.Decoder(dict[str, Any])


class Results:
    """Folds what is new in the notification log."""

    def __init__(
        self, registry: Registry, registering: Registering, told: Told, kinds: Mapping[str, Kind]
    ) -> None:
        self.registry, self.registering, self.told, self.kinds = registry, registering, told, kinds
        self._events = {name: {e.name: e for e in k.events} for name, k in kinds.items()}

    def fold(self) -> Cursor:
        """Read on; the cursor up to which results are known.

        Several gateways may do it: each goes on where the file says, one after the other.
        """
        while True:
            last = self.told.last()
            self.registering.catch_up()  # what the run had read of the event log by then
            with self.registry.writing() as db:
                at = _at(db)
                if at.batch > last:
                    return at
                lines, through = self._next(at, last)
                self._apply(db, lines)
                db.execute("INSERT OR REPLACE INTO marks VALUES (?, ?)", (_MARK, str(through)))

    def _next(self, at: Cursor, last: int) -> tuple[list[bytes], Cursor]:
        lines = []
        for cursor, line in self.told.read(at, last):
            lines.append(line)
            if len(lines) == _LINES:
                return lines, cursor
        return lines, Cursor(last + 1)

    def _apply(self, db: Any, lines: Iterable[bytes]) -> None:
        notes: dict[str, list[tuple[_Note, bytes]]] = {}
        for line in lines:
            note = _NOTE.decode(line)
            notes.setdefault(note.id, []).append((note, line))
        for id_, own in notes.items():
            row = db.execute("SELECT kind, time FROM subscriptions WHERE id = ?", (id_,)).fetchone()
            if row is None or row[0] not in self._events:
                continue  # it has ended, or this answers an ask
            held = db.execute("SELECT body FROM results WHERE id = ?", (id_,)).fetchone()
            result = msgspec.msgpack.decode(held[0], type=_Result) if held else _Result([])
            value, events = self.kinds[row[0]].value, self._events[row[0]]
            for note, line in own:
                if (event := events.get(note.event)) is not None:
                    _take(result, event, value, note, line, row[1])
            body = msgspec.msgpack.encode(result)
            db.execute("INSERT OR REPLACE INTO results VALUES (?, ?)", (id_, body))


def _take(result: _Result, event: Event, value: str, note: _Note, line: bytes, since: int) -> None:
    """Take in one notification; `since`: the time from which the subscription stands."""
    if event.field:
        if note.time >= since:
            result.said = {"time": note.time, event.field: _ANY.decode(line)[event.field]}
    elif event.sign == 0:
        result.held = [*result.held, _Held(note.object or "", None, note.time)][-LATEST:]
    elif note.time < since:
        return  # of the one that this replaced
    elif event.sign > 0:
        given = _ANY.decode(line).get(value)
        result.held.append(_Held(note.object or "", given, note.time))
    else:
        for n, held in enumerate(result.held):
            if held.object == note.object:
                del result.held[n]
                break


def _at(db: Any) -> Cursor:
    found = db.execute("SELECT value FROM marks WHERE name = ?", (_MARK,)).fetchone()
    return Cursor.read(found[0]) if found else BEGIN


def present(kind: Kind, body: bytes | None) -> dict[str, Any] | None:
    """The present result of a subscription as clients get it; None: nothing was reported yet."""
    if body is None:
        return None
    result = msgspec.msgpack.decode(body, type=_Result)
    if result.said is not None:
        return result.said
    if not kind.value:
        newest = [{"object": h.object, "time": h.time} for h in reversed(result.held)]
        return {"latest": newest}
    # At the same value, what was there first goes first; of scores, what is newer (SPEC 4).
    if isinstance(kind.answers, BestFirst):
        newest_first = result.held[::-1]
        held = sorted(newest_first, key=lambda h: -(h.value or 0.0))
    else:
        held = sorted(result.held, key=lambda h: h.value or 0.0)
    return {"objects": [{"id": h.object, kind.value: h.value, "time": h.time} for h in held]}
