"""Notifications of a run: read back from their files, and said in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from nearcast.demo.city import City


class Note(msgspec.Struct):
    """One line of a notification file."""

    id: str
    event: str
    object: str = ""
    time: int = 0
    distance: float | None = None
    owner: str | None = None
    terms: list[tuple[str, int]] | None = None
    objects: list[dict[str, Any]] | None = None


_T = TypeVar("_T")
_NOTE = msgspec.json.Decoder(Note)


def all_notes(folder: Path) -> Iterator[Note]:
    """Every notification of a run: batch by batch, so that of one subscription in order."""
    yield from notes_in(sorted(folder.glob("*.jsonl")))


def notes_in(paths: list[Path]) -> Iterator[Note]:
    """Every notification of some files."""
    for path in paths:
        yield from _NOTE.decode_lines(path.read_bytes())


def some_notes(paths: list[Path], each: int) -> list[Note]:
    """Up to `each` notifications on posts of every event in the files, taken evenly from them."""
    by_event: dict[str, list[Note]] = {}
    for note in notes_in(paths):
        if note.object:
            by_event.setdefault(note.event, []).append(note)
    return [note for notes in by_event.values() for note in evenly(notes, each)]


def evenly(items: Sequence[_T], n: int) -> list[_T]:
    """`n` of the items (all, if there are no more), spread evenly over their order."""
    if n >= len(items):
        return list(items)
    return [items[i * len(items) // n] for i in range(n)]


def in_words(note: Note, city: City) -> str:
    """A notification as a person would say it."""
    post, subscription = city.posts.get(note.object), city.subscriptions.get(note.id)
    said = f"“{post['text']}”" if post else note.object
    who = note.owner or note.id
    query: dict[str, Any] = subscription["query"] if subscription else {}
    where = query.get("where") or "anything"
    if note.event == "match":
        return f"{who} hears of {said} in the {shape_of(query)} watched for {where}"
    nearest = nearest_of(query)
    if note.event == "enter":
        return f"{who} hears of {said} {metres(note.distance or 0.0)} away, {nearest} for {where}"
    return f"{said} is no longer {nearest} for {where} ({who})"


def shape_of(query: dict[str, Any]) -> str:
    """What a range query watches: box, circle or polygon."""
    region = query.get("region", {})
    return "box" if "bbox" in region else "circle" if "circle" in region else "polygon"


def nearest_of(query: dict[str, Any]) -> str:
    """What an object of a knn result is."""
    k = query.get("k", 1)
    return "the nearest" if k == 1 else f"one of the {k} nearest"


def metres(distance: float) -> str:
    """A distance as it is said."""
    return f"{distance:.0f} m" if distance < 995 else f"{distance / 1000:.1f} km"
