"""Examples of `range` queries: for tests of everything that takes this kind, and the warm-up."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np

from nearcast.kinds.base import Examples, Places, Story
from nearcast.model.space import Space

__all__ = ["EXAMPLES"]

Json = dict[str, Any]


def _range(region: Json, **fields: Any) -> Json:
    return {"kind": "range", "region": region, **fields}


def _draw(rng: Random, places: Places) -> Json:
    return _range(places.region(rng))


def _busy(space: Space) -> list[Json]:
    world: Json = {"bbox": [-180, -90, 180, 90]}
    giant: Json = {"bbox": [-1e300, -1e300, 1e300, 1e300]}
    region = world if space is Space.GEOGRAPHIC else giant
    return [_range(region), _range(region, where="a OR NOT b")]


def _polygon(*points: list[float]) -> Json:
    return {"type": "Polygon", "coordinates": [list(points)]}


def _publish(name: str, x: float, y: float) -> Json:
    return {"op": "publish", "id": name, "time": 1, "at": [x, y]}


def _subscribe(name: str, region: Json) -> Json:
    return {"op": "subscribe", "id": name, "time": 0, "query": _range(region)}


def _edges_belong(seed: int) -> Iterator[Story]:
    """An object on the border of a region and of a cell is inside, one float further is not."""
    for exponent in range(-3, 4):
        side = 4.0 ** (exponent + seed % 3)
        inside = [(x, y) for x in (-side, 0, side) for y in (0, side / 2, side)]
        outside = [
            (float(np.nextafter(side, np.inf)), 0.0),
            (0.0, float(np.nextafter(0, -1))),
            (float(np.nextafter(-side, -np.inf)), side),
        ]
        log = [_subscribe("s", {"bbox": [-side, 0, side, side]})]
        log += [_publish(f"in {n}", *at) for n, at in enumerate(inside)]
        log += [_publish(f"out {n}", *at) for n, at in enumerate(outside)]
        reported = [("s", "match", f"in {n}", 1) for n in range(len(inside))]
        yield Story("edges belong", log, reported)


def _the_world_is_round(seed: int) -> Iterator[Story]:
    """Regions reach over the antimeridian and the poles; 180 and -180 are one meridian."""
    south = -(seed % 10)
    regions: dict[str, Json] = {
        "over": {"bbox": [170, south, -170, 10]},
        "to": {"bbox": [170, south, 180, 10]},
        "circle": {"circle": {"at": [179, 0], "radius": 300_000}},
        "pole": {"circle": {"at": [0, 89], "radius": 300_000}},
    }
    places = {"west": (-179, 0), "line": (-180, 0), "east": (180, 0), "top": (180, 89)}
    around = ["west", "line", "east"]
    seen = {"over": around, "to": ["line", "east"], "circle": around, "pole": ["top"]}
    yield Story(
        "the world is round",
        [_subscribe(name, region) for name, region in regions.items()]
        + [_publish(name, *at) for name, at in places.items()],
        [(name, "match", o, 1) for name, objects in seen.items() for o in objects],
        Space.GEOGRAPHIC,
        in_order=False,
    )


def _stories(seed: int) -> Iterator[Story]:
    yield from _edges_belong(seed)
    yield from _the_world_is_round(seed)


_BOX = _range({"bbox": [0, 0, 1, 1]})
EXAMPLES = Examples(
    everything=_range({"bbox": [-8, -8, 8, 8]}),
    draw=_draw,
    warm=(
        {**_BOX, "where": "a OR NOT b"},
        _range(_polygon([0, 0], [1, 0], [0, 1], [0, 0]), where="a"),
    ),
    busy=_busy,
    bad=(
        (_BOX, "region", [None, {}, [], {"bbox": [0, 1, 1, 0]}, {"bbox": [0, 0, 1]}]),
        (_BOX, "region", [{"circle": {"at": [0, 0], "radius": -1}}, {"circle": {"at": [0, 0]}}]),
        (_BOX, "region", [_polygon([0, 0], [1, 1], [0, 0])]),
        (_BOX, "region", [_polygon([0, 0], [2, 2], [2, 0], [0, 2], [0, 0])]),
        (_BOX, "where", ["a AND", "OR", "(a", "a)", '"', "()", "…", 7]),
    ),
    stories=_stories,
)
