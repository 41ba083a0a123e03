"""`knn`: the k nearest objects whose keywords make `where` true (docs/spec.md, section 4)."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from nearcast.kinds.answers import NearestFirst
from nearcast.kinds.base import Event, Examples, Kind
from nearcast.kinds.firsts import NearestOfAll
from nearcast.kinds.knn.definition import Nearest
from nearcast.kinds.knn.examples import EXAMPLES
from nearcast.model import reading
from nearcast.model.space import Space, check_position
from nearcast.wire.programs import expression_of
from nearcast.wire.shapes import Count, Position
from nearcast.wire.tables import BALL_COLUMNS, NEAREST_COLUMNS

__all__ = ["Knn", "KnnQuery"]


class KnnQuery(msgspec.Struct, tag_field="kind", tag="knn"):
    """A `knn` query in JSON."""

    at: Position
    k: Count
    where: str | None = None
    window: Count | None = None


class Knn(Kind):
    """The nearest objects."""

    name = "knn"
    number = 1
    query = KnnQuery
    columns = BALL_COLUMNS
    results = NEAREST_COLUMNS
    events = (Event("enter", value=True, sign=1), Event("leave", sign=-1))
    value = "distance"
    answers = NearestFirst()
    firsts = NearestOfAll()
    shape = "balls"
    routers: ClassVar[dict[str, str]] = {
        "broadcast": "scan",
        "hash": "pyramid",
        "random": "pyramid",
        "kop": "inverted",
        "sop": "rect-inverted",
        "dkm-sks": "pyramid",
    }
    default = "hash+pyramid"
    reason = (
        "needs no plan; 1.2 to 1.6 candidates per change of a result, the paper's grid 281 "
        "(bench dkm-sks)"
    )
    examples: ClassVar[Examples] = EXAMPLES

    def compile(self, query: Any, space: Space) -> tuple[int, tuple[Any, ...]]:
        """(nothing, the centre, k and the window)."""
        check_position(space, *query.at)
        return 0, (*query.at, query.k, query.window or 0)

    def standing(self, row: dict[str, Any], space: Space) -> Nearest:
        """From a row of BALLS."""
        where = expression_of(row["program"])
        return Nearest(space, row["x"], row["y"], row["k"], where, row["window"] or None)

    def read(self, query: dict[str, Any], space: Space) -> Nearest:
        """From JSON."""
        x, y = reading.position(query.get("at"), space)
        window = None if query.get("window") is None else reading.count(query, "window")
        return Nearest(space, x, y, reading.count(query, "k"), reading.where(query), window)
