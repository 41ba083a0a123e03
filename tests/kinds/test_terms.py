"""`terms`: its definition, its index, and runs of the engine with moments, crashes and asks."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.contract import Miniature, as_text, reported, run_log

from nearcast.engine.options.settings import Settings
from nearcast.index.arena import Memory
from nearcast.kernels.hashing import word_hash
from nearcast.kinds import KINDS
from nearcast.kinds.terms import moments as mo
from nearcast.kinds.terms.definition import MostHeld, ranked
from nearcast.kinds.terms.dictionary import Dictionary
from nearcast.kinds.terms.tables import Tables
from nearcast.model.errors import Invalid
from nearcast.model.expression import TRUE
from nearcast.model.region import region_from_json
from nearcast.model.space import Space
from nearcast.model.standing import Seen
from nearcast.testing.cases import busy_log, publish, subscribe, unsubscribe
from nearcast.testing.drive import notifications, plan, run_index, step
from nearcast.testing.oracle import Order, replay

Json = dict[str, Any]
TERMS = KINDS["terms"]
PLANE = Space.PLANAR
WORLD = {"bbox": [-1e300, -1e300, 1e300, 1e300]}


def query(**fields: Any) -> Json:
    return {"kind": "terms", "region": WORLD, "k": 2, "window": 10, "every": 5, **fields}


def seen(name: str, time: int, *words: str) -> Seen:
    return Seen(name, time, 0.0, 0.0, dict.fromkeys(words, 1), time)


# -- the definition ------------------------------------------------------------------------------


def test_equal_counts_stand_by_code_points() -> None:
    counts = Counter({"b": 2, "ä": 2, "a b": 2, "\U0001f35c": 3, "\ufa0e": 3})
    assert ranked(counts, 3) == [["\ufa0e", 3], ["\U0001f35c", 3], ["a b", 2]]


def standing() -> MostHeld:
    region = region_from_json(PLANE, WORLD)
    made = MostHeld(PLANE, region, TRUE, 2, frozenset({"the"}), 10, 5)
    made.starts(100)
    return made


def listed(made: MostHeld, moment: int) -> Any:
    assert made.next_moment() == moment
    (change,) = made.pass_moment(moment)
    assert change.time == moment
    return change.object


def test_a_moment_counts_its_window() -> None:
    made = standing()
    for o in (seen("o", 101, "a", "the"), seen("p", 104, "b", "a"), seen("q", 106, "c")):
        made.offer(o)
    assert listed(made, 105) == [["a", 2], ["b", 1]]
    assert listed(made, 110) == [["a", 2], ["b", 1]]  # of b and c, which tie, the first
    made.offer(seen("late", 107, "c"))
    assert listed(made, 115) == [["c", 2]]
    assert listed(made, 120) == []


def test_what_is_held_goes_on() -> None:
    made = standing()
    assert made.held() is None
    made.offer(seen("o", 101, "a", "b"))
    assert listed(made, 105) == [["a", 1], ["b", 1]]
    row = made.held()
    assert row is not None
    other = standing()
    other.hold(row)
    assert other == made


@pytest.mark.parametrize("name", ["k", "window", "every"])
def test_subscriptions_need_all_three(name: str) -> None:
    lacking = query()
    del lacking[name]
    assert len(replay([subscribe("s", 0, lacking)], PLANE).rejected) == 1


def test_asks_need_neither_window_nor_every() -> None:
    asked = {"kind": "terms", "region": WORLD, "k": 2}
    ask = {"op": "ask", "id": "q", "time": 9, "last": 5, "query": asked}
    log = [publish("o", 4, 0, 0, "old"), publish("p", 5, 0, 0, "b", "a"), ask]
    (answer,) = replay(log, PLANE).notifications
    assert answer["terms"] == [["a", 1], ["any", 1]]  # `publish` adds the second
    with pytest.raises(Invalid, match="every"):
        TERMS.read({**asked, "every": 0}, PLANE)


# -- the dictionary ------------------------------------------------------------------------------

texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)


@settings(max_examples=60)
@given(st.dictionaries(texts, st.integers(1, 4), max_size=40), st.integers(1, 50), st.booleans())
def test_lists_are_what_sorting_gives(counts: dict[str, int], k: int, purged: bool) -> None:
    """On real hashes, with quotes, control characters and letters beyond 16 bits."""
    dictionary = Dictionary(Memory())
    encoded = [text.encode() for text in counts]
    offsets = np.cumsum([0, *map(len, encoded)])
    words = np.array([word_hash(text) for text in counts], np.uint64)
    data = np.frombuffer(b"".join(encoded), np.uint8)
    assert len(dictionary.add(words, offsets, data)) == len(counts)
    assert len(dictionary.add(words, offsets, data)) == 0
    if purged:
        dictionary.purge(np.sort(words))
    twice = np.array([0, len(words), len(words), 2 * len(words)])
    values = np.array(list(counts.values()) * 2, np.int64)
    out, starts, lengths = dictionary.lists(
        twice, np.tile(words, 2), values, np.array([k, k, 2**40])
    )
    found = [
        json.loads(out[start : start + length].tobytes())
        for start, length in zip(starts.tolist(), lengths.tolist(), strict=True)
    ]
    assert found == [ranked(Counter(counts), k), [], ranked(Counter(counts), len(counts))]


def test_a_purge_forgets_what_nobody_holds() -> None:
    dictionary = Dictionary(Memory())
    for n in range(1000):
        text = np.frombuffer(f"word {n}".encode(), np.uint8)
        word = np.array([word_hash(f"word {n}")], np.uint64)
        dictionary.add(word, np.array([0, len(text)]), text)
    kept = np.array(sorted(word_hash(f"word {n}") for n in (3, 999)), np.uint64)
    dictionary.purge(kept)
    assert len(dictionary) == 2
    assert sorted(dictionary.texts().to_pylist()) == ["word 3", "word 999"]


# -- the index -----------------------------------------------------------------------------------


def test_long_silence_comes_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearcast.kinds.terms.tables._ROOM", 100)
    log = [
        subscribe("s", 0, query(every=1, window=3)),
        subscribe("t", 0, query(every=7, window=3)),
        publish("o", 2, 0, 0, "a"),
        publish("p", 3000, 0, 0, "b"),
    ]
    (batch,) = plan(log, TERMS, PLANE)
    index = TERMS.index("tables")(PLANE, Memory())
    index.apply(batch.controls, batch.at)
    index.carry(batch.carried)
    step_by_step = TERMS.index("tables")(PLANE, Memory())
    whole = notifications(step_by_step, step(step_by_step, batch), TERMS)
    index.past = step_by_step.past
    pieces = list(index.matching(batch.objects, batch.clock, batch.now))
    assert max(len(piece) for piece in pieces) <= 100
    assert [n for p in pieces for n in notifications(index, p, TERMS)] == whole
    assert len(whole) == 3000 + 428


def test_who_was_unsubscribed_has_no_moments_in_a_long_silence() -> None:
    """Seen before: an unsubscribe in the batch left moments due for all the years to come."""
    log = [
        subscribe("s", 0, query(every=1, window=3)),
        publish("o", 1, 0, 0, "a"),
        unsubscribe("s", 5),
        publish("p", 10**12, 0, 0, "b"),
    ]
    (batch,) = plan(log, TERMS, PLANE)
    index = TERMS.index("tables")(PLANE, Memory())
    index.apply(batch.controls, batch.at)
    index.carry(batch.carried)
    assert isinstance(index, Tables)
    assert mo.count_due(index._slots, index._rows, len(index), batch.now) == 4


@pytest.mark.parametrize("order", ["time", "arrival"])
def test_old_objects_are_not_seen_again(order: Order) -> None:
    """What came before the subscription does not count, though the store has it."""
    log = [
        subscribe("first", 0, query(window=100)),
        publish("before", 7, 0, 0, "a"),
        subscribe("s", 5, query(window=100)),
        publish("o", 8, 0, 0, "b"),
        publish("later", 20, 0, 0, "c"),
    ]
    for cuts in ((), (2,), (3,), range(5)):
        found = run_index("tables", log, TERMS, PLANE, cuts, order)
        right = replay(log, PLANE, order).notifications
        assert sorted(map(as_text, found)) == sorted(map(as_text, right))


# -- runs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["time", "arrival"])
@pytest.mark.parametrize("format_", ["jsonl", "parquet"])
@pytest.mark.parametrize(
    "strategy",
    [
        "hash+tables",
        "random+tables",
        "hash+groups",
        "random+groups",
        "hash+cheapest",
        "random+cheapest",
        "random+scan",
        "broadcast",
    ],
)
def test_a_run_with_crashes_reports_what_the_oracle_does(
    tmp_path: Path, memory: Path, strategy: str, format_: str, order: str
) -> None:
    """Batches come again in the middle of moments, some on lost arenas; subscriptions move."""
    log = busy_log(11, PLANE, 110, late=0.2, kinds={"terms": TERMS})
    chosen = Settings(
        space=PLANE, shards=3, strategies={"terms": strategy}, format=format_, order=order,
        arena=str(memory),
    )  # fmt: skip
    run = run_log(tmp_path, log, chosen, 12, Random(5))
    assert sum(len(json.loads(text)["terms"]) > 1 for text in reported(run.out)) > 20


def test_a_run_in_which_nobody_subscribes_keeps_nothing(tmp_path: Path, memory: Path) -> None:
    log = [publish(f"o{n}", n, 0, 0, "a") for n in range(50)]
    run = Miniature(Settings(space=PLANE, arena=str(memory)), tmp_path)
    run.feed(log, 20)
    run.finish()
    assert not run.states[run.next][0].kept.get("terms")
