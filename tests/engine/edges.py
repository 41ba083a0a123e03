"""Hand-made logs of what is hard to route: poles, the antimeridian, large outlines, one place."""

from __future__ import annotations

import math
from typing import Any

from tests.engine.contract import Miniature

from nearcast.engine.output.reports import Reports
from nearcast.testing.cases import publish, subscribe, unsubscribe

Json = dict[str, Any]
_JUST_OUT = math.nextafter(4.0, 5.0)
_REGIONS: dict[str, Json] = {
    "world": {"bbox": [-180, -90, 180, 90]},
    "over the line": {"bbox": [170, -10, -170, 10]},
    "up to the line": {"bbox": [170, -10, 180, 10]},
    "around the line": {"circle": {"at": [179.9, 0], "radius": 300_000}},
    "around the north pole": {"circle": {"at": [0, 89.5], "radius": 300_000}},
    "around the south pole": {"circle": {"at": [90, -90], "radius": 500_000}},
    "box": {"bbox": [0, 0, 4, 4]},
    "triangle": {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [0, 4], [0, 0]]]},
}
_PLACES = [
    (180, 0), (-180, 0), (-179.9, 1), (0, 90), (180, 89.5), (10, -89), (-180, -90), (0, 0), (4, 4),
    (_JUST_OUT, 2), (2, 2),
]  # fmt: skip
_WHERE = ("", "a", "a AND c", "NOT b", "b OR c", '"hot dog" OR (a AND NOT c)')


def world() -> list[Json]:
    """Regions at the ends of the world, objects in and around them, and `a` in every object."""
    log = [subscribe(name, 0, _range(region)) for name, region in _REGIONS.items()]
    log += [
        subscribe(f"world {where}", 0, _range(_REGIONS["world"], where)) for where in _WHERE[1:]
    ]
    for n in range(44):
        time, (x, y) = n + 1, _PLACES[n % len(_PLACES)]
        words = ("a", *(("b",), ("c",), ("b", "c"), ("hot dog",))[n % 4])
        log.append(publish(f"o{n}", time, x, y, *words))
        if n % 6 == 5:
            name, region = list(_REGIONS.items())[n // 6]
            log.append(subscribe(name, time, _range(region, _WHERE[n // 6 % 6]), expires=n + 15))
        if n % 14 == 13:
            log.append(unsubscribe(f"world {_WHERE[n // 14]}", time))
    return log


def _range(region: Json, where: str = "") -> Json:
    return {"kind": "range", "region": region, "where": where}


def outline(name: str, time: int, vertices: int, radius: float) -> Json:
    """A subscription to a ring of so many vertices around (0, 0)."""
    angles = [math.tau * n / vertices for n in range(vertices)]
    ring = [[radius * math.cos(a), radius * math.sin(a)] for a in angles]
    return subscribe(name, time, _range({"type": "Polygon", "coordinates": [[*ring, ring[0]]]}))


def crowded() -> list[Json]:
    """Places all over while there is no plan, then one place only."""
    log: list[Json] = []
    for n in range(80):
        x, y = (n * 7 % 60, n * 11 % 40) if n < 20 else (9, 9)
        box = {"bbox": [x - 1, y - 1, x + 1, y + 1]}
        log.append(subscribe(f"s{n}", n, _range(box)) if n % 2 == 0 else publish(f"o{n}", n, x, y))
    return log


def objects_by_shard(run: Miniature) -> list[int]:
    """How many objects each shard was sent in the last batch."""
    last = Reports(run.checkpoint).all()[-1]
    return [report.counts["range"].objects for report in last.reports]
