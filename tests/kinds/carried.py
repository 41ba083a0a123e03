"""A kind that needs all that objects can carry: `carried` reports a number made of it.

The number is 1000 times the rank of the object, plus a sum of its keywords that changes with their
texts, with how often each occurs, and with the order in which they first occur.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

import msgspec

from nearcast.kinds import KINDS as NEARCASTS
from nearcast.kinds import Event, Examples, Kind, Needs
from nearcast.kinds.base import Places
from nearcast.kinds.range.definition import InRegion
from nearcast.model.space import Space
from nearcast.model.standing import Change, Seen
from nearcast.wire.tables import REGION_COLUMNS

Json = dict[str, Any]
RANGE = NEARCASTS["range"]


class CarriedQuery(msgspec.Struct, tag_field="kind", tag="carried"):
    """`{"kind": "carried", "region": …, "where": …}`."""

    region: Json
    where: str | None = None


def number_of(rank: int, words: Iterable[tuple[str, int]]) -> float:
    """What is reported of an object with these keywords and counts."""
    parts = [zlib.crc32(text.encode()) % 89 * n * tf for n, (text, tf) in enumerate(words, 1)]
    return float(rank * 1000 + sum(parts) % 1000)


@dataclass(slots=True)
class Carrying(InRegion):
    """Every match, with the number of the object."""

    def offer(self, o: Seen) -> Iterable[Change]:
        words = [(o.text(word), tf) for word, tf in o.words.items()]
        yield Change("seen", o.name, o.time, number_of(o.rank, words))


def _query(region: Json, **fields: Any) -> Json:
    return {"kind": "carried", "region": region, **fields}


def _draw(rng: Random, places: Places) -> Json:
    return _query(places.region(rng))


def _busy(space: Space) -> list[Json]:
    return [{**query, "kind": "carried"} for query in RANGE.examples.busy(space)]


_ONE = _query({"bbox": [-8, -8, 8, 8]})


class Carried(Kind):
    """Objects of a region with what they carry."""

    name = "carried"
    number = 1001
    query = CarriedQuery
    columns = REGION_COLUMNS
    events = (Event("seen", value=True),)
    value = "number"
    needs = Needs.COUNTS | Needs.TEXTS | Needs.RANK
    routers: ClassVar[dict[str, str]] = dict.fromkeys(RANGE.routers, "scan")
    default = "hash+scan"
    reason = "there is no other index"
    examples = Examples(
        everything=_ONE,
        draw=_draw,
        warm=(_ONE,),
        busy=_busy,
        bad=((_ONE, "region", [None, {}]),),
    )

    def compile(self, query: Any, space: Space) -> tuple[int, tuple[Any, ...]]:
        return RANGE.compile(query, space)

    def standing(self, row: Json, space: Space) -> Carrying:
        return _carrying(RANGE.standing(row, space))

    def read(self, query: Json, space: Space) -> Carrying:
        return _carrying(RANGE.read(query, space))


def _carrying(standing: Any) -> Carrying:
    return Carrying(standing.space, standing.region, standing.where)


KINDS = [Carried()]
