"""`range`: every object inside `region` whose keywords make `where` true (docs/spec.md, 4)."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.kernels.slots import CONJUNCTION, REGION_CODE, REPORTS
from nearcast.kinds.answers import InOrderOfTime
from nearcast.kinds.base import Event, Examples, Kind
from nearcast.kinds.firsts import EachMatches
from nearcast.kinds.range.definition import InRegion
from nearcast.kinds.range.examples import EXAMPLES
from nearcast.kinds.range.plain_query import read_queries
from nearcast.kinds.regions import region_columns
from nearcast.model import reading
from nearcast.model.region import BBOX, decode, region_from_json
from nearcast.model.space import Space
from nearcast.wire.kind import PlainRows
from nearcast.wire.programs import expression_of
from nearcast.wire.tables import REGION_COLUMNS, list_column

__all__ = ["Range", "RangeQuery"]

_REALS = REGION_COLUMNS.field("region").type
_PLANNED = (
    "ps2stream", "text-frequency", "text-hypergraph", "text-metric", "space-grid", "space-kd",
    "space-r", "tornado", "tornado-text", "tornado-uniform", "sstd", "sstd-quadtree", "sstd-text",
)  # fmt: skip


class RangeQuery(msgspec.Struct, tag_field="kind", tag="range"):
    """A `range` query in JSON."""

    region: dict[str, Any]
    where: str | None = None


class Range(Kind):
    """Objects inside a region."""

    name = "range"
    number = 0
    query = RangeQuery
    columns = REGION_COLUMNS
    events = (Event("match"),)
    answers = InOrderOfTime()
    firsts = EachMatches()
    shape = "regions"
    routers: ClassVar[dict[str, str]] = {
        "broadcast": "scan",
        "hash": "pyramid",
        "random": "pyramid",
        **dict.fromkeys(_PLANNED, "pyramid"),
    }
    default = "hash+pyramid"
    reason = (
        "needs no plan, 372,624 tuples/s through Spark at 1,000,000 Q2 on two cores; tornado "
        "249,134, ps2stream 204,841 with their plans (bench range-index --spark); pyramid alone "
        "1.72 million objects/s, 291 bytes; gi2 0.26, 266; fast 0.05, 215 (bench range-index)"
    )
    examples: ClassVar[Examples] = EXAMPLES

    def compile(self, query: Any, space: Space) -> tuple[int, tuple[Any, ...]]:
        """(the code of the region, its numbers and outer boxes)."""
        return region_columns(query.region, space)

    def read_plain(
        self, data: NDArray[np.uint8], offsets: NDArray[np.int64], space: Space
    ) -> PlainRows:
        """Boxes, with words joined by only AND or only OR: most of what comes by the million."""
        found = read_queries(data, offsets)
        west, south, east, north = found.boxes.T
        inside = (west <= east) & (south <= north)
        if space is Space.GEOGRAPHIC:
            inside &= (west > -180) & (east < 180) & (south >= -90) & (north <= 90)
        both = REPORTS | CONJUNCTION | BBOX

        def columns(rows: NDArray[np.int64]) -> list[pa.Array]:
            ends = np.arange(0, 4 * len(rows) + 1, 4)
            none = np.zeros(len(rows) + 1, np.int64), np.empty(0)
            return [
                list_column(ends, found.boxes[rows].ravel(), _REALS),
                list_column(*none, _REALS),
            ]

        return PlainRows(
            found.plain & inside,
            np.where(found.conjunction, both, REPORTS | BBOX).astype(np.int32),
            found.program_offsets,
            found.program,
            found.cover_offsets,
            found.cover,
            columns,
        )

    def standing(self, row: dict[str, Any], space: Space) -> InRegion:
        """From a row of REGIONS."""
        region = decode(row["flags"] & REGION_CODE, row["region"])
        return InRegion(space, region, expression_of(row["program"]))

    def read(self, query: dict[str, Any], space: Space) -> InRegion:
        """From JSON."""
        region = region_from_json(space, reading.field(query, "region", dict))
        return InRegion(space, region, reading.where(query))
