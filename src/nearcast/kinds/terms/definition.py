"""What a `terms` subscription means, in plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from nearcast.model.expression import Expression, evaluate
from nearcast.model.predicate import contains
from nearcast.model.shapes import Region
from nearcast.model.space import Space
from nearcast.model.standing import FOREVER, Change, Seen, Standing

__all__ = ["MostHeld", "ranked"]


def ranked(counts: Counter[str], k: int) -> list[list[Any]]:
    """The k keywords of the highest counts; ties by their code points."""
    order = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return [[keyword, count] for keyword, count in order[:k]]


@dataclass(slots=True)
class MostHeld(Standing):
    """The k keywords that most objects of a region hold, at every moment start + n·every."""

    space: Space
    region: Region
    where: Expression
    k: int
    exclude: frozenset[Any]
    """Keywords (text or hash) that do not count."""
    window: int = 0
    """Milliseconds, as `every`; both are 0 for an ask."""
    every: int = 0
    due: int = FOREVER
    """The next moment."""
    waiting: bool = True
    """Whether the first moment is still to come and nothing was seen: there is nothing to hold."""
    entries: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)
    """The time and the keywords of each object that the next moment may count."""

    def starts(self, time: int) -> None:
        """The first moment comes `every` later."""
        self.due = time + self.every

    def matches(self, o: Seen) -> bool:
        """Whether words and place match."""
        return evaluate(self.where, o.words) and contains(self.space, self.region, o.x, o.y)

    def offer(self, o: Seen) -> Iterable[Change]:
        """It is counted at a moment; by itself it changes nothing."""
        if o.time > self.due - self.window:
            self.entries.append((o.time, self._words(o)))
            self.waiting = False
        return ()

    def begin(self, past: Sequence[Seen], time: int) -> Iterable[Change]:
        """The past counts in the moments."""
        del time
        for o in past:
            self.offer(o)
        return ()

    def _words(self, o: Seen) -> tuple[str, ...]:
        return tuple(o.text(word) for word in o.words if word not in self.exclude)

    def summary(self, seen: Sequence[Seen], limit: int | None) -> list[list[Any]]:
        """The keywords that most objects of the period hold, with their counts."""
        counts = Counter(word for o in seen for word in self._words(o))
        return ranked(counts, min(self.k, limit or self.k))

    def next_moment(self) -> int:
        """The next of its moments."""
        return self.due

    def pass_moment(self, moment: int) -> Iterable[Change]:
        """What most objects of the window hold, and be it nothing."""
        window = [words for time, words in self.entries if moment - self.window < time <= moment]
        yield Change("terms", ranked(Counter(w for words in window for w in words), self.k), moment)
        self.due = moment + self.every
        self.entries = [entry for entry in self.entries if entry[0] > self.due - self.window]
        self.waiting = False

    def held(self) -> dict[str, Any] | None:
        """A row of the kind's results."""
        if self.waiting:
            return None
        return {
            "due": self.due,
            "passed": 0,
            "since": 0,
            "ranked": 0,
            "times": [time for time, _ in self.entries],
            "sizes": [len(words) for _, words in self.entries],
            "words": [word for _, words in self.entries for word in words],
            "texts": [],
        }

    def hold(self, row: dict[str, Any]) -> None:
        """From a row of the kind's results."""
        words = iter(row["words"])
        self.entries = [
            (time, tuple(next(words) for _ in range(size)))
            for time, size in zip(row["times"], row["sizes"], strict=True)
        ]
        self.due, self.waiting = row["due"], False
