"""GI²: which cells and words a subscription is posted in, and lazy deletion, counted."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.index import Gi2
from nearcast.index.arena import Memory
from nearcast.index.gi2 import lists as gl
from nearcast.index.posting import UNIVERSAL
from nearcast.index.regions import lazy_deletion as lz
from nearcast.kernels import postings as pl
from nearcast.kernels.cells import ROOT, cell_hash, key_in
from nearcast.kernels.hashing import word_hash
from nearcast.kinds import KINDS
from nearcast.model.space import Space
from nearcast.testing.cases import assert_same_story, publish, subscribe, unsubscribe, wanted
from nearcast.testing.drive import notifications, plan, step

RANGE = KINDS["range"]

Json = dict[str, Any]


def box(x: float, y: float, size: float, where: str) -> Json:
    return {"kind": "range", "region": {"bbox": [x, y, x + size, y + size]}, "where": where}


def run(log: list[Json], cuts: Any = (), order: Any = "time") -> tuple[Gi2, list[Json]]:
    index = Gi2(Space.PLANAR, Memory())
    reported = []
    for batch in plan(log, RANGE, Space.PLANAR, order, cuts):
        reported += notifications(index, step(index, batch), RANGE)
        index.close()
    return index, reported


def listed(index: Gi2) -> Counter[tuple[int, int]]:
    """How often each slot stands under each key."""
    found: Counter[tuple[int, int]] = Counter()
    p = index._index.lists
    for row in np.flatnonzero(p.table[:, 0]).tolist():
        first, length = pl.entries(p, row)
        found.update((int(p.table[row, 0]), s) for s in p.pool[first : first + length, 0].tolist())
    return found


# -- where subscriptions are posted ----------------------------------------------------------------


def posted(queried: list[tuple[float, float, float, str]], side: int) -> Counter[tuple[int, int]]:
    """The same by the definition, in plain Python."""
    used: Counter[str] = Counter()
    found: Counter[tuple[int, int]] = Counter()
    for slot, (x, y, size, where) in enumerate(queried):
        names = where.replace(" OR ", " AND ").split(" AND ") if where else []
        if " OR " in where:
            hooks = [word_hash(w) for w in names]
        elif names:
            used.update(names)
            hooks = [word_hash(min(names, key=lambda w: (used[w], names.index(w))))]
        else:
            hooks = [int(UNIVERSAL)]
        columns = range(math.floor(x / 2.0**side), math.floor((x + size) / 2.0**side) + 1)
        rows = range(math.floor(y / 2.0**side), math.floor((y + size) / 2.0**side) + 1)
        if len(columns) * len(rows) > gl.MOST:
            cells = [cell_hash(ROOT, 0, 0)]
        else:
            cells = [gl.cell_of(side, c, r) for c in columns for r in rows]
        for hook in hooks:
            for cell in cells:
                found[int(key_in(np.uint64(cell), np.uint64(hook))), slot] += 1
    return found


corners = st.integers(-20, 20).map(float)
sizes = st.sampled_from([0.0, 0.25, 1.0, 3.5, 100.0])
wheres = st.sampled_from(["", "a", "b", "a AND b", "b AND a AND c", "a OR c"])


@settings(max_examples=25)
@given(queried=st.lists(st.tuples(corners, corners, sizes, wheres), min_size=1, max_size=40))
def test_every_cell_that_a_region_overlaps(queried: list[tuple[float, float, float, str]]) -> None:
    index, _ = run([subscribe(f"s{n}", 0, box(*q)) for n, q in enumerate(queried)])
    assert listed(index) == posted(queried, int(index._grid[gl.SIDE]))


def test_cells_hold_half_of_the_regions() -> None:
    queried = [(0.0, 0.0, size, "a") for size in (0.3, 0.3, 0.9, 5.0, 5.0)]
    index, _ = run([subscribe(f"s{n}", 0, box(*q)) for n, q in enumerate(queried)])
    assert index._grid[gl.SIDE] == 0


def test_four_times_as_many_choose_again() -> None:
    log = [subscribe(f"s{n}", n, box(n, 0, 1.0, "a")) for n in range(3)]
    log += [subscribe(f"t{n}", 10, box(n, 0, 16.0, "a")) for n in range(9)]
    log += [publish("o", 11, 2.5, 0.5, "a")]
    index, reported = run(log, cuts=(3,))
    assert index._grid[gl.SIDE] == 4
    assert listed(index) == posted(
        [(float(n), 0.0, 1.0, "a") for n in range(3)]
        + [(float(n), 0.0, 16.0, "a") for n in range(9)],
        4,
    )
    assert_same_story(reported, wanted(log, RANGE, Space.PLANAR))


# -- lazy deletion -------------------------------------------------------------------------------

TWO_CELLS = box(0.5, 0.25, 1.0, "a")  # cells of side 1: (0, 0), (1, 0), (0, 1), (1, 1)


def test_an_unsubscribe_is_only_noted() -> None:
    log = [subscribe("s", 0, TWO_CELLS), subscribe("t", 0, TWO_CELLS), unsubscribe("s", 5)]
    index, _ = run(log, cuts=(2,))
    assert index._lazy.meta[lz.NOTED] == 1
    assert index._lazy.meta[lz.REMOVED] == 0
    assert sum(listed(index).values()) == 8


def test_entries_go_when_their_list_is_read() -> None:
    log = [subscribe("s", 0, TWO_CELLS), subscribe("t", 0, TWO_CELLS), unsubscribe("s", 5)]
    log += [publish("elsewhere", 6, 40, 40, "a"), publish("other word", 6, 0.75, 0.5, "b")]
    log += [publish("there", 7, 0.75, 0.5, "a"), publish("again", 8, 0.75, 0.5, "a")]
    removed, reported = [], []
    index = Gi2(Space.PLANAR, Memory())
    for batch in plan(log, RANGE, Space.PLANAR, cuts=range(2, len(log))):
        changes = step(index, batch)
        reported += notifications(index, changes, RANGE)
        index.close()
        removed.append(int(index._lazy.meta[lz.REMOVED]))
    assert removed == [0, 0, 0, 0, 1, 1]
    assert changes.work.scanned == 1  # of the two entries that the list had
    assert_same_story(reported, wanted(log, RANGE, Space.PLANAR))
    assert listed(index)[int(lz.late_key(np.uint64(word_hash("a")))), 0] == 1


def test_what_expires_is_noted_when_it_is_met() -> None:
    log = [subscribe("s", 0, TWO_CELLS, expires=5)]
    log += [publish("o", 6, 0.75, 0.5, "a"), publish("p", 7, 0.75, 0.5, "a")]
    index, reported = run(log, cuts=(1, 2))
    assert reported == []
    assert index._lazy.meta[lz.NOTED] == 1
    assert index._lazy.meta[lz.REMOVED] == 1


def test_late_objects_still_find_what_left_its_list() -> None:
    log = [subscribe("s", 0, TWO_CELLS), unsubscribe("s", 20)]
    log += [publish("after", 25, 0.75, 0.5, "a"), publish("late", 10, 0.75, 0.5, "a")]
    for cuts in ((2, 3), (2,)):
        index, reported = run(log, cuts, "arrival")
        assert index._lazy.meta[lz.REMOVED] == 1
        assert [n["object"] for n in reported] == ["late"]


def test_in_one_batch_nothing_goes_too_early() -> None:
    log = [subscribe("s", 0, TWO_CELLS), publish("before", 1, 0.75, 0.5, "a")]
    log += [unsubscribe("s", 2), publish("after", 3, 0.75, 0.5, "a")]
    index, reported = run(log)
    assert [n["object"] for n in reported] == ["before"]
    assert index._lazy.meta[lz.REMOVED] == 0


def test_a_list_longer_than_the_scratch_is_read_once() -> None:
    log = [subscribe(f"s{n}", 0, TWO_CELLS) for n in range(lz.HITS + 1)]
    log += [publish(f"o{n}", 1, 0.75, 0.5, "a") for n in range(3)]
    index = Gi2(Space.PLANAR, Memory())
    (batch,) = plan(log, RANGE, Space.PLANAR)
    changes = step(index, batch)
    assert len(changes) == changes.work.scanned == changes.work.examined == 3 * (lz.HITS + 1)
    assert changes.work.lookups == 3
