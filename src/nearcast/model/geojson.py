"""Regions from the JSON of an event, refused with one clear line when they are not valid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import shapely

from nearcast.model.errors import Invalid, brief
from nearcast.model.shapes import Bbox, Circle, Point, Polygon, Region, Ring
from nearcast.model.space import Space

__all__ = ["region_from_json"]

_FORMS = ("bbox", "circle", "coordinates")
_WRITE = (
    'write {"bbox": [minx, miny, maxx, maxy]}, {"circle": {"at": [x, y], "radius": r}} '
    "or a GeoJSON Polygon or MultiPolygon"
)
_MIN_RING = 4

# What the validity check of GEOS calls things, and what the user reads instead.
_PLAIN_WORDS = {
    "Self-intersection": "edges cross or overlap",
    "Ring Self-intersection": "a ring touches itself",
    "Too few points in geometry component": "a ring has no area",
    "Hole lies outside shell": "a hole lies outside its outer ring",
    "Holes are nested": "a hole lies inside another hole",
    "Nested shells": "a polygon lies inside another polygon",
    "Interior is disconnected": "holes cut the polygon into pieces",
    "Duplicate Rings": "a ring occurs twice",
}


def region_from_json(space: Space, obj: object) -> Region:
    """The region that a decoded JSON value describes; raises Invalid. Unknown keys are ignored."""
    if not isinstance(obj, dict):
        raise Invalid(f"region: {brief(obj)} is not an object; {_WRITE}")
    # A null is what a Parquet column holds where a field is missing.
    forms = [form for form in _FORMS if obj.get(form) is not None]
    if not forms:
        raise Invalid(f"region: holds no shape; {_WRITE}")
    if forms == ["bbox", "coordinates"] and isinstance(obj.get("type"), str):
        forms = ["coordinates"]  # a GeoJSON geometry may carry its bounding box (RFC 7946, 5)
    if len(forms) > 1:
        raise Invalid(f"region: holds {' and '.join(forms)}; keep exactly one of them")
    if forms == ["bbox"]:
        return _bbox(space, obj["bbox"])
    if forms == ["circle"]:
        return _circle(space, obj["circle"])
    return _polygon(space, obj.get("type"), obj["coordinates"])


def _bbox(space: Space, value: object) -> Bbox:
    if not isinstance(value, list | tuple) or len(value) != 4:
        raise Invalid(f"region.bbox: {brief(value)} is not 4 numbers [minx, miny, maxx, maxy]")
    minx, miny, maxx, maxy = (_number("region.bbox", number) for number in value)
    _in_world(space, "region.bbox", (minx, maxx), (miny, maxy))
    if space is not Space.GEOGRAPHIC and minx > maxx:
        raise Invalid(
            f"region.bbox: minx {minx:.12g} is greater than maxx {maxx:.12g}; "
            "write [minx, miny, maxx, maxy]"
        )
    if space is not Space.GEOGRAPHIC and miny > maxy:
        raise Invalid(
            f"region.bbox: miny {miny:.12g} is greater than maxy {maxy:.12g}; "
            "write [minx, miny, maxx, maxy]"
        )
    return Bbox(minx, miny, maxx, maxy)


def _circle(space: Space, value: object) -> Circle:
    if not isinstance(value, dict) or "at" not in value or "radius" not in value:
        raise Invalid(
            f'region.circle: {brief(value)} is not an object {{"at": [x, y], "radius": r}}'
        )
    x, y = _position("region.circle.at", value["at"])
    _in_world(space, "region.circle.at", (x,), (y,))
    radius = _number("region.circle.radius", value["radius"])
    if radius < 0:
        raise Invalid(f"region.circle.radius: {radius:.12g} is less than 0")
    return Circle(x, y, radius)


def _polygon(space: Space, kind: object, coordinates: object) -> Polygon:
    if kind == "Polygon":
        polygons = [_rings("region.coordinates", coordinates)]
    elif kind == "MultiPolygon":
        polygons = [
            _rings(f"region.coordinates[{number}]", part)
            for number, part in enumerate(_filled_list("region.coordinates", coordinates))
        ]
    else:
        raise Invalid(f"region.type: {brief(kind)} is not Polygon or MultiPolygon")
    rings = tuple(ring for polygon in polygons for ring in polygon)
    for ring in rings:
        xs, ys = zip(*ring, strict=True)
        _in_world(space, "region.coordinates", (min(xs), max(xs)), (min(ys), max(ys)))
    _check_valid(polygons)
    return Polygon(rings)


def _rings(where: str, value: object) -> list[Ring]:
    return [
        _ring(f"{where}[{number}]", ring) for number, ring in enumerate(_filled_list(where, value))
    ]


def _ring(where: str, value: object) -> Ring:
    points = _filled_list(where, value)
    ring = tuple([_position(where, point) for point in points])
    if len(ring) < _MIN_RING:
        raise Invalid(f"{where}: a ring needs at least 4 positions, this one has {len(ring)}")
    if ring[0] != ring[-1]:
        raise Invalid(f"{where}: the ring is not closed; repeat its first position at the end")
    return ring


def _filled_list(where: str, value: object) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise Invalid(f"{where}: {brief(value)} is not a list")
    if not value:
        raise Invalid(f"{where}: is empty")
    return value


def _position(where: str, value: object) -> Point:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise Invalid(f"{where}: {brief(value)} is not a position [x, y]")
    x, y = value
    # Nearly every coordinate of a long ring takes this path.
    if type(x) is float and type(y) is float and math.isfinite(x) and math.isfinite(y):
        return x, y
    return _number(where, x), _number(where, y)


def _number(where: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Invalid(f"{where}: {brief(value)} is not a number")
    try:
        number = float(value)
    except OverflowError:  # A JSON integer may be larger than any float.
        number = math.inf
    if not math.isfinite(number):
        raise Invalid(f"{where}: {brief(value)} is not a finite number")
    return number


def _in_world(space: Space, where: str, xs: Sequence[float], ys: Sequence[float]) -> None:
    if space is not Space.GEOGRAPHIC:
        return
    for x in xs:
        if abs(x) > 180.0:
            raise Invalid(f"{where}: longitude {x:.12g} is outside [-180, 180]; longitude is first")
    for y in ys:
        if abs(y) > 90.0:
            raise Invalid(f"{where}: latitude {y:.12g} is outside [-90, 90]; longitude is first")


def _are_apart(parts: Sequence[Any]) -> bool:
    """Whether polygons are valid each, and share edges at most (as neighbouring districts do)."""
    if len(parts) < 2 or not shapely.is_valid(parts).all():
        return False
    one, other = shapely.STRtree(parts).query(parts, predicate="intersects")
    met = one < other
    shapes = np.array(parts, object)
    return bool(shapely.relate_pattern(shapes[one[met]], shapes[other[met]], "F********").all())


def _check_valid(polygons: list[list[Ring]]) -> None:
    try:
        # Overflow with huge coordinates shows in the verdict; NumPy need not warn as well.
        with np.errstate(all="ignore"):
            shape = shapely.MultiPolygon([(rings[0], rings[1:]) for rings in polygons])
            valid = shape.is_valid or _are_apart(shape.geoms)
            reason = "" if valid else shapely.is_valid_reason(shape)
    except shapely.errors.ShapelyError as error:
        raise Invalid(f"region.coordinates: not a valid polygon: {brief(str(error))}") from error
    if reason:
        what, _, where = reason.partition("[")
        plain = _PLAIN_WORDS.get(what, what.lower())
        place = f" near [{where.rstrip(']').replace(' ', ', ')}]" if where else ""
        raise Invalid(f"region.coordinates: not a valid polygon: {plain}{place}")
