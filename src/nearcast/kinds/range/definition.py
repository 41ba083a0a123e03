"""What a `range` subscription means, in plain Python."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nearcast.model.expression import Expression, evaluate
from nearcast.model.predicate import contains
from nearcast.model.shapes import Region
from nearcast.model.space import Space
from nearcast.model.standing import Change, Seen, Standing

__all__ = ["InRegion"]


@dataclass(slots=True)
class InRegion(Standing):
    """Every object inside `region` whose keywords make `where` true."""

    space: Space
    region: Region
    where: Expression

    def matches(self, o: Seen) -> bool:
        """Whether words and place match."""
        return evaluate(self.where, o.words) and contains(self.space, self.region, o.x, o.y)

    def offer(self, o: Seen) -> Iterable[Change]:
        """Each is a match."""
        yield Change("match", o.name, o.time)

    def begin(self, past: Sequence[Seen], time: int) -> Iterable[Change]:
        """Each is a match, with its own time."""
        del time  # when it begins does not matter
        for o in past:
            yield Change("match", o.name, o.time)

    def answer(self, seen: Sequence[Seen], limit: int | None) -> list[tuple[Seen, float | None]]:
        """By time, then object order; with a limit only the latest."""
        ordered = sorted(seen, key=lambda o: o.time)
        return [(o, None) for o in (ordered[-limit:] if limit else ordered)]
