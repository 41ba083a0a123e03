"""`knn`: its rows, and its definition."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nearcast.kernels.hashing import word_hash
from nearcast.kinds import KINDS
from nearcast.kinds.knn.definition import Nearest
from nearcast.model.errors import Invalid
from nearcast.model.expression import TRUE, parse
from nearcast.model.space import Space
from nearcast.model.standing import FOREVER, Seen
from nearcast.wire.jsonl import decode_jsonl

Json = dict[str, Any]
PLANE = Space.PLANAR
KNN = KINDS["knn"]
LIMIT = 2**61


def row_of(**fields: Any) -> Json:
    event = {"op": "subscribe", "id": "s", "time": 1, "query": {"kind": "knn", **fields}}
    decoded = decode_jsonl(json.dumps(event).encode(), PLANE, KINDS)
    assert decoded.rejects.to_pylist() == []
    assert decoded.ends.num_rows == 0
    [row] = decoded.subscribes["knn"].to_pylist()
    return dict(row)


def test_rows_hold_the_place() -> None:
    row = row_of(at=[1, 2.5], k=3, window=40)
    assert (row["x"], row["y"], row["k"], row["window"]) == (1.0, 2.5, 3, 40)
    assert row_of(at=[1, 2], k=3)["window"] == 0


# -- the definition ------------------------------------------------------------------------------


def seen(name: str, time: int, x: float, y: float = 0.0, **words: int) -> Seen:
    return Seen(name, time, x, y, words, time)


def test_words_alone_decide_who_may_enter() -> None:
    standing = Nearest(PLANE, 0.0, 0.0, 3, parse("NOT closed"))
    assert standing.matches(seen("o", 0, 1e6, -1e6, open=2))
    assert not standing.matches(seen("o", 0, 0.0, 0.0, closed=1))


def reported(standing: Nearest, *objects: Seen) -> list[str]:
    return [f"{c.event} {c.object} {c.time}" for o in objects for c in standing.offer(o)]


def test_the_nearest_stay_and_of_two_as_near_the_first() -> None:
    standing = Nearest(PLANE, 0.0, 0.0, 2, TRUE)
    objects = [seen("a", 1, 3.0), seen("b", 2, 1.0), seen("c", 3, -1.0), seen("d", 4, 1.0)]
    assert reported(standing, *objects) == ["enter a 1", "enter b 2", "enter c 3", "leave a 3"]
    assert standing.held() == {
        "distance": [1.0, 1.0],
        "time": [2, 3],
        "outlived": [0, 0],
        "object": ["b", "c"],
    }
    assert standing.next_moment() == FOREVER


def test_with_a_window_the_next_in_line_moves_up() -> None:
    standing = Nearest(PLANE, 0.0, 0.0, 1, TRUE, 10)
    assert reported(standing, seen("a", 1, 1.0), seen("b", 5, 2.0)) == ["enter a 1"]
    assert standing.next_moment() == 11
    passed = [(c.event, c.object, c.time, c.value) for c in standing.pass_moment(11)]
    assert passed == [("leave", "a", 11, None), ("enter", "b", 11, 2.0)]
    assert standing.next_moment() == 15
    assert reported(standing, seen("late", 1, 0.0)._replace(now=11)) == []


def test_a_result_is_held_as_it_was() -> None:
    standing = Nearest(PLANE, 0.0, 0.0, 1, TRUE, 10)
    reported(standing, seen("a", 1, 1.0), seen("b", 5, 2.0))
    row = standing.held()
    assert row is not None
    other = Nearest(PLANE, 0.0, 0.0, 1, TRUE, 10)
    other.hold(row)
    assert other == standing


def test_a_row_stands_for_what_was_written() -> None:
    query = {"kind": "knn", "at": [1, 2], "k": 3, "window": 40, "where": "a b"}
    assert KNN.read(query, PLANE) == Nearest(PLANE, 1.0, 2.0, 3, parse("a b"), 40)
    back = KNN.standing(row_of(at=[1, 2], k=3, window=40, where="a b"), PLANE)
    assert isinstance(back, Nearest)
    assert (back.space, back.x, back.y, back.k, back.window) == (PLANE, 1.0, 2.0, 3, 40)
    for words, right in ((("a", "b"), True), (("a",), False)):
        o = seen("o", 0, 0.0)._replace(words={word_hash(word): 1 for word in words})
        assert back.matches(o) == right
    back = KNN.standing(row_of(at=[1, 2], k=3), PLANE)
    assert isinstance(back, Nearest)
    assert back.window is None


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({"k": 0}, "query.k: 0 is not an integer from 1"),
        ({"k": -(10**9999)}, "query.k"),
        ({"k": -1}, "query.k"),
        ({"k": True}, "query.k: True is not an integer"),
        ({"k": 1.5}, "k: 1.5 is not"),
        ({"k": None}, "k: None is not"),
        ({"window": LIMIT}, "query.window"),
        ({"window": 0}, "query.window: 0 is not an integer from 1"),
        ({"at": [float("nan"), 0]}, "at"),
        ({"at": [0, float("inf")]}, "at"),
        ({"at": [0]}, "at"),
        ({"where": "a AND"}, "where"),
    ],
)
def test_nonsense_is_refused(fields: Json, part: str) -> None:
    with pytest.raises(Invalid) as refused:
        KNN.read({"kind": "knn", "at": [0, 0], "k": 1, **fields}, PLANE)
    assert part in str(refused.value)


def test_the_edges_of_what_is_allowed() -> None:
    KNN.read({"kind": "knn", "at": [0, 0], "k": 1, "window": 1}, PLANE)
    KNN.read({"kind": "knn", "at": [0, 0], "k": LIMIT - 1, "window": LIMIT - 1}, PLANE)
