"""A kind of query that is not nearcast's: `count` says how many objects matched so far.

It is reported at every hundredth match, or at every n-th with `every`. One file and `--plugin` (or
`Engine(plugins=...)`) are all that it takes: `tests/kinds/test_count.py` runs it through everything
that a kind of nearcast goes through.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

import msgspec
import pyarrow as pa

from nearcast.kernels.slots import REGION_CODE
from nearcast.kinds import Event, Examples, Kind, Story
from nearcast.kinds.base import Places
from nearcast.model import reading
from nearcast.model.expression import Expression, evaluate
from nearcast.model.predicate import contains
from nearcast.model.region import decode, encode, region_from_json
from nearcast.model.shapes import Region
from nearcast.model.space import Space
from nearcast.model.standing import Change, Seen, Standing
from nearcast.wire.programs import expression_of
from nearcast.wire.shapes import Count as Positive

Json = dict[str, Any]


class CountQuery(msgspec.Struct, tag_field="kind", tag="count"):
    """`{"kind": "count", "region": …, "where": …, "every": 100}`."""

    region: Json
    where: str | None = None
    every: Positive = 100


@dataclass(slots=True)
class Counting(Standing):
    """How many objects matched, reported at every n-th of them."""

    space: Space
    region: Region
    where: Expression
    every: int
    count: int = 0

    def matches(self, o: Seen) -> bool:
        return evaluate(self.where, o.words) and contains(self.space, self.region, o.x, o.y)

    def offer(self, o: Seen) -> Iterable[Change]:
        self.count += 1
        if self.count % self.every == 0:
            yield Change("reached", o.name, o.time, float(self.count))

    def held(self) -> Json | None:
        return {"count": self.count} if self.count else None

    def hold(self, row: Json) -> None:
        self.count = row["count"]


def _query(every: int, box: list[float], **fields: Any) -> Json:
    return {"kind": "count", "region": {"bbox": box}, "every": every, **fields}


def _draw(rng: Random, places: Places) -> Json:
    return {"kind": "count", "region": places.region(rng), "every": rng.choice((1, 1, 2, 3))}


def _busy(space: Space) -> list[Json]:
    box = (
        [-180.0, -90.0, 180.0, 90.0]
        if space is Space.GEOGRAPHIC
        else [-1e300, -1e300, 1e300, 1e300]
    )
    return [_query(2, box), _query(3, box, where="a OR NOT b")]


def _stories(seed: int) -> Iterator[Story]:
    objects = [
        {"op": "publish", "id": f"o{n}", "time": n, "at": [seed % 3, 0]} for n in range(1, 251)
    ]
    hundreds = {"op": "subscribe", "id": "s", "time": 0, "query": _query(100, [-8, -8, 8, 8])}
    del hundreds["query"]["every"]  # type: ignore[attr-defined]
    reported = [("s", "reached", f"o{n}", n) for n in (100, 200)]
    yield Story("every hundredth", [hundreds, *objects], reported, cuts=((), (50, 120), range(251)))


_ONE = _query(1, [-8, -8, 8, 8])


class Count(Kind):
    """How many objects of a region matched."""

    name = "count"
    number = 1000
    query = CountQuery
    columns = pa.schema([("region", pa.large_list(pa.float64())), ("every", pa.int64())])
    results = pa.schema([("count", pa.int64())])
    events = (Event("reached", value=True),)
    value = "count"
    routers: ClassVar[dict[str, str]] = {"hash": "scan", "random": "scan", "broadcast": "scan"}
    default = "hash+scan"
    reason = "there is no other index"
    examples = Examples(
        everything=_ONE,
        draw=_draw,
        warm=(_ONE,),
        busy=_busy,
        bad=((_ONE, "every", [0, -1, 1.5, "1"]), (_ONE, "region", [None, {}])),
        stories=_stories,
    )

    def compile(self, query: Any, space: Space) -> tuple[int, tuple[Any, ...]]:
        code, numbers = encode(region_from_json(space, query.region))
        return code, (numbers, query.every)

    def standing(self, row: Json, space: Space) -> Counting:
        region = decode(row["flags"] & REGION_CODE, row["region"])
        return Counting(space, region, expression_of(row["program"]), row["every"])

    def read(self, query: Json, space: Space) -> Counting:
        region = region_from_json(space, reading.field(query, "region", dict))
        every = 100 if query.get("every") is None else reading.count(query, "every")
        return Counting(space, region, reading.where(query), every)


KINDS = [Count()]
