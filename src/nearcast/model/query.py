"""The four kinds of query, standing or asked once (SPEC section 4)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from nearcast.model.errors import Invalid, brief
from nearcast.model.nodes import Expression
from nearcast.model.shapes import Region

__all__ = ["KnnQuery", "Query", "RangeQuery", "TermsQuery", "TopkQuery"]

# As for times: sums and differences of two must fit into 64 bits.
_LIMIT = 2**61


@dataclass(frozen=True, slots=True)
class RangeQuery:
    """Every object inside `region` whose keywords make `where` true."""

    kind: ClassVar[str] = "range"

    region: Region
    where: Expression


@dataclass(frozen=True, slots=True)
class KnnQuery:
    """The k objects nearest to x, y that make `where` true; with `window`, only those younger."""

    kind: ClassVar[str] = "knn"

    x: float
    y: float
    k: int
    where: Expression
    window: int | None = None
    """Milliseconds."""

    def __post_init__(self) -> None:
        _check_finite(self.x, self.y)
        _check_positive("query.k", self.k)
        if self.window is not None:
            _check_positive("query.window", self.window)


@dataclass(frozen=True, slots=True)
class TopkQuery:
    """The k objects of highest score of those that share a keyword; 1 - `alpha` weighs the text."""

    kind: ClassVar[str] = "topk"

    x: float
    y: float
    k: int
    keywords: tuple[str, ...]
    """Normalised, each once: in a query every keyword has tf 1."""
    alpha: float

    def __post_init__(self) -> None:
        _check_finite(self.x, self.y)
        _check_positive("query.k", self.k)
        # Written so that NaN fails too.
        if not 0.0 <= self.alpha <= 1.0:
            raise Invalid(f"query.alpha: {self.alpha!r} is outside [0, 1]")


@dataclass(frozen=True, slots=True)
class TermsQuery:
    """The k keywords held by most objects of the last `window` inside `region`, each `every`."""

    kind: ClassVar[str] = "terms"

    region: Region
    k: int
    window: int
    """Milliseconds."""
    every: int
    """Milliseconds."""

    def __post_init__(self) -> None:
        _check_positive("query.k", self.k)
        _check_positive("query.window", self.window)
        _check_positive("query.every", self.every)


Query: TypeAlias = RangeQuery | KnnQuery | TopkQuery | TermsQuery


def _check_positive(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise Invalid(f"{name}: {brief(value)} is not an integer")
    if value < 1:
        raise Invalid(f"{name}: {brief(value)} is less than 1")
    if value >= _LIMIT:
        raise Invalid(f"{name}: {brief(value)} is not less than 2**61")


def _check_finite(x: float, y: float) -> None:
    if not (math.isfinite(x) and math.isfinite(y)):
        raise Invalid(f"query.at: [{x!r}, {y!r}] is not two finite numbers")
