"""What the wire must know of a kind of query, whichever it is (`nearcast.kinds` has them)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.model.space import Space
from nearcast.model.standing import Needs

__all__ = ["Event", "Kinds", "PlainRows", "WireKind", "needs_of"]


@dataclass(frozen=True, slots=True)
class Event:
    """Something that a kind reports: of an object, or instead of one."""

    name: str
    value: bool = False  # whether notifications of it carry the kind's value
    sign: int = 0  # 1: the object enters a result, -1: it leaves one, 0: neither
    field: str = ""  # of an event without `object`: the field that holds what it reports, as JSON


class PlainRows(NamedTuple):
    """Queries read in their plainest form; rows that are not `plain` hold nothing."""

    plain: NDArray[np.bool_]
    flags: NDArray[np.int32]
    program_offsets: NDArray[np.int64]
    program: NDArray[np.uint64]
    cover_offsets: NDArray[np.int64]
    cover: NDArray[np.uint64]
    columns: Callable[[NDArray[np.int64]], list[pa.Array]]  # the kind's own, of some plain rows


class Answering(Protocol):
    """How asks of a kind are answered, as far as the wire must know."""

    @property
    def field(self) -> str:
        """The field of an answer that holds it."""


class WireKind(Protocol):
    """A kind as events come in and notifications go out."""

    @property
    def name(self) -> str:
        """Its name, as in `query.kind`."""

    @property
    def query(self) -> type[msgspec.Struct]:
        """The JSON form of its queries."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of its subscriptions."""

    @property
    def events(self) -> tuple[Event, ...]:
        """What it reports."""

    @property
    def needs(self) -> Needs:
        """What it needs of objects."""

    @property
    def answers(self) -> Answering | None:
        """How its asks are answered; None: it has none."""

    @property
    def window(self) -> object | None:
        """The window of the run, if its results begin with that whatever a subscribe says."""

    @property
    def firsts(self) -> object | None:
        """What `last` means for its new subscriptions; None: they do not look back."""

    @property
    def value(self) -> str:
        """The name of the value that events carry."""

    def compile(self, query: Any, space: Space) -> tuple[int, tuple[Any, ...]]:
        """(bits of the flags, values of its own columns); raises `Invalid`."""

    def read_plain(
        self, data: NDArray[np.uint8], offsets: NDArray[np.int64], space: Space
    ) -> PlainRows | None:
        """Many queries at once, those in their plainest form."""


Kinds: TypeAlias = Mapping[str, WireKind]


def needs_of(kinds: Kinds, in_use: Collection[str] | None = None) -> Needs:
    """What the kinds in use need of objects, all together; None: all of them may be in use."""
    needs = Needs.NOTHING
    for name in kinds if in_use is None else in_use:
        needs |= kinds[name].needs
    return needs
