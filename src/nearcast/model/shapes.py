"""The three shapes a region can have, and their form as flat numbers for compiled code."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from nearcast.model.errors import Invalid

__all__ = [
    "BBOX",
    "CIRCLE",
    "POLYGON",
    "Bbox",
    "Circle",
    "Point",
    "Polygon",
    "Region",
    "Ring",
    "decode",
    "encode",
]

BBOX = 0
CIRCLE = 1
POLYGON = 2

Point: TypeAlias = tuple[float, float]
Ring: TypeAlias = tuple[Point, ...]

_MIN_RING = 4


@dataclass(frozen=True, slots=True)
class Bbox:
    """An upright box with its edges. In geographic space minx > maxx crosses the antimeridian."""

    minx: float
    miny: float
    maxx: float
    maxy: float

    def __post_init__(self) -> None:
        if not all(map(math.isfinite, (self.minx, self.miny, self.maxx, self.maxy))):
            raise Invalid(f"region.bbox: {self} holds a number that is not finite")
        if self.miny > self.maxy:
            raise Invalid(
                f"region.bbox: south {self.miny:.12g} is greater than north {self.maxy:.12g}; "
                "write [west, south, east, north]"
            )


@dataclass(frozen=True, slots=True)
class Circle:
    """Every position at most `radius` (metres, or units of the plane) away from `x, y`."""

    x: float
    y: float
    radius: float

    def __post_init__(self) -> None:
        if not all(map(math.isfinite, (self.x, self.y, self.radius))):
            raise Invalid(f"region.circle: {self} holds a number that is not finite")
        if self.radius < 0:
            raise Invalid(f"region.circle: radius {self.radius:.12g} is less than 0")


@dataclass(frozen=True, slots=True)
class Polygon:
    """All rings of all polygons of a Polygon or MultiPolygon, closed as given.

    A position on an edge is inside; of the others, those from which a ray crosses the rings an odd
    number of times. For valid geometry that is what holes and several polygons mean.
    """

    rings: tuple[Ring, ...]

    def __post_init__(self) -> None:
        if not self.rings:
            raise Invalid("region.coordinates: a polygon needs at least one ring")
        for ring in self.rings:
            if len(ring) < _MIN_RING or ring[0] != ring[-1]:
                raise Invalid(
                    "region.coordinates: a ring needs at least 4 positions, the last equal to the "
                    "first"
                )


Region: TypeAlias = Bbox | Circle | Polygon


def encode(region: Region) -> tuple[int, list[float]]:
    """The region as a code and flat numbers.

    Bbox: minx, miny, maxx, maxy. Circle: x, y, radius. Polygon: the number of rings, the number of
    points of each, then x, y of every point.
    """
    if isinstance(region, Bbox):
        return BBOX, [region.minx, region.miny, region.maxx, region.maxy]
    if isinstance(region, Circle):
        return CIRCLE, [region.x, region.y, region.radius]
    data = [float(len(region.rings))]
    data.extend(float(len(ring)) for ring in region.rings)
    for ring in region.rings:
        for point in ring:
            data.extend(point)
    return POLYGON, data


def decode(code: int, data: Iterable[float]) -> Region:
    """The region that `encode` wrote; `data` may be an array."""
    numbers = [float(number) for number in data]
    if code == BBOX:
        minx, miny, maxx, maxy = numbers
        return Bbox(minx, miny, maxx, maxy)
    if code == CIRCLE:
        x, y, radius = numbers
        return Circle(x, y, radius)
    if code != POLYGON:
        raise Invalid(f"region: {code!r} is not the code of a shape")
    n_rings = int(numbers[0])
    at = 1 + n_rings
    rings = []
    for size in numbers[1:at]:
        end = at + 2 * int(size)
        rings.append(tuple(zip(numbers[at:end:2], numbers[at + 1 : end : 2], strict=True)))
        at = end
    return Polygon(tuple(rings))
