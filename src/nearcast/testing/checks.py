"""The conformance suite: what every index of a kind must do, one small check a promise.

    for name, check in yield_checks("pyramid", "range"):
        check(seed)

An index may be given by its registered name or as a class. A check raises `AssertionError`; it does
the same thing whenever it is given the same seed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nearcast.index.arena import Arena, Memory, Part, Storage
from nearcast.index.base import ENTER, LocalIndex
from nearcast.model.space import Space
from nearcast.testing.cases import (
    assert_same_story,
    busy_log,
    publish,
    query_for,
    subscribe,
    unsubscribe,
    wanted,
)
from nearcast.testing.drive import (
    Batch,
    go_on,
    index_class,
    notifications,
    plan,
    run_index,
    step,
)
from nearcast.testing.kind_checks import KNN_CHECKS, RANGE_CHECKS
from nearcast.testing.life_checks import LIFE_CHECKS

__all__ = ["Check", "yield_checks"]

Check: TypeAlias = Callable[[int], None]
Index: TypeAlias = type[LocalIndex]
_EVENTS = 60


def yield_checks(index: str | Index, kind: str) -> Iterator[tuple[str, Check]]:
    """(name, check) of every promise that an index of this kind makes."""
    checks = [*_EVERY_KIND, *LIFE_CHECKS, *(RANGE_CHECKS if kind == "range" else KNN_CHECKS)]
    for check in checks:
        yield check.__name__, partial(check, index_class(index), kind)


def _regular_cuts(seed: int) -> list[int]:
    rng = Random(seed)
    return sorted(rng.sample(range(1, _EVENTS), 6))


def _columns(batch: Batch) -> list[NDArray[Any]]:
    o = batch.objects
    ids, words = (o.id_offsets, o.id_bytes), (o.word_offsets, o.words)
    return [batch.at, batch.clock, o.order, o.time, o.clock, o.x, o.y, *ids, *words]


# -- the same answers -------------------------------------------------------------------------


def check_equals_the_oracle(index: Index, kind: str, seed: int) -> None:
    """A log in one batch tells what the definition says, by time and as it arrives."""
    for space in Space:
        log = busy_log(seed, space, _EVENTS, late=0.3, late_controls=True)
        assert_same_story(run_index(index, log, kind, space), wanted(log, kind, space))
        told = run_index(index, log, kind, space, (), "arrival")
        assert_same_story(told, wanted(log, kind, space, "arrival"))


def check_batches_are_one_by_one(index: Index, kind: str, seed: int) -> None:
    """Where the log is cut does not show."""
    for space in Space:
        log = busy_log(seed, space, _EVENTS, late=0.3)
        right = wanted(log, kind, space)
        for cuts in (range(_EVENTS), _regular_cuts(seed)):
            assert_same_story(run_index(index, log, kind, space, cuts), right)


def check_grows(index: Index, kind: str, seed: int) -> None:
    """Hundreds of subscriptions, words and changes a batch: more than any array begins with."""
    rng = Random(seed)
    wheres = [f"w{n} OR w{n + 1} OR all" for n in range(250)]
    wheres += [" OR ".join(["all", *(f"v{n}" for n in range(300))])]
    log = [
        subscribe(f"s{n}", 0, query_for(kind, where=w), owner="o" * 50)
        for n, w in enumerate(wheres)
    ]
    if kind == "knn":
        queries = [query_for(kind, k=40, window=5 + n) for n in range(20)]
        log += [subscribe(f"w{n}", 0, query) for n, query in enumerate(queries)]
    for n in range(50):
        at, words = (rng.randint(-9, 9), rng.randint(-9, 9)), rng.choice((["all"], [f"w{5 * n}"]))
        log.append(publish(f"{n:0200}", 1 + n // 10, *at, *words))
    log.append(unsubscribe("unknown", 60))
    right = wanted(log, kind, Space.PLANAR)
    for cuts in ((), (100, len(log) - 40)):
        assert_same_story(run_index(index, log, kind, Space.PLANAR, cuts), right)


def check_ids_and_echoes_are_kept(index: Index, kind: str, seed: int) -> None:
    """Odd ids, owner and meta come back as they were given, also from a later batch."""
    names = [f'"\\{seed}', "\n\t", "ß☃", "x" * 256]
    log = [
        subscribe(n, 0, query_for(kind), owner=f"of {n}", meta={n: [None, 0.5]}) for n in names
    ] + [publish(n, 1 + i) for i, n in enumerate(names)]
    told = run_index(index, log, kind, Space.PLANAR, [5, 6])
    assert_same_story(told, wanted(log, kind, Space.PLANAR))
    assert {n["id"] for n in told} == {n["object"] for n in told} == set(names)


def check_nothing_comes_of_nothing(index: Index, kind: str, seed: int) -> None:
    """Empty batches, before and after others, tell nothing and cost nothing."""
    running = index(kind, Space.PLANAR, Memory())
    (full,) = plan([subscribe(f"s{seed}", 0, query_for(kind)), publish("o", 1)], Space.PLANAR)
    (empty,) = plan([], Space.PLANAR)
    for batch, changes in ((empty, 0), (full, 1), (empty, 0), (empty, 0)):
        found = step(running, batch)
        assert len(found) == changes
        running.close()
    assert found.work.examined == found.work.scanned == 0
    assert len(running) == 1


# -- state that moves --------------------------------------------------------------------------


def check_input_is_not_changed(index: Index, kind: str, seed: int) -> None:
    """Neither the tables nor the columns of a batch are written to."""
    log = busy_log(seed, Space.PLANAR, _EVENTS, late=0.3)
    running = index(kind, Space.PLANAR, Memory())
    for batch in plan(log, Space.PLANAR, cuts=_regular_cuts(seed)):
        controls = batch.controls.to_pydict()
        before = [column.copy() for column in _columns(batch)]
        step(running, batch)
        running.changed()
        running.close()
        assert batch.controls.to_pydict() == controls
        assert all(map(np.array_equal, before, _columns(batch)))


def check_snapshot_goes_on(index: Index, kind: str, seed: int) -> None:
    """A new index, made of the rows of the living slots, tells the rest of the log."""
    for space in Space:
        log = busy_log(seed, space, _EVENTS, late=0.3)
        batches = plan(log, space, cuts=_regular_cuts(seed))
        half = len(batches) // 2
        running = index(kind, space, Memory())
        told = go_on(running, batches[:half])
        controls, results = running.rows(running.living(batches[half - 1].settled))
        fresh = index(kind, space, Memory())
        fresh.apply(controls, np.zeros(controls.num_rows, np.int32))
        fresh.restore(results)
        fresh.close()
        assert len(fresh) == controls.num_rows
        assert_same_story(told + go_on(fresh, batches[half:]), wanted(log, kind, space))


def check_compact_changes_nothing(index: Index, kind: str, seed: int) -> None:
    """Forgetting the dead after every batch does not show; the dead are forgotten."""

    def compacted(running: LocalIndex, batch: Batch) -> LocalIndex:
        living = len(running.living(batch.settled))
        running.compact(batch.settled)
        assert len(running) == living
        return running

    for space in Space:
        log = busy_log(seed, space, _EVENTS, late=0.3)
        told = run_index(index, log, kind, space, _regular_cuts(seed), between=compacted)
        assert_same_story(told, wanted(log, kind, space))


def check_compact_keeps_ends(index: Index, kind: str, seed: int) -> None:
    """What has ended, but may still see late objects, is exported with its end."""

    def compacted(running: LocalIndex, batch: Batch) -> LocalIndex:
        running.compact(batch.settled)
        return running

    log = [
        subscribe("s", 0, query_for(kind), expires=50),
        unsubscribe("s", 20),
        publish("after", 25),
        publish("late", 10 + seed % 10),
    ]
    told = run_index(index, log, kind, Space.PLANAR, (2, 3), "arrival", between=compacted)
    assert [n["object"] for n in told] == ["late"]


def check_attach_goes_on(index: Index, kind: str, seed: int) -> None:
    """Another process that opens the same files goes on where this one stopped."""
    with tempfile.TemporaryDirectory(prefix="nearcast-check-") as name:

        def storage() -> Storage:
            return Part(Arena(Path(name) / "arena"), "part")

        def attached(running: LocalIndex, batch: Batch) -> LocalIndex:
            other = index(kind, running.space, storage())
            assert len(other) == len(running)
            return other

        log = busy_log(seed, Space.GEOGRAPHIC, _EVENTS, late=0.3)
        cuts = _regular_cuts(seed)
        told = run_index(
            index, log, kind, Space.GEOGRAPHIC, cuts, storage=storage(), between=attached
        )
        assert_same_story(told, wanted(log, kind, Space.GEOGRAPHIC))


def check_changed_lets_a_twin_keep_up(index: Index, kind: str, seed: int) -> None:
    """The same controls and what `changed` gives make the same state, without any object."""
    log = busy_log(seed, Space.PLANAR, _EVENTS, late=0.3)
    batches = plan(log, Space.PLANAR, cuts=_regular_cuts(seed))
    half = len(batches) // 2
    running, twin = (index(kind, Space.PLANAR, Memory()) for _ in range(2))
    told = []
    for batch in batches[:half]:
        told += notifications(running, step(running, batch))
        twin.apply(batch.controls, batch.at)
        twin.restore(running.changed())
        running.close()
        twin.close()
        assert running.changed().num_rows == 0, "nothing has changed in a batch that is over"
    everything = np.arange(len(running))
    assert len(twin) == len(running)
    assert [t.to_pydict() for t in twin.rows(everything)] == [
        t.to_pydict() for t in running.rows(everything)
    ]
    assert_same_story(told + go_on(twin, batches[half:]), wanted(log, kind, Space.PLANAR))


def check_work_is_counted(index: Index, kind: str, seed: int) -> None:
    """Of each batch: at least as many entries read as candidates, and candidates as matches."""
    subscriptions = [subscribe(f"s{n}", 0, query_for(kind, where="a")) for n in range(5)]
    objects = [publish(f"o{t}", t, t % 3, seed % 5, "a", "b") for t in range(1, 9)]
    running = index(kind, Space.PLANAR, Memory())
    for batch in plan(subscriptions + objects, Space.PLANAR, cuts=(7,)):
        changes = step(running, batch)
        running.close()
        found = int(np.count_nonzero(changes.event <= ENTER))
        work = changes.work
        assert found == 5 * len(batch.objects.order)
        assert work.scanned >= work.examined >= found
        assert work.scanned <= 50 * found, "the work of earlier batches does not count again"


_EVERY_KIND = (
    check_equals_the_oracle,
    check_batches_are_one_by_one,
    check_ids_and_echoes_are_kept,
    check_nothing_comes_of_nothing,
    check_input_is_not_changed,
    check_snapshot_goes_on,
    check_compact_changes_nothing,
    check_compact_keeps_ends,
    check_attach_goes_on,
    check_changed_lets_a_twin_keep_up,
    check_work_is_counted,
    check_grows,
)
