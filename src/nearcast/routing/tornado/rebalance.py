"""Real-time load balancing of Tornado (sections 4.2 and 4.3): whether, and what, to rebalance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nearcast.routing.tornado.a_grid import Partitions
from nearcast.routing.tornado.aggregates import Aggregates, Rectangle, band_of
from nearcast.routing.tornado.decision import (
    CORNER,
    HORIZONTAL,
    SPLIT_MERGE,
    VERTICAL,
    Decision,
    Move,
    rectangle,
)
from nearcast.routing.tornado.neighbours import (
    mergeable_pairs,
    shares_horizontal,
    shares_vertical,
    used,
)
from nearcast.routing.tornado.summary import Piece, Summary, summarise

_ORDER = (HORIZONTAL, VERTICAL, CORNER, SPLIT_MERGE)  # of operations that are equally good


@dataclass(frozen=True, slots=True)
class Settings:
    """When it is worth while; `rounds` and `rectangles` matter to chains only."""

    beta: float = 1.0  # what moving a query costs, in the unit of costs (queries checked)
    threshold: float = 1.0  # nothing is done while the largest cost is at most this times the mean
    horizon: float = 1.0  # batches whose C_r is compared with C_t; the paper does not say
    rounds: int = 1  # operations at once, at most
    rectangles: int = 1  # per shard, at most on average

    @property
    def goal(self) -> float:
        """Where a chain ends, in means: half way below the threshold, or it would begin again."""
        return 0.5 + 0.5 * self.threshold

    def pays(self, c_r: float, c_t: float) -> bool:
        """C_r > C_t."""
        return self.horizon * c_r > c_t


@dataclass(frozen=True, slots=True)
class Operation:
    """What could be done, with C_r and C_t: exact, or estimated where `pieces` is empty."""

    kind: str
    target: int  # B of a shift; Z, the evaluator that gets free
    c_r: float
    c_t: float
    pieces: tuple[Piece, ...] = ()  # what goes to `target`, and for a split/merge what to Y


def adjust(
    partitions: Partitions, aggregates: Sequence[Aggregates], settings: Settings
) -> Decision | None:
    """The operation with the largest C_r of those with C_r > C_t; None: leave it as it is.

    `aggregates`: one per evaluator. Choosing looks at summaries; the boundary of a horizontal or
    vertical shift is found by the overloaded evaluator afterwards. If the shift then is not worth
    it, the next best operation is taken.
    """
    summaries = [summarise(partitions, p, a) for p, a in enumerate(aggregates)]
    hot = overloaded(summaries, settings)
    if hot < 0:
        return None
    for operation in operations(partitions, summaries, hot, settings):
        exact = operation
        if not operation.pieces:
            cold = summaries[operation.target].cost
            exact = settle(partitions, hot, aggregates[hot], cold, operation, settings)
        if settings.pays(exact.c_r, exact.c_t):
            return _decision(summaries, hot, exact, settings)
    return None


def overloaded(summaries: Sequence[Summary], settings: Settings) -> int:
    """The evaluator with the largest cost, of equal ones the first; -1: nobody has too much."""
    costs = [s.cost for s in summaries]
    most = max(costs, default=0)
    if most * len(costs) <= settings.threshold * sum(costs):
        return -1
    return costs.index(most)


def operations(
    partitions: Partitions, summaries: Sequence[Summary], hot: int, settings: Settings
) -> list[Operation]:
    """All operations that relieve `hot` and have C_r > C_t, the largest C_r first."""
    found = [
        *_shifts(partitions, summaries, hot, settings),
        *_corners(summaries, hot, settings),
        *_split_merges(partitions, summaries, hot, settings),
    ]
    worth = [o for o in found if settings.pays(o.c_r, o.c_t)]
    return sorted(worth, key=_rank)


def _rank(o: Operation) -> tuple[float, float, int, int, int]:
    return -o.c_r, o.c_t, _ORDER.index(o.kind), o.target, o.pieces[-1].target if o.pieces else -1


def _shifts(
    partitions: Partitions, summaries: Sequence[Summary], hot: int, settings: Settings
) -> list[Operation]:
    """Estimates: half of what `hot` has more goes over, and its share of the queries with it."""
    out = []
    a, mine = summaries[hot], rectangle(partitions, hot)
    for other in used(partitions):
        b = rectangle(partitions, other)
        rows = shares_horizontal(mine, b) and mine[1] < mine[3]
        columns = shares_vertical(mine, b) and mine[0] < mine[2]
        if (rows or columns) and summaries[other].cost < a.cost:
            c_r = a.cost - (a.cost + summaries[other].cost) / 2
            c_t = settings.beta * a.queries * (c_r / a.cost)
            out.append(Operation(HORIZONTAL if rows else VERTICAL, other, c_r, c_t))
    return out


def _corners(summaries: Sequence[Summary], hot: int, settings: Settings) -> list[Operation]:
    out = []
    for piece in summaries[hot].corners:
        c_r = _shift_gain(summaries[hot].cost, summaries[piece.target].cost, piece.cost)
        c_t = settings.beta * piece.queries
        out.append(Operation(CORNER, piece.target, c_r, c_t, (piece,)))
    return out


def _shift_gain(hot: int, cold: int, moved: int) -> int:
    """C_r of a shift: the larger cost of both, before and after."""
    return max(hot, cold) - max(hot - moved, cold + moved)


def _split_merges(
    partitions: Partitions, summaries: Sequence[Summary], hot: int, settings: Settings
) -> list[Operation]:
    """Equations (4) and (5), for every Y and Z that can be merged."""
    x = summaries[hot]
    if x.split is None:
        return []
    out = []
    for pair in mergeable_pairs(partitions):
        if hot in pair:
            continue
        y, z = pair if summaries[pair[1]].queries <= summaries[pair[0]].queries else pair[::-1]
        merged = summaries[y].cost + summaries[z].cost
        c_r = x.cost - max(x.split.cost, x.cost - x.split.cost, merged)
        c_t = settings.beta * (x.split.queries + summaries[z].queries)
        all_of_z = Piece(rectangle(partitions, z), summaries[z].cost, summaries[z].queries, y)
        out.append(Operation(SPLIT_MERGE, z, c_r, c_t, (x.split, all_of_z)))
    return out


def settle(
    partitions: Partitions,
    hot: int,
    a: Aggregates,
    cold: int,
    operation: Operation,
    settings: Settings,
) -> Operation:
    """The best boundary of a horizontal or vertical shift, found by `hot` with B's cost `cold`.

    All positions are tried, the one with the least maximum of both costs is taken, and of equal
    ones the one that moves the fewest cells.
    """
    mine, other = rectangle(partitions, hot), rectangle(partitions, operation.target)
    lines, low = (a.rows, 1) if operation.kind == HORIZONTAL else (a.columns, 0)
    first, last = mine[low], mine[low + 2]
    upwards = other[low] > last  # B is above, or to the right
    best, best_count, moved = 0, 0, 0
    for count in range(1, last - first + 1):
        moved += int(lines[last - count + 1] if upwards else lines[first + count - 1])
        gain = _shift_gain(int(a.overall[0]), cold, moved)
        if best_count == 0 or gain > best:
            best, best_count = gain, count
    band = _band(mine, low, best_count, upwards)
    piece = Piece(band, *band_of(a, mine, band), operation.target)
    c_t = settings.beta * piece.queries
    return Operation(operation.kind, operation.target, best, c_t, (piece,))


def _band(mine: Rectangle, low: int, count: int, upwards: bool) -> Rectangle:
    """The last or first `count` rows (low = 1) or columns (low = 0) of a rectangle."""
    ends = list(mine)
    if upwards:
        ends[low] = mine[low + 2] - count + 1
    else:
        ends[low + 2] = mine[low] + count - 1
    return ends[0], ends[1], ends[2], ends[3]


def _decision(
    summaries: Sequence[Summary], hot: int, operation: Operation, settings: Settings
) -> Decision:
    before = [s.cost for s in summaries]
    after = list(before)
    moves = []
    source, target = hot, operation.target
    for piece in operation.pieces:
        moves.append(Move(source, target, piece.cells))
        after[source] -= piece.cost
        after[target] += piece.cost
        source, target = target, operation.pieces[-1].target
    return Decision(
        operation.kind,
        tuple(moves),
        tuple(before),
        tuple(after),
        operation.c_r,
        operation.c_t,
        _reason(before, after, hot, moves, operation, settings),
    )


def _reason(
    before: list[int],
    after: list[int],
    hot: int,
    moves: list[Move],
    operation: Operation,
    settings: Settings,
) -> str:
    mean = sum(before) / len(before)
    times = before[hot] / mean
    texts = [f"cells {m.cells} of {m.source} to {m.target}" for m in moves]
    touched = sorted({m.source for m in moves} | {m.target for m in moves})
    most = max(after[p] for p in touched)
    horizon = "" if settings.horizon == 1 else f"{settings.horizon:g} "
    return (
        f"evaluator {hot} has cost {before[hot]}, {times:.2f} times the mean; {operation.kind}, "
        f"{', '.join(texts)}: the largest of {', '.join(map(str, touched))} becomes {most}; "
        f"{horizon}C_r {operation.c_r:g} > C_t {operation.c_t:g}"
    )
