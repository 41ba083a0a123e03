"""Notifications in words, and the samples that are shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nearcast.demo.city import City
from nearcast.demo.notes import Note, all_notes, evenly, in_words, metres, some_notes


@pytest.fixture
def city() -> City:
    city = City(1, 30.0)
    city.posts["o1"] = {"id": "o1", "text": "Ramen, open late", "time": 1, "at": [139.7, 35.6]}
    circle = {"circle": {"at": [139.7, 35.6], "radius": 500}}
    queries = {
        "r": {"kind": "range", "region": circle, "where": "ramen"},
        "k": {"kind": "knn", "at": [139.7, 35.6], "k": 3, "where": "ramen OR soba"},
        "one": {"kind": "knn", "at": [139.7, 35.6], "k": 1},
    }
    for name, query in queries.items():
        city.subscriptions[name] = {"id": name, "owner": "ana", "query": query}
    return city


@pytest.mark.parametrize(
    ("note", "words"),
    [
        (
            Note("r", "match", "o1", 1, owner="ana"),
            "ana hears of “Ramen, open late” in the circle watched for ramen",
        ),
        (
            Note("k", "enter", "o1", 1, 320.4, "ana"),
            "ana hears of “Ramen, open late” 320 m away, one of the 3 nearest for ramen OR soba",
        ),
        (
            Note("one", "enter", "o1", 1, 2_140.0, "ana"),
            "ana hears of “Ramen, open late” 2.1 km away, the nearest for anything",
        ),
        (
            Note("k", "leave", "o1", 1, owner="ana"),
            "“Ramen, open late” is no longer one of the 3 nearest for ramen OR soba (ana)",
        ),
        (
            Note("k", "leave", "o0", 1, owner="ana"),
            "o0 is no longer one of the 3 nearest for ramen OR soba (ana)",
        ),
    ],
)
def test_in_words(city: City, note: Note, words: str) -> None:
    assert in_words(note, city) == words


def test_metres() -> None:
    assert [metres(m) for m in (0.0, 994.4, 995.0, 12_345.0)] == [
        "0 m",
        "994 m",
        "1.0 km",
        "12.3 km",
    ]


def test_a_sample_holds_something_of_every_event(tmp_path: Path) -> None:
    lines = [{"id": "r", "event": "match", "object": f"o{i}", "time": i} for i in range(100)]
    lines.append({"id": "k", "event": "enter", "object": "x", "time": 1, "distance": 2.5})
    path = tmp_path / "b00000000-s0000.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert [n.object for n in some_notes([path], 2)] == ["o0", "o50", "x"]
    assert len(list(all_notes(tmp_path))) == 101
    assert some_notes([], 2) == []


def test_evenly() -> None:
    assert evenly(range(10), 5) == [0, 2, 4, 6, 8]
    assert evenly(range(3), 5) == [0, 1, 2]
    assert evenly([], 5) == []
    assert evenly(range(3), 0) == []
