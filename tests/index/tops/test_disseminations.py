"""All indexes of the shape `tops`: whoever takes an object is a candidate, whatever the bounds."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any, cast

import numpy as np
import pytest
from tests.index.tops.logs import Json, Watched, bound, crowd, mixed, topk, weighed

from nearcast.index import INDEXES
from nearcast.index.arena import Memory, Storage
from nearcast.index.base import LocalIndex
from nearcast.index.tops import base
from nearcast.index.tops.base import TopIndex
from nearcast.index.tops.policy import Roots
from nearcast.index.tops.state import CELLS, COUNTS, FLOOR, PARTS, SCANNED
from nearcast.kinds import KINDS
from nearcast.kinds.topk import Topk
from nearcast.model.frame import Window
from nearcast.model.space import Space
from nearcast.testing.cases import assert_same_story, publish, subscribe, unsubscribe
from nearcast.testing.drive import plan, run_index, step
from nearcast.testing.oracle import replay

ALL = list(INDEXES["tops"])


def check_candidates(index: str, kind: Topk, log: list[Json], space: Space, every: int) -> int:
    """Compare with the scores of all pairs, batch by batch; how many pairs were right."""
    held = Watched(kind, space, INDEXES["tops"][index])  # type: ignore[arg-type]
    taken = 0
    for batch in plan(log, kind, space, cuts=range(0, len(log), every)):
        held.step(batch)
        if not len(batch.clock):
            continue
        one, t = held.index, held.index._tops.state
        w, counts = weighed(one, batch), np.zeros(COUNTS, np.int64)
        found = one._found_by.candidates(t, one._slots, w, 0, len(w.ranks), counts)
        assert np.all(np.diff(found[0]) >= 0)
        pairs = set(zip(found[0].tolist(), found[1].tolist(), strict=True))
        latest = held.objects[len(held.objects) - len(w.ranks) :]
        for slot, sub in held.slots():
            for i, o in enumerate(latest):
                if sub.matches(o) and sub.score(o) >= t.rows[slot, FLOOR]:
                    assert (i, slot) in pairs
                    taken += 1
        one.close()
    return taken


@pytest.mark.parametrize("space", list(Space))
@pytest.mark.parametrize("index", ALL)
def test_bounds_are_never_too_tight(index: str, space: Space) -> None:
    """Whoever takes an object is a candidate, also when the score is the floor itself."""
    kind = bound(Window(count=60), fitted=space is Space.PLANAR)
    assert check_candidates(index, kind, mixed(8, 400, space), space, 40) > 500


def extremes(space: Space, seed: int) -> list[Json]:
    """Places where numbers are at their ends, maxdist too; alpha 0 and 1."""
    rng = Random(seed)
    coordinates = [0.0, 1e-300, 1.0, -1.0, 1e15, 1e200, -1e200, 1.7e308]
    lon, lat = [-180.0, 180.0, 179.9999999, 0.0, 90.0], [-90.0, 90.0, 0.0, 89.9999999, 45.0]
    log: list[Json] = []
    for n in range(240):
        if space is Space.PLANAR:
            at = [rng.choice(coordinates), rng.choice(coordinates)]
        else:
            at = [rng.choice(lon), rng.choice(lat)]
        words = rng.sample("abcde", rng.randint(1, 5))
        if n < 70:
            alpha = rng.choice((0, 1, 0.5, 1 - 1e-12, 1e-12))
            maxdist = rng.choice((1e-300, 1.0, 1e7, 2.1e7, 1e300))
            log.append(subscribe(f"s{n}", n, topk(1, *words, at=at, alpha=alpha, maxdist=maxdist)))
        else:
            log.append(publish(f"o{n}", n, at[0], at[1], *words))
    return log


@pytest.mark.parametrize("space", list(Space))
@pytest.mark.parametrize("index", ALL)
def test_numbers_at_their_ends(index: str, space: Space) -> None:
    kind = bound(Window(count=20), fitted=True)
    assert check_candidates(index, kind, extremes(space, 3), space, 60) > 100


@pytest.mark.parametrize("index", ["igpt", "ciq"])
def test_floors_that_rise_and_fall_do_not_show(index: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Buffers that are short at every turn."""
    monkeypatch.setattr(base, "_LEAST", 1)
    kind, log = bound(Window(count=40), fitted=True), mixed(1, 260)
    right = replay(log, Space.PLANAR, kinds={**KINDS, "topk": kind}).notifications

    def make(space: Space, storage: Storage) -> LocalIndex:
        made: Any = INDEXES["tops"][index]
        return cast("TopIndex", made(space, storage, kind.frame, Roots(0.0)))

    assert_same_story(run_index(make, log, kind, Space.PLANAR, range(0, 260, 11)), right)


def told(index: TopIndex, kind: Topk, log: list[Json], cuts: Iterable[int]) -> list[Any]:
    """What a log reports, as arrays of a batch."""
    out = []
    for batch in plan(log, kind, Space.PLANAR, cuts=cuts):
        found = step(index, batch)
        out.append([a.copy() for a in (found.order, found.slot, found.event, found.value)])
        index.close()
    return out


def test_thousands_get_the_same_from_every_index() -> None:
    """Leaves are split and lists have groups; some end, others come late."""
    kind, log = crowd(2600, 60)
    log += [unsubscribe(f"s{n}", 90) for n in range(0, 2600, 3)]
    late = [topk(2, "a", "b", at=(n % 9, 0), alpha=0.3) for n in range(300)]
    log += [subscribe(f"t{n}", 90, query) for n, query in enumerate(late)]
    log += [publish(f"q{n}", 91 + n, n % 9, 0, "b", "c") for n in range(60)]
    stories = {}
    for name, index in INDEXES["tops"].items():
        made = index(Space.PLANAR, Memory(), kind.frame)  # type: ignore[call-arg]
        assert isinstance(made, TopIndex)
        stories[name] = told(made, kind, log, (60, 1500, 2700, 2780, 3700))
        assert made.counted[SCANNED] > 0
        assert (made.counted[PARTS] > 0) == (name in ("reach", "igpt"))
        assert (made.counted[CELLS] > 0) == (name != "reach")
    assert sum(len(batch[0]) for batch in stories["reach"]) > 1000
    for story in stories.values():
        for one, other in zip(story, stories["reach"], strict=True):
            assert all(map(np.array_equal, one, other))


@pytest.mark.parametrize("index", ALL)
def test_what_many_have_in_common(index: str) -> None:
    """Thousands at one point with the same words, and hundreds of objects with that one word."""
    kind = bound(Window(count=100))
    log = [subscribe(f"s{n}", 0, topk(1 + n % 3, "a", "b")) for n in range(1500)]
    log += [publish(f"o{n}", 1 + n, n % 5, 0, "a") for n in range(300)]
    made = kind.index(index)(Space.PLANAR, Memory())
    changes = [len(step(made, batch)) for batch in plan(log, kind, Space.PLANAR)]
    same = [log[0], log[1], log[2], *log[1500:]]
    right = replay(same, Space.PLANAR, kinds={**KINDS, "topk": kind}).notifications
    assert changes == [500 * len(right)]
