"""`topk`: windows of the run, scores to the bit, first results; through the parts and on Spark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.contract import Miniature, difference, expected, reported, run_log

from nearcast.engine.feed.source import Feed
from nearcast.engine.options.settings import Settings, check_bound
from nearcast.kinds import KINDS
from nearcast.kinds.topk import Topk
from nearcast.model.errors import NearcastError
from nearcast.model.frame import WINDOW, Frame, Window
from nearcast.model.space import Space
from nearcast.testing.cases import assert_same_story, busy_log, publish, subscribe, unsubscribe
from nearcast.testing.checks import Check, yield_checks
from nearcast.testing.drive import run_index
from nearcast.testing.oracle import replay
from nearcast.wire.idf import Fitted

Json = dict[str, Any]
FAR = 1e5
WINDOWS = [Window(count=1), Window(count=7), Window(span_ms=1), Window(span_ms=12)]
FITTED = Fitted(40, {"a": 30, "b": 3, "c": 1, "hot dog": 0, "any": 40})
INDEXES = Topk().indexes


def bound(window: Window = WINDOW, maxdist: float | None = FAR, fitted: bool = False) -> Topk:
    return Topk(Frame(window, maxdist, FITTED) if fitted else Frame(window, maxdist))


def topk(k: int = 2, *keywords: str, at: Sequence[float] = (0, 0), **fields: Any) -> Json:
    return {"kind": "topk", "at": list(at), "k": k, "keywords": list(keywords or ("any",)),
            "alpha": 0.5, "maxdist": 10, **fields}  # fmt: skip


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_every_window_keeps_every_promise(window: Window, index: str, pytestconfig: Any) -> None:
    check: Check
    for name, check in yield_checks(index, bound(window, fitted=True)):
        if name != "check_stories":  # these are of the usual window
            check(pytestconfig.getoption("--seed"))


# -- windows -------------------------------------------------------------------------------------


def story(log: list[Json], window: Window, index: str = "scan") -> list[tuple[Any, ...]]:
    """What is reported, the same by oracle and index, in one batch and in many."""
    kind = bound(window)
    right = replay(log, Space.PLANAR, kinds={**KINDS, "topk": kind}).notifications
    for cuts in ((), range(len(log))):
        assert_same_story(run_index(index, log, kind, Space.PLANAR, cuts), right)
    return [(n["event"], n["object"], n["time"]) for n in right]


@pytest.mark.parametrize("index", INDEXES)
def test_what_is_pushed_out_leaves_before_what_pushes_it_out_is_considered(index: str) -> None:
    log = [
        subscribe("s", 0, topk(1, alpha=1)),
        publish("near", 1, 1),
        publish("far", 2, 5),
        publish("nearer", 3, 0),
    ]
    assert story(log, Window(count=2), index) == [
        ("enter", "near", 1),
        ("leave", "near", 3),
        ("enter", "far", 3),
        ("enter", "nearer", 3),
        ("leave", "far", 3),
    ]


@pytest.mark.parametrize("index", INDEXES)
def test_objects_that_share_nothing_push_out_too(index: str) -> None:
    log = [
        subscribe("s", 0, topk(1, "a")),
        publish("a1", 1, 0, 0, "a"),
        publish("b", 2, 0, 0, "b"),
        {"op": "publish", "id": "wordless", "time": 3, "at": [0, 0]},
    ]
    assert story(log, Window(count=2), index) == [("enter", "a1", 1), ("leave", "a1", 3)]


@pytest.mark.parametrize("index", INDEXES)
def test_all_that_age_out_at_one_moment_leave_before_anything_enters(index: str) -> None:
    log = [
        subscribe("s", 0, topk(2, alpha=1)),
        publish("one", 10, 1),
        publish("two", 10, 2),
        publish("three", 12, 3),
        publish("four", 12, 4),
        unsubscribe("unknown", 20),
    ]
    found = story(log, Window(span_ms=10), index)
    assert found[:2] == [("enter", "one", 10), ("enter", "two", 10)]
    assert sorted(found[2:4]) == [("leave", "one", 20), ("leave", "two", 20)]
    assert found[4:] == [("enter", "three", 20), ("enter", "four", 20)]


@pytest.mark.parametrize("index", INDEXES)
def test_the_first_result_is_of_the_window_as_it_is_then(index: str) -> None:
    log = [
        publish("gone", 1, 0),
        publish("old", 5, 1),
        publish("young", 8, 2),
        subscribe("s", 11, topk(5)),
        subscribe("never", 11, topk(5), expires=11),
    ]
    assert story(log, Window(span_ms=10), index) == [("enter", "old", 11), ("enter", "young", 11)]
    assert [n[1] for n in story(log, Window(count=2), index)] == ["old", "young"]


def test_scores_are_those_of_the_contract() -> None:
    """Keywords of a subscription once each, of an object as often as it has them, by their idf."""
    log = [
        subscribe("s", 0, topk(9, "b", "a", "B ", alpha=0.25)),
        publish("o", 1, 3, 4, "a", "c", "a"),
    ]
    (found,) = replay(log, Space.PLANAR, kinds={"topk": bound(fitted=True)}).notifications
    idf = FITTED.of
    wanted = (idf("b") ** 2 + idf("a") ** 2) ** 0.5
    held = ((2 * idf("a")) ** 2 + idf("c") ** 2 + idf("any") ** 2) ** 0.5
    cosine = (idf("a") / wanted) * (2 * idf("a") / held)
    assert found["score"] == pytest.approx(0.25 * 0.5 + 0.75 * cosine, rel=1e-14)
    assert FITTED.of("none") > FITTED.of("hot dog") - 1e-12 > FITTED.of("c") > FITTED.of("any") == 1


# -- random logs ---------------------------------------------------------------------------------


def crowded(seed: int, events: int) -> list[Json]:
    """Few places, words and steps of the clock: ties by the hundred."""
    rng = Random(seed)
    log, clock = [], 0
    for n in range(events):
        clock += rng.choice((0, 0, 0, 1, 5))
        if rng.random() < 0.2:
            alpha, k = rng.choice((0, 0, 1, 0.5)), rng.choice((1, 2, 3, 5, 100))
            query = topk(k, *rng.sample("abcx", rng.randint(1, 3)), alpha=alpha, maxdist=3)
            ends = {"expires": clock + rng.randint(-1, 9)} if rng.random() < 0.2 else {}
            log.append(subscribe(f"s{rng.randint(0, 5)}", clock, query, **ends))
        else:
            words = rng.choices("abc", k=rng.randint(0, 3))
            at = [rng.randint(0, 2), rng.randint(0, 1)]
            one = {"op": "publish", "id": f"o{n % 50}", "time": clock, "at": at, "keywords": words}
            log.append(one)
    return log


@pytest.mark.parametrize("index", INDEXES)
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([*WINDOWS, Window(count=20)]), st.data())
def test_any_log_reports_what_the_definition_says(
    index: str, seed: int, window: Window, data: st.DataObject
) -> None:
    kind, log = bound(window), crowded(seed, 80)
    order = data.draw(st.sampled_from(["time", "arrival"]))
    if order == "arrival":
        Random(seed).shuffle(log)
    cuts = data.draw(st.sampled_from([(), range(0, 80, 7), range(80)]))
    right = replay(log, Space.PLANAR, order, kinds={**KINDS, "topk": kind}).notifications  # type: ignore[arg-type]
    assert_same_story(run_index(index, log, kind, Space.PLANAR, cuts, order), right)  # type: ignore[arg-type]


# -- the engine's parts --------------------------------------------------------------------------


def fitted_file(folder: Path) -> str:
    path = folder / "fitted.jsonl.gz"
    FITTED.write(path)
    return str(path)


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("order", ["time", "arrival"])
@pytest.mark.parametrize(
    ("router", "window", "format_"),
    [("hash", "count:9", "jsonl"), ("random", "20ms", "parquet"), ("broadcast", "9ms", "jsonl"),
     ("random", "count:30", "jsonl")],
)  # fmt: skip
def test_a_run_equals_the_oracle(
    tmp_path: Path, memory: Path, index: str, order: str, router: str, window: str, format_: str
) -> None:
    """Batches come again, some on lost arenas; `random` moves subscriptions with their results."""
    log = busy_log(11, Space.PLANAR, 160, late=0.2)
    chosen = Settings(
        space=Space.PLANAR,
        shards=3,
        strategies={"topk": f"{router}+{index}", "knn": "random"},
        order=order,
        format=format_,
        window=window,
        maxdist=FAR,
        idf=fitted_file(tmp_path),
        arena=str(memory),
    )
    run_log(tmp_path, log, chosen, 13, Random(3))
    assert len(replay(log, Space.PLANAR, kinds=chosen.kinds).of("topk")) > 50


@pytest.mark.parametrize("order", ["time", "arrival"])
def test_objects_count_that_came_before_the_first_subscription(
    tmp_path: Path, memory: Path, order: str
) -> None:
    """Long before: many batches. Nobody else pays: a log without `topk` keeps nothing."""
    log = [publish(f"o{n}", n, n % 7, 0, "a") for n in range(60)]
    log += [subscribe("s", 60, topk(3, "a")), publish("last", 61, 0, 0, "a")]
    chosen = Settings(
        space=Space.PLANAR, order=order, strategies={"range": "tornado"}, arena=str(memory)
    )
    run = run_log(tmp_path / "a", log, chosen, 10)
    # A live run cannot look ahead: it holds the window in parts until somebody subscribes to it.
    assert Feed(run.checkpoint).read(0)[0].kinds == (("topk",) if order == "time" else ())
    assert sum('"enter"' in text for text in reported(run.out).elements()) == 4
    more = (
        chosen
        if order == "time"
        else replace(chosen, only=("range", "knn"), strategies={"range": "tornado"})
    )
    other = Miniature(more, tmp_path / "b")
    other.feed(log[:60], 10)
    other.finish()
    assert not other.states[other.next][0].kept


def test_a_log_that_comes_later_may_not_be_the_first_to_name_it(
    tmp_path: Path, memory: Path
) -> None:
    named, late = [subscribe("s", 9, topk(1, "a"))], tmp_path / "late.jsonl"
    late.write_text(json.dumps(named[0]) + "\n")
    usual = Settings(space=Space.PLANAR, arena=str(memory))
    run = Miniature(usual, tmp_path / "a")
    run.feed([publish("o", 1, 0, 0, "a")], 10)
    with pytest.raises(NearcastError, match="these logs are the first to name topk"):
        run.plan(late, 10)
    both = Settings(space=Space.PLANAR, only=("range", "topk"), arena=str(memory))
    run = Miniature(both, tmp_path / "b")
    run.feed([publish("o", 1, 0, 0, "a")], 10)
    run.plan(late, 10)
    run.finish()
    right = expected([publish("o", 1, 0, 0, "a"), *named], Space.PLANAR)
    assert not difference(reported(run.out), right)


def test_a_plane_has_no_farthest_distance() -> None:
    query = topk(1, "a")
    del query["maxdist"]
    log = [subscribe("s", 0, query), publish("o", 1, 3, 4, "a")]
    refused = replay(log, Space.PLANAR)
    assert refused.rejected[0][1].startswith("query.maxdist: missing; a plane has no farthest")
    for run in (replay(log, Space.PLANAR, frame=Frame(maxdist=10)), replay(log, "geographic")):
        assert len(run.notifications) == 1
    assert replay(log, Space.PLANAR, frame=Frame(maxdist=10)).notifications[0]["score"] == (
        0.5 * 0.5 + 0.5 * (1 / 2**0.5)
    )


def test_a_checkpoint_is_bound_to_window_weights_and_distance(tmp_path: Path) -> None:
    one = Settings(window="count:5", maxdist=2, idf=fitted_file(tmp_path))
    check_bound(one, tmp_path / "run")
    check_bound(one, tmp_path / "run")
    for other in ({"window": "count:6"}, {"maxdist": 3.0}, {"idf": ""}):
        with pytest.raises(NearcastError, match=f"made with other settings.*{next(iter(other))}"):
            check_bound(replace(one, **other), tmp_path / "run")
