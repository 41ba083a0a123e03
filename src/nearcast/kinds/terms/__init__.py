"""`terms`: the k keywords that most objects of a region hold, every so often (docs/spec.md, 4)."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from nearcast.index.base import LocalIndex
from nearcast.index.scan import Scan
from nearcast.kernels.hashing import word_hash
from nearcast.kernels.slots import REGION_CODE
from nearcast.kinds.base import Event, Examples, Kind, MakeIndex, Needs
from nearcast.kinds.regions import region_columns
from nearcast.kinds.terms.answers import MostHeldWords
from nearcast.kinds.terms.cheapest import Cheapest
from nearcast.kinds.terms.definition import MostHeld
from nearcast.kinds.terms.examples import EXAMPLES
from nearcast.kinds.terms.firsts import CountedLater
from nearcast.kinds.terms.groups import Groups
from nearcast.kinds.terms.rows import COLUMNS, RESULTS
from nearcast.kinds.terms.tables import Tables
from nearcast.model import reading
from nearcast.model.errors import Invalid
from nearcast.model.region import decode, region_from_json
from nearcast.model.space import Space
from nearcast.model.words import normalise
from nearcast.objects.base import Slicing
from nearcast.wire.programs import expression_of
from nearcast.wire.shapes import Count

__all__ = ["Terms", "TermsQuery"]


class TermsQuery(msgspec.Struct, tag_field="kind", tag="terms"):
    """A `terms` query in JSON."""

    region: dict[str, Any]
    k: Count
    window: Count
    every: Count
    where: str | None = None
    exclude: list[str] | None = None

    only_standing: ClassVar[tuple[str, ...]] = ("window", "every")


class Terms(Kind):
    """The keywords that most objects of a region hold."""

    name = "terms"
    number = 3
    query = TermsQuery
    columns = COLUMNS
    results = RESULTS
    events = (Event("terms", field="terms"),)
    needs = Needs.TEXTS | Needs.COUNTS | Needs.RANK
    keeps = True
    after_objects = True
    slicing = Slicing(most=1 << 22, part=3)  # large slices: a region is then a few tables
    answers = MostHeldWords()
    firsts = CountedLater()
    routers: ClassVar[dict[str, str]] = {
        "broadcast": "scan",
        "hash": "cheapest",
        "random": "cheapest",
    }
    default = "hash+cheapest"
    reason = (
        "reckons per group what costs less: 90 ns per object that a moment counts, or 400 ns per "
        "table that an object changes; 1.71 s where tables took 1.73 and groups 1.86 (bench terms)"
    )
    examples: ClassVar[Examples] = EXAMPLES

    def index_classes(self) -> list[type[LocalIndex]]:
        """The scan, and what only this kind has."""
        return [Scan, Tables, Groups, Cheapest]

    def index(self, name: str) -> MakeIndex:
        """What makes the index of that name."""
        own = {index.name: index for index in (Tables, Groups, Cheapest)}
        return own[name] if name in own else super().index(name)

    def compile(self, query: Any, space: Space) -> tuple[int, tuple[Any, ...]]:
        """(the code of the region; the region, k, window, every and excluded words)."""
        code, region = region_columns(query.region, space)
        exclude = sorted({word_hash(word) for word in _excluded(query.exclude or [])})
        return code, (*region, query.k, query.window or 0, query.every or 0, exclude)

    def standing(self, row: dict[str, Any], space: Space) -> MostHeld:
        """From a row of its table."""
        region = decode(row["flags"] & REGION_CODE, row["region"])
        where, exclude = expression_of(row["program"]), frozenset(row["exclude"])
        return MostHeld(space, region, where, row["k"], exclude, row["window"], row["every"])

    def read(self, query: dict[str, Any], space: Space) -> MostHeld:
        """From JSON; `window` and `every` may be missing (in asks)."""
        region = region_from_json(space, reading.field(query, "region", dict))
        exclude = reading.optional(query, "exclude", list) or []
        if not all(isinstance(entry, str) for entry in exclude):
            raise Invalid("query.exclude: every entry must be a string")
        window, every = (
            0 if query.get(name) is None else reading.count(query, name)
            for name in TermsQuery.only_standing
        )
        k = reading.count(query, "k")
        return MostHeld(space, region, reading.where(query), k, _excluded(exclude), window, every)


def _excluded(entries: list[str]) -> frozenset[str]:
    """Entries as keywords; those that are blank mean nothing."""
    return frozenset(word for entry in entries if (word := normalise(entry)))
