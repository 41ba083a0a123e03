"""What a subscription means, in plain Python: the definition that every kind gives of itself.

A kind defines its result once, as a `Standing`. The plain scan (`index.scan`) and the oracle
(`testing.oracle`) both work by it: the scan with hashed words behind the wire, the oracle with
keywords as text, straight from the events. Everything compiled is compared with these two.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["FOREVER", "Change", "Needs", "Seen", "Standing"]

FOREVER = 2**62
"""Later than any time."""


class Needs(enum.Flag):
    """What a kind needs of objects besides place, time, id and the set of their words."""

    NOTHING = 0
    COUNTS = enum.auto()  # how often an object holds each word (tf), and which word comes first
    TEXTS = enum.auto()  # the words themselves, not only their hashes
    RANK = enum.auto()  # the number of an object in object order, over the whole run
    FIELDS = enum.auto()  # text and keywords as published, for answers


class Seen(NamedTuple):
    """An object as a subscription sees it."""

    name: Any
    """Its id. Changes hand it on as it is."""
    time: int
    x: float
    y: float
    words: Mapping[Any, int]
    """Its keywords (text or hash) and how often it holds each, in the order of their first use.

    Behind the wire each counts once, in any order, unless the kind needs COUNTS.
    """
    now: int
    """How far time has come: the latest time of any event so far."""
    rank: int = -1
    """Its number in object order, counted over the whole run; -1: the kind does not need RANK."""
    texts: Mapping[Any, str] = {}
    """The texts of hashes of words, if the kind needs TEXTS."""

    def text(self, word: Any) -> str:
        """One of its keywords as text; for kinds that need TEXTS."""
        return word if isinstance(word, str) else self.texts[word]


class Change(NamedTuple):
    """A change of a result, before it becomes a notification."""

    event: str
    object: Any
    """Its id; or, of an event with a field of its own, what that reports, ready for JSON."""
    time: int
    value: float | None = None


class Standing(ABC):
    """One subscription and what it holds. The caller handles starts, ends and expiry.

    A caller of `begin`, `push`, `offer` or `pass_moment` must consume all that it returns: these
    may be generators.
    """

    def starts(self, time: int) -> None:  # noqa: B027 -- to most it does not matter
        """Called first: the time of the subscription."""

    @abstractmethod
    def matches(self, o: Seen) -> bool:
        """Whether the object is a candidate for the result. Time is not looked at."""

    @abstractmethod
    def offer(self, o: Seen) -> Iterable[Change]:
        """What an object changes that the subscription sees and that matches."""

    def begin(self, past: Sequence[Seen], time: int) -> Iterable[Change]:
        """What the past means for the result; called once, before anything is offered.

        `past` are the matching objects that the subscription sees and that were handled before it,
        in object order; `time` is when it begins.
        """
        raise NotImplementedError(f"{type(self).__name__} begins without a past")

    def push(self, o: Seen) -> Iterable[Change]:
        """What any object published changes, matching or not, before it is offered.

        It may push others out of the run's window. Only of kinds that have one (`Kind.window`).
        """
        del o
        return ()

    def answer(self, seen: Sequence[Seen], limit: int | None) -> list[tuple[Seen, float | None]]:
        """The answer to an ask with this query: objects with their values, in order.

        `seen` are the objects of its period that match, in object order.
        """
        raise NotImplementedError(f"{type(self).__name__} answers no asks")

    def summary(self, seen: Sequence[Seen], limit: int | None) -> Any:
        """The answer to an ask, where that is no list of objects: see `answer`."""
        raise NotImplementedError(f"{type(self).__name__} answers with objects")

    def next_moment(self) -> int:
        """When the passing of time changes the result next; FOREVER: it does not."""
        return FOREVER

    def pass_moment(self, moment: int) -> Iterable[Change]:
        """What changes at that moment, which is `next_moment`."""
        del moment  # by itself time changes nothing
        return ()

    def held(self) -> dict[str, Any] | None:
        """The result as a row of the kind's results, without its slot; None: nothing to keep."""
        return None

    def hold(self, row: dict[str, Any]) -> None:
        """Put a result in place that `held` gave."""
        raise NotImplementedError(f"{type(self).__name__} keeps no results")
