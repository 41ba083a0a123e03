"""The conformance suite: what every index of a kind must do, one small check a promise.

    for name, check in yield_checks("pyramid", "range"):
        check(seed)

An index may be given by its registered name, or as what makes it of a space and a storage. A check
raises `AssertionError`; it does the same thing whenever it is given the same seed.
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
from nearcast.index.base import LocalIndex
from nearcast.kinds import Kind, Story
from nearcast.kinds.base import MakeIndex
from nearcast.model.space import Space
from nearcast.testing.cases import (
    all_kinds,
    assert_same_story,
    busy_log,
    names_objects,
    publish,
    query_for,
    subscribe,
    unsubscribe,
    wanted,
)
from nearcast.testing.drive import (
    Batch,
    go_on,
    kind_of,
    maker,
    notifications,
    plan,
    run_index,
    step,
)
from nearcast.testing.life_checks import LIFE_CHECKS

__all__ = ["Check", "check_story", "yield_checks"]

Check: TypeAlias = Callable[[int], None]
Index: TypeAlias = MakeIndex
_EVENTS = 60


def yield_checks(index: str | Index, kind: str | Kind) -> Iterator[tuple[str, Check]]:
    """(name, check) of every promise that an index of this kind makes."""
    kind = kind_of(kind)
    for check in (*_EVERY_KIND, *LIFE_CHECKS):
        yield check.__name__, partial(check, maker(index, kind), kind)


def _regular_cuts(seed: int) -> list[int]:
    rng = Random(seed)
    return sorted(rng.sample(range(1, _EVENTS), 6))


def _columns(batch: Batch) -> list[NDArray[Any]]:
    o = batch.objects
    ids, words = (o.id_offsets, o.id_bytes), (o.word_offsets, o.words)
    return [batch.at, batch.clock, o.order, o.time, o.clock, o.x, o.y, *ids, *words]


# -- the same answers -------------------------------------------------------------------------


def check_equals_the_oracle(index: Index, kind: Kind, seed: int) -> None:
    """A log in one batch reports what the definition says, by time and as it arrives."""
    for space in Space:
        log = busy_log(seed, space, _EVENTS, late=0.3, late_controls=True, kinds=all_kinds(kind))
        assert_same_story(run_index(index, log, kind, space), wanted(log, kind, space))
        reported = run_index(index, log, kind, space, (), "arrival")
        assert_same_story(reported, wanted(log, kind, space, "arrival"))


def check_batches_are_one_by_one(index: Index, kind: Kind, seed: int) -> None:
    """Where the log is cut does not show."""
    for space in Space:
        log = busy_log(seed, space, _EVENTS, late=0.3, kinds=all_kinds(kind))
        right = wanted(log, kind, space)
        for cuts in (range(_EVENTS), _regular_cuts(seed)):
            assert_same_story(run_index(index, log, kind, space, cuts), right)


def check_grows(index: Index, kind: Kind, seed: int) -> None:
    """Hundreds of subscriptions, words and changes a batch: more than any array begins with."""
    rng = Random(seed)
    wheres = [f"w{n} OR w{n + 1} OR all" for n in range(250)]
    wheres += [" OR ".join(["all", *(f"v{n}" for n in range(300))])]
    log = [
        subscribe(f"s{n}", 0, query_for(kind, where=w), owner="o" * 50)
        for n, w in enumerate(wheres)
    ]
    log += [subscribe(f"m{n}", 0, query) for n, query in enumerate(kind.examples.many)]
    for n in range(50):
        at, words = (rng.randint(-9, 9), rng.randint(-9, 9)), rng.choice((["all"], [f"w{5 * n}"]))
        log.append(publish(f"{n:0200}", 1 + n // 10, *at, *words))
    log.append(unsubscribe("unknown", 60))
    right = wanted(log, kind, Space.PLANAR)
    for cuts in ((), (100, len(log) - 40)):
        assert_same_story(run_index(index, log, kind, Space.PLANAR, cuts), right)


def check_ids_and_echoes_are_kept(index: Index, kind: Kind, seed: int) -> None:
    """Odd ids, owner and meta come back as they were given, also from a later batch."""
    names = [f'"\\{seed}', "\n\t", "ß☃", "x" * 256]
    log = [
        subscribe(n, 0, query_for(kind), owner=f"of {n}", meta={n: [None, 0.5]}) for n in names
    ] + [publish(n, 1 + i) for i, n in enumerate(names)]
    reported = run_index(index, log, kind, Space.PLANAR, [5, 6])
    assert_same_story(reported, wanted(log, kind, Space.PLANAR))
    assert {n["id"] for n in reported} == set(names)
    if names_objects(kind):
        assert {n["object"] for n in reported} == set(names)


def check_nothing_comes_of_nothing(index: Index, kind: Kind, seed: int) -> None:
    """Empty batches, before and after others, report nothing and cost nothing."""
    running = index(Space.PLANAR, Memory())
    log = [subscribe(f"s{seed}", 0, query_for(kind)), publish("o", 1)]
    (full,), (empty,) = (plan(events, kind, Space.PLANAR) for events in (log, []))
    for batch, changes in ((empty, 0), (full, 1), (empty, 0), (empty, 0)):
        found = step(running, batch)
        assert len(found) == changes
        running.close()
    assert found.work.examined == found.work.scanned == 0
    assert len(running) == 1


# -- state that moves --------------------------------------------------------------------------


def check_input_is_not_changed(index: Index, kind: Kind, seed: int) -> None:
    """Neither the tables nor the columns of a batch are written to."""
    log = busy_log(seed, Space.PLANAR, _EVENTS, late=0.3, kinds=all_kinds(kind))
    running = index(Space.PLANAR, Memory())
    for batch in plan(log, kind, Space.PLANAR, cuts=_regular_cuts(seed)):
        controls = batch.controls.to_pydict()
        before = [column.copy() for column in _columns(batch)]
        step(running, batch)
        running.changed()
        running.close()
        assert batch.controls.to_pydict() == controls
        assert all(map(np.array_equal, before, _columns(batch)))


def check_snapshot_goes_on(index: Index, kind: Kind, seed: int) -> None:
    """A new index, made of the rows of the living slots, reports the rest of the log."""
    for space in Space:
        log = busy_log(seed, space, _EVENTS, late=0.3, kinds=all_kinds(kind))
        batches = plan(log, kind, space, cuts=_regular_cuts(seed))
        half = len(batches) // 2
        running = index(space, Memory())
        reported = go_on(running, batches[:half], kind)
        controls, results = running.rows(running.living(batches[half - 1].settled))
        fresh = index(space, Memory())
        fresh.past = running.past
        fresh.apply(controls, np.zeros(controls.num_rows, np.int32))
        fresh.restore(results)
        fresh.close()
        assert len(fresh) == controls.num_rows
        assert_same_story(reported + go_on(fresh, batches[half:], kind), wanted(log, kind, space))


def check_compact_changes_nothing(index: Index, kind: Kind, seed: int) -> None:
    """Forgetting the dead after every batch does not show; the dead are forgotten."""

    def compacted(running: LocalIndex, batch: Batch) -> LocalIndex:
        living = len(running.living(batch.settled))
        running.compact(batch.settled)
        assert len(running) == living
        return running

    for space in Space:
        log = busy_log(seed, space, _EVENTS, late=0.3, kinds=all_kinds(kind))
        reported = run_index(index, log, kind, space, _regular_cuts(seed), between=compacted)
        assert_same_story(reported, wanted(log, kind, space))


def check_compact_keeps_ends(index: Index, kind: Kind, seed: int) -> None:
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
    reported = run_index(index, log, kind, Space.PLANAR, (2, 3), "arrival", between=compacted)
    if not names_objects(kind):
        assert_same_story(reported, wanted(log, kind, Space.PLANAR, "arrival"))
        return
    assert [n["object"] for n in reported] == ["late"]


def check_attach_goes_on(index: Index, kind: Kind, seed: int) -> None:
    """Another process that opens the same files goes on where this one stopped."""
    with tempfile.TemporaryDirectory(prefix="nearcast-check-") as name:

        def storage() -> Storage:
            return Part(Arena(Path(name) / "arena"), "part")

        def attached(running: LocalIndex, _: Batch) -> LocalIndex:
            other = index(running.space, storage())
            assert len(other) == len(running)
            return other

        log = busy_log(seed, Space.GEOGRAPHIC, _EVENTS, late=0.3, kinds=all_kinds(kind))
        cuts = _regular_cuts(seed)
        reported = run_index(
            index, log, kind, Space.GEOGRAPHIC, cuts, storage=storage(), between=attached
        )
        assert_same_story(reported, wanted(log, kind, Space.GEOGRAPHIC))


def check_changed_lets_a_twin_keep_up(index: Index, kind: Kind, seed: int) -> None:
    """The same controls and what `changed` gives make the same state, without any object."""
    log = busy_log(seed, Space.PLANAR, _EVENTS, late=0.3, kinds=all_kinds(kind))
    batches = plan(log, kind, Space.PLANAR, cuts=_regular_cuts(seed))
    half = len(batches) // 2
    running, twin = (index(Space.PLANAR, Memory()) for _ in range(2))
    reported = []
    for batch in batches[:half]:
        reported += notifications(running, step(running, batch), kind)
        twin.apply(batch.controls, batch.at)
        twin.restore(running.changed())
        running.close()
        twin.close()
        assert running.changed().num_rows == 0, "nothing has changed in a batch that is over"
    twin.past = running.past
    everything = np.arange(len(running))
    assert len(twin) == len(running)
    assert [t.to_pydict() for t in twin.rows(everything)] == [
        t.to_pydict() for t in running.rows(everything)
    ]
    assert_same_story(reported + go_on(twin, batches[half:], kind), wanted(log, kind, Space.PLANAR))


def check_work_is_counted(index: Index, kind: Kind, seed: int) -> None:
    """Of each batch: at least as many entries read as candidates, and candidates as matches."""
    subscriptions = [subscribe(f"s{n}", 0, query_for(kind, where="a")) for n in range(5)]
    objects = [publish(f"o{t}", t, t % 3, seed % 5, "a", "b") for t in range(1, 9)]
    running = index(Space.PLANAR, Memory())
    for batch in plan(subscriptions + objects, kind, Space.PLANAR, cuts=(7,)):
        changes = step(running, batch)
        running.close()
        arrivals = [code for code, event in enumerate(kind.events) if event.sign >= 0]
        found = int(np.isin(changes.event, arrivals).sum())
        work = changes.work
        if not names_objects(kind):
            assert (work.examined > 0) == (found > 0)
            continue
        assert found == 5 * len(batch.objects.order)
        assert work.scanned >= work.examined >= found
        assert work.scanned <= 50 * found, "the work of earlier batches does not count again"


def check_stories(index: Index, kind: Kind, seed: int) -> None:
    """What the kind alone promises: its own hand-made logs, and what they report."""
    for story in kind.examples.stories(seed):
        check_story(index, kind, story)


def check_story(index: Index, kind: Kind, story: Story) -> None:
    """A hand-made log reports what its story says, wherever it is cut."""
    for cuts in story.cuts:
        reported = run_index(index, story.log, kind, story.space, cuts)
        fields = {event.name: event.field or "object" for event in kind.events}
        got = [(n["id"], n["event"], n[fields[n["event"]]], n["time"]) for n in reported]
        right = story.reported
        if not story.in_order:
            got, right = sorted(got), sorted(right)
        assert got == right, story.name


_EVERY_KIND = (
    check_stories,
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
