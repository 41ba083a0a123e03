"""Range lists: every position of a box is in one of its cells, and entries never decide wrongly."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nearcast.index import LocalIndex
from nearcast.index.arena import Memory
from nearcast.index.posting import GRID
from nearcast.index.regions.lists import CELLS, ROOT, cell_of, level_of
from nearcast.index.regions.search import make_search
from nearcast.kernels import slots as sl
from nearcast.kernels.cells import cell_hash
from nearcast.kernels.squares import column_of
from nearcast.kinds import KINDS
from nearcast.model.space import Space
from nearcast.testing.cases import assert_same_story, publish, query_for, subscribe, wanted
from nearcast.testing.drive import notifications, plan, step
from nearcast.wire.changes import Changes

RANGE = KINDS["range"]

Json = dict[str, Any]
quick = settings(max_examples=60)

FINEST = -22
sides = st.one_of(st.just(0.0), st.floats(1e-9, 1e3), st.integers(-24, 42).map(lambda n: 2.0**n))
places = st.one_of(st.floats(-200, 200), st.integers(-64, 64).map(lambda n: n / 16), st.just(1e300))
parts = st.floats(0, 1)


@quick
@given(st.integers(0, ROOT), places, places, sides, sides, parts, parts)
@example(1, 0.0, -2.3e-308, 0.0, 1.0, 0.0, 0.0)  # two cells long, and a little more
def test_a_position_of_a_box_is_in_a_cell_of_the_box(
    grid: int, x: float, y: float, width: float, height: float, right: float, up: float
) -> None:
    width, height = (x + width) - x, (y + height) - y
    level = level_of(grid, width, height)
    cell = cell_of(level, min(x + right * width, x + width), min(y + up * height, y + height))
    if level == ROOT:
        assert cell == cell_hash(ROOT, 0, 0)
        return
    columns = range(column_of(level + FINEST, x), column_of(level + FINEST, x + width) + 1)
    lines = range(column_of(level + FINEST, y), column_of(level + FINEST, y + height) + 1)
    assert 4 * len(columns) * len(lines) <= CELLS
    assert cell in {cell_hash(level, c, r) for c in columns for r in lines}


@quick
@given(st.integers(0, ROOT), st.floats(1e-6, 1e6))
def test_cells_are_half_to_eight_times_as_long_as_the_box(grid: int, side: float) -> None:
    level = level_of(grid, side, side / 3)
    assert (level - grid) % 4 == 0
    assert 0.5 * side <= 2.0 ** (level + FINEST) < 8 * side or level == 0


# -- deciding ----------------------------------------------------------------------------------


def run(log: list[Json], name: str = "pyramid", cuts: Any = ()) -> tuple[LocalIndex, list[Changes]]:
    index = RANGE.index(name)(Space.PLANAR, Memory())
    found = []
    for batch in plan(log, RANGE, Space.PLANAR, "time", cuts):
        found.append(step(index, batch))
        index.close()
    return index, found


def reported(log: list[Json], cuts: Any = ()) -> list[Json]:
    index = RANGE.index("pyramid")(Space.PLANAR, Memory())
    out = []
    for batch in plan(log, RANGE, Space.PLANAR, "time", cuts):
        out += notifications(index, step(index, batch), RANGE)
        index.close()
    return out


def box(a: float, b: float, c: float, d: float, where: str = "") -> Json:
    return {"kind": "range", "region": {"bbox": [a, b, c, d]}} | ({"where": where} if where else {})


def near(v: float) -> list[float]:
    """A number, its neighbours, and what float32 makes of it."""
    rounded = float(np.float32(v))
    return [v, math.nextafter(v, -9e9), math.nextafter(v, 9e9), rounded]


@settings(max_examples=25)
@given(st.lists(st.tuples(*[st.floats(0, 1)] * 4), min_size=1, max_size=4))
def test_positions_at_the_last_digit_of_an_edge(corners: list[tuple[float, ...]]) -> None:
    boxes = [(min(a, c), min(b, d), max(a, c), max(b, d)) for a, b, c, d in corners]
    log = [subscribe(f"s{n}", 0, box(*b)) for n, b in enumerate(boxes)]
    at = [
        (x, y)
        for a, b, c, d in boxes
        for x, y in [
            *((x, (b + d) / 2) for v in (a, c) for x in near(v)),
            *(((a + c) / 2, y) for v in (b, d) for y in near(v)),
        ]
    ]
    log += [publish(f"o{n}", 1 + n, *p, "w") for n, p in enumerate(at)]
    # Subscriptions of an earlier batch are those that entries decide alone.
    assert_same_story(reported(log, [len(boxes)]), wanted(log, RANGE, Space.PLANAR, "time"))


def test_more_matches_than_there_is_room_for_at_first() -> None:
    many = 6_000  # also more than are read at a time
    log = [subscribe(f"s{n}", 0, box(0, 0, 1, 1, "w")) for n in range(many)]
    log += [publish(f"o{n}", 1, 0.5, 0.5, "w") for n in range(3)]
    assert many > len(make_search(1).hit)
    for cuts in ([], [many]):
        _, found = run(log, cuts=cuts)
        pairs = [(o, s) for c in found for o, s in zip(c.order, c.slot, strict=True)]
        assert len(pairs) == len(set(pairs)) == 3 * many
        # What was posted in part when an array had to grow stands there twice.
        assert 3 * many <= sum(c.work.examined for c in found) < 3.01 * many


@pytest.mark.parametrize("where", ["a OR b", "a OR b OR c"])
def test_one_that_hangs_on_several_lists_is_told_once(where: str) -> None:
    log = [subscribe(f"s{n}", 0, box(0, 0, 1, 1, where)) for n in range(3)]
    log.append(publish("o", 1, 0.5, 0.5, "a", "b", "c"))
    assert len(reported(log, [3])) == 3


def test_cells_follow_the_boxes() -> None:
    log = [subscribe(f"small {n}", 0, box(n, n, n + 0.001, n + 0.001, "w")) for n in range(10)]
    log += [subscribe(f"large {n}", 0, box(0, 0, 100 + n, 100 + n, "w")) for n in range(90)]
    log += [publish(f"o{n}", 1, n, n, "w") for n in range(0, 120, 5)]
    index, _ = run(log[:10])
    fine = int(index._post_meta[GRID])  # type: ignore[attr-defined]
    assert_same_story(reported(log, [10, 20, 100]), wanted(log, RANGE, Space.PLANAR, "time"))
    index, _ = run(log, cuts=[10, 20, 100])
    assert int(index._post_meta[GRID]) > fine  # type: ignore[attr-defined]


# -- who need not be looked at ---------------------------------------------------------------------


@quick
@given(
    st.lists(st.integers(-5, 20), min_size=1, max_size=6), st.integers(1, 1024), st.integers(-7, 22)
)
def test_settled_slots_have_begun(latest: list[int], last: int, time: int) -> None:
    """Whole chunks whose latest start is not after `time`; all of them, if none is later."""
    meta = np.zeros(sl.META, np.int64)
    first = ((len(latest) - 1) << sl.CHUNK) + last
    meta[sl.BATCH_FIRST] = first
    running = np.maximum.accumulate(np.array(latest, np.int64))
    none = np.empty(0, np.int64)
    state = sl.Slots(none, none, none, none, none, none, none, none, running, meta)  # type: ignore[arg-type]
    begun = int(np.searchsorted(running, time, side="right"))
    assert sl.settled.py_func(state, time) == min(begun << sl.CHUNK, first)  # type: ignore[attr-defined]


@pytest.mark.parametrize("words", range(2, 8))
def test_an_object_with_any_words_of_an_or_is_told_once(words: int) -> None:
    queried = "abcdefg"[:words]
    log = [subscribe("s", 0, query_for(RANGE, where=" OR ".join(queried)))]
    for n in range(1, 1 << words):
        log.append(publish(str(n), n, 0, 0, *(w for i, w in enumerate(queried) if n >> i & 1)))
    index = RANGE.index("pyramid")(Space.PLANAR, Memory())
    before, batch = plan(log, RANGE, Space.PLANAR, cuts=[1])
    step(index, before)
    index.close()  # it came before the batch: entries decide
    changes = step(index, batch)
    assert changes.order.tolist() == list(range((1 << words) - 1))


@pytest.mark.parametrize("wheres", [("a OR b",), ("a AND a AND b", "b")])
@pytest.mark.parametrize("name", RANGE.indexes)
def test_one_that_is_being_posted_when_room_ends_is_told_once(
    name: str, wheres: tuple[str, ...]
) -> None:
    """Lists grow a dozen times here, each time within a subscription.

    It must then stay under the word that it began with, even where counting the words of the
    first try would make another one the rarest.
    """
    index = RANGE.index(name)(Space.PLANAR, Memory())
    log: list[Json] = []
    for n in range(400):
        region = {"bbox": [n / 10, -1, n / 10 + 3, 1]}
        where = wheres[n % len(wheres)]
        log.append(subscribe(f"s{n}", 0, query_for(RANGE, region=region, where=where)))
        log.append(publish(f"o{n}", 1, n / 10 + 1, n % 3 - 1, *("ab" if n % 2 else "b")))
    reported: list[Json] = []
    for batch in plan(log, RANGE, Space.PLANAR, cuts=range(50, 400, 50)):
        reported += notifications(index, step(index, batch), RANGE)
    assert len(reported) > 4000
    assert_same_story(reported, wanted(log, RANGE, Space.PLANAR))
