"""What districts talk about (`terms` subscriptions), and one question about the past (an ask)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nearcast.demo.notes import Note, all_notes, metres, notes_in
from nearcast.workload.corpora import DISTRICTS

__all__ = ["LOOKS_BACK_MS", "answer_in", "answer_in_words", "latest_talk", "question", "watchers"]

WATCHED = ("Shibuya", "Shinjuku", "Ginza", "Ueno", "Asakusa")
LOOKS_BACK_MS = 20_000  # of the question
_EVERY_MS, _WINDOW_MS, _RADIUS_M, _K = 2_000, 10_000, 1_500, 5
_OF = "talk of "  # before the name of a district, in an id
_ASKED_AT = "Shibuya"

# What the city's posts say in any case: districts, and how a post begins.
_EVERYWHERE = ("in", "tonight", "found", "just", "back", "again", "now", "open", "late", "new")

Json = dict[str, Any]


def watchers(time: int) -> list[Json]:
    """Who wants to know, every two seconds, what a district talks about."""
    exclude = [*_EVERYWHERE, *DISTRICTS]
    return [
        {
            "op": "subscribe",
            "id": f"{_OF}{name}",
            "time": time,
            "owner": name,
            "query": {
                "kind": "terms",
                "region": {"circle": {"at": list(DISTRICTS[name]), "radius": _RADIUS_M}},
                "k": _K,
                "window": _WINDOW_MS,
                "every": _EVERY_MS,
                "exclude": exclude,
            },
        }
        for name in WATCHED
    ]


def question(time: int, began: int) -> Json:
    """Asked when the last post is there.

    Not at a moment of the watchers, who `began` together: a live run reports a moment when more
    comes, and a replay of the same log at its end.
    """
    query = {"kind": "knn", "at": list(DISTRICTS[_ASKED_AT]), "k": 3, "where": "parade"}
    at = time + int((time - began) % _EVERY_MS == 0)
    ask = {"op": "ask", "id": "where was the parade?", "time": at, "last": LOOKS_BACK_MS}
    return {**ask, "query": query, "fields": ["text"]}


def latest_talk(paths: list[Path]) -> dict[str, str]:
    """By district, the words of its latest moment in these files."""
    found: dict[str, Note] = {}
    for note in notes_in(paths):
        if note.event == "terms" and note.id.startswith(_OF):
            name = note.id.removeprefix(_OF)
            if name not in found or found[name].time < note.time:
                found[name] = note
    return {name: _words(note) for name, note in found.items()}


def _words(note: Note) -> str:
    return ", ".join(f"{word} {count}" for word, count in note.terms or ()) or "silence"


def answer_in(folder: Path) -> Note | None:
    """The answer to the question, out of the notifications of a run."""
    return next((note for note in all_notes(folder) if note.event == "answer"), None)


def answer_in_words(note: Note) -> str:
    """An answer as a person would say it."""
    said = [f"“{o['text']}” {metres(o['distance'])} away" for o in note.objects or ()]
    asked = f"the parade in the last {LOOKS_BACK_MS // 1000} s, nearest to {_ASKED_AT}"
    return f"{asked}: {'; '.join(said) or 'nothing'}"
