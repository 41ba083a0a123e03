"""Checks of when a subscription sees, and when no more; `checks` hands them out with the others."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from nearcast.index.arena import Memory
from nearcast.kernels.slots import REPORTS
from nearcast.kinds import KINDS, Kind
from nearcast.kinds.base import MakeIndex
from nearcast.model.space import Space
from nearcast.testing.cases import (
    assert_same_story,
    names_objects,
    publish,
    query_for,
    subscribe,
    unsubscribe,
    wanted,
)
from nearcast.testing.drive import go_on, notifications, plan, run_index, step

__all__ = ["LIFE_CHECKS"]

Index = MakeIndex


def check_delete_is_final(index: Index, kind: Kind, seed: int) -> None:
    """From its unsubscribe on, an id gets nothing; before, and of the same batch, all."""
    log = [
        subscribe("gone", 0, query_for(kind)),
        subscribe("here", 0, query_for(kind)),
        publish("o0", 1, seed % 8),
        unsubscribe("gone", 2),
        unsubscribe("unknown", 2),
        *(publish(f"o{t}", t, seed % 8) for t in (2, 3, 9)),
    ]
    for cuts in ((), (4,), range(len(log))):
        reported = run_index(index, log, kind, Space.PLANAR, cuts)
        if not names_objects(kind):
            assert_same_story(reported, wanted(log, kind, Space.PLANAR))
            continue
        assert [n["object"] for n in reported if n["id"] == "gone"] == ["o0"]
        assert len([n for n in reported if n["id"] == "here"]) == 4


def check_replacement_starts_afresh(index: Index, kind: Kind, seed: int) -> None:
    """Subscribing an id again, also as another kind, ends the old one and forgets its result."""
    other = next(k for name, k in KINDS.items() if name != kind.name)
    one = kind.examples.fresh
    log = [
        subscribe("s", 0, query_for(kind, where="a", **one), owner="first"),
        publish("o1", 1, 0, 0, "a"),
        subscribe("s", 2, query_for(kind, where="b", **one), owner="second"),
        publish("o2", 2, 0, 0, "a"),
        publish("o3", 3, 1, seed % 8, "a", "b"),
        subscribe("s", 4, query_for(other)),
        publish("o4", 5, 0, 0, "a", "b"),
        subscribe("s", 6, query_for(kind, **one), owner="third"),
        publish("o5", 7, 2, 2, "a", "b"),
    ]
    for cuts in ((), (3, 6), range(len(log))):
        reported = run_index(index, log, kind, Space.PLANAR, cuts)
        if not names_objects(kind):
            assert_same_story(reported, wanted(log, kind, Space.PLANAR))
            continue
        story = [(n["owner"], n["object"]) for n in reported]
        assert story == [("first", "o1"), ("second", "o3"), ("third", "o5")]


def check_expiry_is_the_end(index: Index, kind: Kind, seed: int) -> None:
    """An object at `expires` is not seen, and none is when that is not after `time`."""
    log = [
        subscribe("until 5", 0, query_for(kind), expires=5),
        subscribe("never", 3, query_for(kind), expires=3 - seed % 2),
        *(publish(f"o{t}", t) for t in (-1, 0, 3, 4, 5, 6)),
    ]
    for cuts in ((), range(len(log))):
        reported = run_index(index, log, kind, Space.PLANAR, cuts)
        if not names_objects(kind):
            assert_same_story(reported, wanted(log, kind, Space.PLANAR))
            continue
        assert [(n["id"], n["object"]) for n in reported] == [
            ("until 5", name) for name in ("o0", "o3", "o4")
        ]


def check_late_objects_go_by_their_own_time(index: Index, kind: Kind, seed: int) -> None:
    """In a live stream a subscription also sees what is published late, before its end."""
    log = [
        subscribe("s", 0, query_for(kind), expires=50),
        publish("on time", 10),
        unsubscribe("s", 20),
        publish("after", 25 + seed % 10),
        publish("late", 19),
        publish("too early", -1),
        publish("at the end", 20),
    ]
    for cuts in ((), (3,), range(len(log))):
        reported = run_index(index, log, kind, Space.PLANAR, cuts, "arrival")
        if not names_objects(kind):
            assert_same_story(reported, wanted(log, kind, Space.PLANAR, "arrival"))
            continue
        assert [n["object"] for n in reported] == ["on time", "late"]


def check_drop_is_final(index: Index, kind: Kind, seed: int) -> None:
    """What moved away sees nothing more and is not exported; the id may be subscribed again."""
    log = [
        subscribe("moved", 0, query_for(kind, where="a")),
        subscribe("stays", 0, query_for(kind)),
        publish("o1", 1, 0, 0, "a"),
        publish("o2", 2, 0, 0, "a"),
        publish("o3", 3 + seed % 5, 0, 0, "a"),
        subscribe("moved", 10, query_for(kind, where="b")),
        publish("o4", 11, 0, 0, "a"),
        publish("o5", 12, 0, 0, "b"),
    ]
    first, second, third = plan(log, kind, Space.PLANAR, cuts=(3, 5))
    running = index(Space.PLANAR, Memory())
    before = notifications(running, step(running, first), kind)
    assert len(before) == 2 or not names_objects(kind)
    running.close()
    running.drop(np.array([0]))
    assert running.living(first.now).tolist() == [1]
    reported = go_on(running, [second], kind)
    assert all(n["id"] == "stays" for n in reported)
    running.compact(second.settled)
    reported += go_on(running, [third], kind)
    if not names_objects(kind):
        if kind.window is not None:  # the window is not that of this shard alone
            return
        right = wanted(log, kind, Space.PLANAR)
        gone = [n for n in right if n["id"] == "moved" and first.now < n["time"] <= 10]
        assert_same_story(before + reported, [n for n in right if n not in gone])
        return
    assert [n["object"] for n in reported if n["id"] == "moved"] == ["o5"]
    assert len([n for n in reported if n["id"] == "stays"]) == 4


def check_copies_do_not_report(index: Index, kind: Kind, seed: int) -> None:
    """Each slot says whether it reports its changes, also after an export."""
    names = [f"s{n + seed}" for n in range(4)]
    (batch,) = plan([subscribe(n, 0, query_for(kind)) for n in names], kind, Space.PLANAR)
    place = batch.controls.schema.get_field_index("flags")
    flags = batch.controls["flags"].to_numpy().copy()
    flags[1::2] &= ~REPORTS
    controls = batch.controls.set_column(place, batch.controls.schema.field(place), pa.array(flags))
    running = index(Space.PLANAR, Memory())
    running.apply(controls, batch.at)
    running.close()
    assert running.reports(np.arange(4)).tolist() == [True, False, True, False]
    running.compact(batch.settled)
    assert running.reports(np.arange(4)).tolist() == [True, False, True, False]


LIFE_CHECKS = (
    check_delete_is_final,
    check_replacement_starts_afresh,
    check_expiry_is_the_end,
    check_late_objects_go_by_their_own_time,
    check_drop_is_final,
    check_copies_do_not_report,
)
