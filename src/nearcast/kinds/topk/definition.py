"""What a `topk` subscription means, in plain Python."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from nearcast.model.expression import Expression, evaluate
from nearcast.model.frame import Frame
from nearcast.model.score import blend, cosine, near
from nearcast.model.space import Space, distance
from nearcast.model.standing import FOREVER, Change, Seen, Standing

__all__ = ["Best", "Entry"]


@dataclass(slots=True)
class Entry:
    """An object in a result, or next in line for one."""

    score: float
    rank: int
    time: int
    object: Any


@dataclass(slots=True)
class Best(Standing):
    """The k objects of highest score in the run's window that share a keyword."""

    space: Space
    frame: Frame
    x: float
    y: float
    k: int
    keywords: Sequence[Any]
    """Each once, as text or as hashes."""
    alpha: float
    maxdist: float
    where: Expression
    entries: list[Entry] = field(default_factory=list)
    """All that match and are in the window, best first: the first k are the result."""

    def matches(self, o: Seen) -> bool:
        """It shares a keyword, and its keywords make `where` true."""
        return any(word in o.words for word in self.keywords) and evaluate(self.where, o.words)

    def score(self, o: Seen) -> float:
        """SPEC section 4, of an object that shares a keyword."""
        idf = self.frame.idf.of
        wanted = {word: idf(word) for word in self.keywords}
        held = {word: tf * idf(word) for word, tf in o.words.items()}
        away = float(distance(self.space.code, self.x, self.y, o.x, o.y))
        return float(blend(self.alpha, near(away, self.maxdist), cosine(wanted, held)))

    def begin(self, past: Sequence[Seen], time: int) -> Iterable[Change]:
        """The k best of the window enter, best first."""
        self.entries = [self._entry(o) for o in past]
        self.entries.sort(key=lambda e: (e.score, e.rank), reverse=True)
        for e in self.entries[: self.k]:
            yield Change("enter", e.object, time, e.score)

    def _entry(self, o: Seen) -> Entry:
        return Entry(self.score(o), o.rank, o.time, o.name)

    def push(self, o: Seen) -> Iterable[Change]:
        """What it pushes out of a window of a count leaves, and what moves up enters."""
        first = self.frame.window.first_rank(o.rank + 1)
        return self._without([e for e in self.entries if e.rank < first], o.time)

    def offer(self, o: Seen) -> Iterable[Change]:
        """It enters if it is among the k best, the newer one of equals; the k-th then leaves."""
        if o.time <= self.frame.window.after(o.now):
            return
        new = self._entry(o)
        place = sum(e.score > new.score for e in self.entries)
        self.entries.insert(place, new)
        if place < self.k:
            yield Change("enter", o.name, o.time, new.score)
            if len(self.entries) > self.k:
                yield Change("leave", self.entries[self.k].object, o.time)

    def answer(self, seen: Sequence[Seen], limit: int | None) -> list[tuple[Seen, float | None]]:
        """The k best, best first; of equals the newer one."""
        scored = [(o, self.score(o)) for o in seen]
        scored.sort(key=lambda pair: (pair[1], pair[0].rank), reverse=True)
        return list(scored[: min(self.k, limit or self.k)])

    def next_moment(self) -> int:
        """When the oldest object grows too old for a window of time."""
        span = self.frame.window.span_ms
        return min((e.time for e in self.entries), default=FOREVER) + span if span else FOREVER

    def pass_moment(self, moment: int) -> Iterable[Change]:
        """What is too old leaves, then what moves up enters."""
        after = self.frame.window.after(moment)
        return self._without([e for e in self.entries if e.time <= after], moment)

    def _without(self, gone: list[Entry], time: int) -> Iterable[Change]:
        """Take entries out: those of the result leave, then those that move up enter."""
        if not gone:
            return
        before = self.entries[: self.k]
        self.entries = [e for e in self.entries if not any(e is g for g in gone)]
        for e in before:
            if any(e is g for g in gone):
                yield Change("leave", e.object, time)
        for e in self.entries[: self.k]:
            if not any(e is b for b in before):
                yield Change("enter", e.object, time, e.score)

    def held(self) -> dict[str, Any]:
        """A row of TOPS."""
        return {
            "score": [e.score for e in self.entries],
            "rank": [e.rank for e in self.entries],
            "time": [e.time for e in self.entries],
            "object": [e.object for e in self.entries],
            "floor": float("-inf"),
            "more": False,
            "passed": -FOREVER,
        }

    def hold(self, row: dict[str, Any]) -> None:
        """From a row of TOPS."""
        columns = (row["score"], row["rank"], row["time"], row["object"])
        self.entries = [Entry(*entry) for entry in zip(*columns, strict=True)]
