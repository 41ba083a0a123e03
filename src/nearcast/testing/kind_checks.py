"""Checks of what one kind alone promises; `checks` hands them out with those of every kind."""

from __future__ import annotations

from random import Random

import numpy as np

from nearcast.index.base import LocalIndex
from nearcast.model.space import Space
from nearcast.testing.cases import publish, query_for, subscribe, unsubscribe
from nearcast.testing.drive import run_index

__all__ = ["KNN_CHECKS", "RANGE_CHECKS"]

Index = type[LocalIndex]


def check_edges_belong(index: Index, kind: str, seed: int) -> None:
    """An object on the border of a region and of a cell is inside, one float further is not."""
    for exponent in range(-3, 4):
        side = 4.0 ** (exponent + seed % 3)
        edge = {"kind": "range", "region": {"bbox": [-side, 0, side, side]}}
        log = [subscribe("s", 0, edge)]
        inside = [(x, y) for x in (-side, 0, side) for y in (0, side / 2, side)]
        outside = [
            (float(np.nextafter(side, np.inf)), 0.0),
            (0.0, float(np.nextafter(0, -1))),
            (float(np.nextafter(-side, -np.inf)), side),
        ]
        log += [publish(f"in {n}", 1, *at) for n, at in enumerate(inside)]
        log += [publish(f"out {n}", 1, *at) for n, at in enumerate(outside)]
        told = run_index(index, log, kind, Space.PLANAR)
        assert sorted(n["object"] for n in told) == [f"in {n}" for n in range(9)]


def check_the_world_is_round(index: Index, kind: str, seed: int) -> None:
    """Regions reach over the antimeridian and the poles; 180 and -180 are one meridian."""
    south = -(seed % 10)
    regions = {
        "over": {"bbox": [170, south, -170, 10]},
        "to": {"bbox": [170, south, 180, 10]},
        "circle": {"circle": {"at": [179, 0], "radius": 300_000}},
        "pole": {"circle": {"at": [0, 89], "radius": 300_000}},
    }
    log = [subscribe(n, 0, {"kind": "range", "region": r}) for n, r in regions.items()]
    places = {"west": (-179, 0), "line": (-180, 0), "east": (180, 0), "top": (180, 89)}
    log += [publish(n, 1, *at) for n, at in places.items()]
    told = run_index(index, log, kind, Space.GEOGRAPHIC)
    seen = {name: {n["object"] for n in told if n["id"] == name} for name in regions}
    around = {"west", "line", "east"}
    assert seen == {"over": around, "to": {"line", "east"}, "circle": around, "pole": {"top"}}
    assert len(told) == 9


# -- knn ---------------------------------------------------------------------------------------


def check_first_stays_at_equal_distance(index: Index, kind: str, seed: int) -> None:
    """A tie changes nothing; something nearer enters before the last of the result leaves."""
    places = [(3, 4), (4, 3), (-5, 0), (0, 5)]
    Random(seed).shuffle(places)
    log = [subscribe("s", 0, query_for(kind, k=2))]
    log += [publish(f"o{n}", n, *at) for n, at in enumerate(places)]
    log += [publish("near", 9, 1, 1)]
    for cuts in ((), range(len(log))):
        told = run_index(index, log, kind, Space.PLANAR, cuts)
        assert [(n["event"], n["object"]) for n in told] == [
            ("enter", "o0"),
            ("enter", "o1"),
            ("enter", "near"),
            ("leave", "o1"),
        ]


def check_windows_let_go_at_their_moment(index: Index, kind: str, seed: int) -> None:
    """At `time + window` an object leaves and the next moves up, before what is published then."""
    log = [
        subscribe("s", 0, query_for(kind, k=1, window=10)),
        subscribe("ends", 0, query_for(kind, k=1, window=10), expires=10),
        publish("near", 0, 1, 0),
        publish("far", 4, 2, seed % 7),
        publish("at the moment", 10, 0, 0),
        publish("later", 30, 5, 5),
    ]
    story = [
        ("enter", "near", 0),
        ("leave", "near", 10),
        ("enter", "far", 10),
        ("enter", "at the moment", 10),
        ("leave", "far", 10),
        ("leave", "at the moment", 20),
        ("enter", "later", 30),
    ]
    for cuts in ((), (4,), range(len(log))):
        told = run_index(index, log, kind, Space.PLANAR, cuts)
        assert [(n["event"], n["object"], n["time"]) for n in told if n["id"] == "s"] == story
        assert [n["object"] for n in told if n["id"] == "ends"] == ["near"]


def check_moments_pass_without_objects(index: Index, kind: str, seed: int) -> None:
    """Any event moves time on, and so does the end of the log."""
    log = [
        subscribe("s", 0, query_for(kind, k=1, window=5)),
        publish("o", 0, seed % 7, 0),
        unsubscribe("unknown", 5),
    ]
    for cuts in ((), (1,), (2,)):
        told = run_index(index, log, kind, Space.PLANAR, cuts)
        assert [(n["event"], n["time"]) for n in told] == [("enter", 0), ("leave", 5)]


RANGE_CHECKS = (check_edges_belong, check_the_world_is_round)
KNN_CHECKS = (
    check_first_stays_at_equal_distance,
    check_windows_let_go_at_their_moment,
    check_moments_pass_without_objects,
)
