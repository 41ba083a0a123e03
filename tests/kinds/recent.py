"""A kind that keeps objects (`Kind.keeps`): `recent` says how many objects came before each match.

It counts the objects of the region that the subscription saw within `window` milliseconds. Its
definition remembers them; the index `past` looks them up in the store that each shard keeps.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, ClassVar

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index.base import LocalIndex
from nearcast.index.scan import Scan
from nearcast.kernels.slots import CONJUNCTION, REGION_CODE
from nearcast.kinds import KINDS as NEARCASTS
from nearcast.kinds import Event, Examples, Kind, Needs
from nearcast.kinds.base import MakeIndex, Places
from nearcast.model import reading
from nearcast.model.expression import Expression, evaluate
from nearcast.model.predicate import contains
from nearcast.model.region import decode, region_from_json
from nearcast.model.shapes import Region
from nearcast.model.space import Space
from nearcast.model.standing import Change, Seen, Standing
from nearcast.objects.base import Queries, Regions, Slicing
from nearcast.wire.changes import Changes
from nearcast.wire.programs import expression_of
from nearcast.wire.shapes import Count as Positive
from nearcast.wire.tables import NEVER, REGION_COLUMNS, ObjectColumns

Json = dict[str, Any]
RANGE = NEARCASTS["range"]


class RecentQuery(msgspec.Struct, tag_field="kind", tag="recent"):
    """`{"kind": "recent", "region": …, "where": …, "window": 100}`."""

    region: Json
    window: Positive
    where: str | None = None


@dataclass(slots=True)
class Recent(Standing):
    """How many objects of the last `window` milliseconds matched before each one that does."""

    space: Space
    region: Region
    where: Expression
    window: int
    start: int
    row: Json = field(default_factory=dict)  # as stores read region and `where`
    times: list[int] = field(default_factory=list)
    past: Any = None  # a store to look at, instead of the memory

    def matches(self, o: Seen) -> bool:
        return evaluate(self.where, o.words) and contains(self.space, self.region, o.x, o.y)

    def offer(self, o: Seen) -> Iterable[Change]:
        if self.past is None:
            found = sum(o.time - self.window < time <= o.time for time in self.times)
            self.times.append(o.time)
        else:
            found = self._look_up(o)
        yield Change("counted", o.name, o.time, float(found))

    def _look_up(self, o: Seen) -> int:
        """The same from the store: no object with a time from `start` on came before it."""
        program, cover = self.row["program"], self.row["cover"]
        code, conjunction = self.row["flags"] & REGION_CODE, self.row["flags"] & CONJUNCTION != 0
        numbers, boxes = self.row["region"], self.row["boxes"]
        queries = Queries(
            np.array([max(o.time - self.window, self.start - 1)]),
            np.array([o.time]),
            np.array([o.rank]),
            np.array([0, len(program)]),
            np.array(program, np.uint64),
            np.array([0, len(cover)]),
            np.array(cover, np.uint64),
            np.array([conjunction]),
        )
        region = Regions(
            np.array([code]),
            np.array([0, len(numbers)]),
            np.array(numbers, np.float64),
            np.array([0, len(boxes)]),
            np.array(boxes, np.float64),
        )
        return len(self.past.within(queries, region, np.zeros(1, np.int64)).handles)

    def held(self) -> Json | None:
        return {"times": self.times} if self.times else None

    def hold(self, row: Json) -> None:
        self.times = list(row["times"])


class FromPast(Scan):
    """The definition, with the store in place of its memory."""

    name = "past"

    def reach(self) -> int:
        return max((sub.standing.window for sub in self._subs), default=0)  # type: ignore[attr-defined]

    def match(
        self, objects: ObjectColumns, clock: NDArray[np.int64], now: int, net: bool = False
    ) -> Changes:
        for sub in self._subs:
            sub.standing.past = self.past  # type: ignore[attr-defined]
        found = super().match(objects, clock, now, net)
        for sub in self._subs:
            sub.standing.past = None  # type: ignore[attr-defined] # it is stored
        return found


def _query(box: list[float], window: int = 100) -> Json:
    return {"kind": "recent", "region": {"bbox": box}, "window": window}


def _draw(rng: Random, places: Places) -> Json:
    return {
        "kind": "recent",
        "region": places.region(rng),
        "window": rng.choice((1, 2, 5, 10, 40, 100)),
    }


def _busy(space: Space) -> list[Json]:
    world = [-180.0, -90.0, 180.0, 90.0]
    if space is Space.PLANAR:
        world = [-1e300, -1e300, 1e300, 1e300]
    return [_query(world, window) for window in (3, 30, 1000)]


_ONE = _query([-8, -8, 8, 8])


class RecentKind(Kind):
    """How many came before."""

    name = "recent"
    number = 1002
    query = RecentQuery
    columns = pa.schema([*REGION_COLUMNS, ("window", pa.int64())])
    results = pa.schema([("times", pa.large_list(pa.int64()))])
    events = (Event("counted", value=True),)
    value = "count"
    needs = Needs.COUNTS | Needs.RANK
    keeps = True
    slicing = Slicing(delta_ms=20, least=8, most=64)
    routers: ClassVar[dict[str, str]] = {"hash": "past", "random": "past", "broadcast": "past"}
    default = "hash+past"
    reason = "there is no other index"
    examples = Examples(
        everything=_ONE,
        draw=_draw,
        warm=(_ONE,),
        busy=_busy,
        bad=((_ONE, "window", [0, -1, 1.5, "1", None]), (_ONE, "region", [None, {}])),
    )

    def index_classes(self) -> list[type[LocalIndex]]:
        return [Scan, FromPast]

    def index(self, name: str) -> MakeIndex:
        return partial(FromPast, self) if name == FromPast.name else super().index(name)

    def compile(self, query: Any, space: Space) -> tuple[int, tuple[Any, ...]]:
        bits, region = RANGE.compile(query, space)
        return bits, (*region, query.window)

    def standing(self, row: Json, space: Space) -> Recent:
        region = decode(row["flags"] & REGION_CODE, row["region"])
        where = expression_of(row["program"])
        return Recent(space, region, where, row["window"], row["time"], row)

    def read(self, query: Json, space: Space) -> Recent:
        region = region_from_json(space, reading.field(query, "region", dict))
        window = reading.count(query, "window")
        return Recent(space, region, reading.where(query), window, NEVER)


KINDS = [RecentKind()]
