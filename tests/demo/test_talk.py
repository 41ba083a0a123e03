"""What districts talk about, and the question about the past."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nearcast.demo.talk import (
    WATCHED,
    answer_in,
    answer_in_words,
    latest_talk,
    question,
    watchers,
)
from nearcast.kinds import KINDS
from nearcast.model.space import Space
from nearcast.wire.jsonl import decode_jsonl

NOW = 1_800_000_000_000


def test_watchers_and_the_question_are_valid() -> None:
    events = [*watchers(NOW), question(NOW + 5_000, NOW)]
    log = "".join(json.dumps(e) + "\n" for e in events).encode()
    decoded = decode_jsonl(log, Space.GEOGRAPHIC, KINDS)
    assert decoded.rejects.num_rows == 0
    assert {k: t.num_rows for k, t in decoded.subscribes.items() if t.num_rows} == {
        "terms": len(WATCHED)
    }


@pytest.mark.parametrize("after", [0, 1, 1_999, 2_000, 30_000, 30_001])
def test_the_question_comes_at_no_moment(after: int) -> None:
    """A live run would not report that moment any more, and a replay would."""
    asked = question(NOW + after, NOW)["time"]
    assert asked >= NOW + after
    assert all((asked - NOW) % watcher["query"]["every"] for watcher in watchers(NOW))


def test_the_latest_moment_of_each_district_is_shown(tmp_path: Path) -> None:
    def moment(name: str, time: int, *terms: tuple[str, int]) -> dict[str, object]:
        return {"id": f"talk of {name}", "event": "terms", "time": time, "terms": terms}

    notes = [
        moment("Ueno", 2, ("ramen", 3)),
        moment("Ueno", 4, ("soba", 2), ("tea", 1)),
        moment("Ginza", 4),
        {"id": "r", "event": "match", "object": "o", "time": 4},
        {"id": "who?", "event": "answer", "time": 5,
         "objects": [{"id": "o", "distance": 90.0, "text": "Parade!"}]},
    ]  # fmt: skip
    path = tmp_path / "b00000000-s0000.jsonl"
    path.write_text("".join(json.dumps(note) + "\n" for note in notes))
    assert latest_talk([path]) == {"Ueno": "soba 2, tea 1", "Ginza": "silence"}
    answer = answer_in(tmp_path)
    assert answer is not None
    assert answer_in_words(answer).endswith("nearest to Shibuya: “Parade!” 90 m away")
