"""The columns of a region, for kinds whose queries have one."""

from __future__ import annotations

import sys
from typing import Any

from nearcast.model.region import BBOX, encode, outer_boxes, region_from_json
from nearcast.model.space import Space

__all__ = ["region_columns"]

_NONE: list[float] = []
_LARGEST = sys.float_info.max


def region_columns(region: dict[str, Any], space: Space) -> tuple[int, tuple[list[float], ...]]:
    """(the code of a region, its REGION_COLUMNS); raises `Invalid`."""
    box = region.get("bbox")
    if len(region) == 1 and type(box) is list and len(box) == 4 and _is_plain(box, space):
        return BBOX, ([float(v) for v in box], _NONE)
    shape = region_from_json(space, region)
    code, data = encode(shape)
    boxes = [v for b in outer_boxes(space, shape) for v in b]
    return code, (data, _NONE if code == BBOX and boxes == data else boxes)


def _is_plain(box: list[Any], space: Space) -> bool:
    """Whether a bbox needs no second look: the common case, in a twentieth of the time."""
    a, b, c, d = box
    for v in box:
        if type(v) is not float and type(v) is not int:
            return False
    if space is Space.GEOGRAPHIC:
        return bool(-180 < a <= c < 180 and -90 <= b <= d <= 90)
    # A JSON integer may be larger than any float: the second look refuses it.
    inside = -_LARGEST <= a <= c <= _LARGEST and -_LARGEST <= b <= d <= _LARGEST
    return bool(inside)
