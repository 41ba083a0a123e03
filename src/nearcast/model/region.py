"""Regions: what they are, where they come from, and the boxes around them.

The module to import from; `shapes` holds the values and their flat form, `geojson` reads and checks
them, `extent` bounds them. Whether a position is inside is decided by `geometry.region_contains`.
"""

from __future__ import annotations

from nearcast.model.extent import Box, outer_boxes
from nearcast.model.geojson import region_from_json
from nearcast.model.shapes import (
    BBOX,
    CIRCLE,
    POLYGON,
    Bbox,
    Circle,
    Point,
    Polygon,
    Region,
    Ring,
    decode,
    encode,
)

__all__ = [
    "BBOX",
    "CIRCLE",
    "POLYGON",
    "Bbox",
    "Box",
    "Circle",
    "Point",
    "Polygon",
    "Region",
    "Ring",
    "decode",
    "encode",
    "outer_boxes",
    "region_from_json",
]
