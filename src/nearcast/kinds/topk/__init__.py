"""`topk`: the k objects of highest score in the run's window (docs/spec.md, section 4)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, cast

import msgspec
from msgspec import Meta

from nearcast.index.scan import Scan
from nearcast.index.tops.base import TopIndex
from nearcast.index.tops.policies import POLICIES, policy
from nearcast.kinds.answers import BestFirst
from nearcast.kinds.base import Event, Examples, Kind, MakeIndex, Needs, Variant
from nearcast.kinds.topk.definition import Best
from nearcast.kinds.topk.examples import EXAMPLES
from nearcast.model import reading
from nearcast.model.errors import Invalid, NearcastError, brief
from nearcast.model.frame import Frame, Window
from nearcast.model.space import EARTH_RADIUS_M, Space, check_position
from nearcast.model.words import normalise
from nearcast.wire.programs import expression_of
from nearcast.wire.shapes import Count, Position
from nearcast.wire.tables import BEST_COLUMNS, TOP_COLUMNS

__all__ = ["Topk", "TopkQuery"]

_FARTHEST_M = math.pi * EARTH_RADIUS_M


class TopkQuery(msgspec.Struct, tag_field="kind", tag="topk"):
    """A `topk` query in JSON."""

    at: Position
    k: Count
    keywords: list[str]
    alpha: Annotated[float, Meta(ge=0, le=1)]
    maxdist: Annotated[float, Meta(gt=0)] | None = None
    where: str | None = None


@dataclass(frozen=True)
class Topk(Kind):
    """The objects of highest score."""

    name = "topk"
    number = 2
    query = TopkQuery
    columns = TOP_COLUMNS
    results = BEST_COLUMNS
    events = (Event("enter", value=True, sign=1), Event("leave", sign=-1))
    value = "score"
    needs = Needs.COUNTS | Needs.RANK
    answers = BestFirst()
    shape = "tops"
    frame_options = frozenset({"window", "maxdist", "idf"})
    keeps = True
    from_start = True
    routers: ClassVar[dict[str, str]] = dict.fromkeys(
        ("hash", "random", "broadcast", "skype-hash", "skype-location"), "reach"
    )
    default = "hash+reach"
    reason = "the only index that does not look at every subscription"
    examples: ClassVar[Examples] = EXAMPLES

    frame: Frame = Frame()  # noqa: RUF009 -- frozen

    def of_run(self, frame: Frame) -> Topk:
        """With its window and its weights of keywords."""
        return Topk(frame)

    @property
    def window(self) -> Window:
        """Every object of it counts."""
        return self.frame.window

    def index(self, name: str) -> MakeIndex:
        """What makes the index of that name, or of INDEX/POLICY; it knows what the run says."""
        index, given, how = name.partition("/")
        made = super().index(index)
        if index == Scan.name:
            if given:
                raise NearcastError(f"strategy: {index} keeps everything; write {index} alone")
            return made
        chosen = partial(cast("type[TopIndex]", made), frame=self.frame)
        if not given:
            return chosen
        policy(how)  # refuses what there is not
        return lambda space, storage: chosen(space, storage, policy=policy(how))

    @property
    def variants(self) -> Mapping[str, type[Variant]]:
        """How deep buffers are (`nearcast.index.tops.policies`)."""
        return POLICIES

    def compile(self, query: Any, space: Space) -> tuple[int, tuple[Any, ...]]:
        """(nothing, the centre, k, and what a score is made of)."""
        check_position(space, *query.at)
        keywords = _keywords(query.keywords)
        return 0, (*query.at, query.k, keywords, query.alpha, self._maxdist(query.maxdist, space))

    def _maxdist(self, given: float | None, space: Space) -> float:
        """The query's, or else the run's."""
        if given is not None:
            if not (0.0 < given < math.inf):
                raise Invalid(f"query.maxdist: {brief(given)} is not a number above 0")
            return given
        if self.frame.maxdist is not None:
            return self.frame.maxdist
        if space is Space.GEOGRAPHIC:
            return _FARTHEST_M
        raise Invalid("query.maxdist: missing; a plane has no farthest distance: write it here, or "
                      "give the run --maxdist")  # fmt: skip

    def standing(self, row: dict[str, Any], space: Space) -> Best:
        """From a row of TOPS."""
        own = (row["x"], row["y"], row["k"], row["keywords"], row["alpha"], row["maxdist"])
        return Best(space, self.frame, *own, expression_of(row["program"]))

    def read(self, query: dict[str, Any], space: Space) -> Best:
        """From JSON."""
        x, y = reading.position(query.get("at"), space)
        k, alpha = reading.count(query, "k"), _number(query, "alpha")
        if not 0.0 <= alpha <= 1.0:
            raise Invalid(f"query.alpha: {brief(alpha)} is not from 0 to 1")
        given = None if query.get("maxdist") is None else _number(query, "maxdist")
        maxdist = self._maxdist(given, space)
        entries = reading.field(query, "keywords", list)
        if not all(isinstance(entry, str) for entry in entries):
            raise Invalid("query.keywords: every entry must be a string")
        where = reading.where(query)
        return Best(space, self.frame, x, y, k, _keywords(entries), alpha, maxdist, where)


def _keywords(entries: list[str]) -> list[str]:
    """What a subscription lists, each keyword once."""
    keywords = list(dict.fromkeys(filter(None, map(normalise, entries))))
    if not keywords:
        raise Invalid("query.keywords: there is no keyword; give at least one")
    return keywords


def _number(query: dict[str, Any], name: str) -> float:
    value = query.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise Invalid(f"query.{name}: {brief(value)} is not a number")
    try:
        return float(value)
    except OverflowError:
        raise Invalid(f"query.{name}: {brief(value)} is too large") from None
