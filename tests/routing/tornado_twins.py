"""The algorithms of Tornado in plain Python, for tests to compare with."""

from __future__ import annotations

from collections import Counter

Rect = tuple[int, int, int, int]
Costs = list[list[int]]  # [y][x]


def overlaps(a: Rect, b: Rect) -> bool:
    return a[0] <= b[2] and b[0] <= a[2] and a[1] <= b[3] and b[1] <= a[3]


def routing_problem(partitions: list[Rect], r: Rect) -> list[int]:
    """Definition 1."""
    return [i for i, p in enumerate(partitions) if p[0] <= p[2] and overlaps(p, r)]


def neighbor_search(partitions: list[Rect], r: Rect) -> list[int]:
    """Algorithm 1, with cells on the stack as the paper has them; in the order of visits."""

    def partition_of(cell: tuple[int, int]) -> int:
        return next(i for i, p in enumerate(partitions) if overlaps(p, (*cell, *cell)))

    def inside(cell: tuple[int, int]) -> bool:
        return overlaps((*cell, *cell), r)

    def dominant(cell: tuple[int, int]) -> tuple[int, int]:
        if not inside(cell):
            return cell
        p = partitions[partition_of(cell)]
        return max(p[0], r[0]), min(p[3], r[3])

    result: list[int] = []
    stack = [(r[0], r[3])]
    while stack:
        c = stack.pop()
        if inside(c) and partition_of(c) not in result:
            at = partition_of(c)
            result.append(at)
            right = dominant((partitions[at][2] + 1, c[1]))
            bottom = dominant((c[0], partitions[at][1] - 1))
            stack += [bottom, right]
    return result


def equation_1(
    side: int,
    objects: list[tuple[int, int, list[int]]],
    queries: list[tuple[Rect, list[int]]],
    each: int,
) -> Costs:
    costs = [[0] * side for _ in range(side)]
    for x, y, words in objects:
        q = sum(w in queried for r, queried in queries for w in words if overlaps(r, (x, y, x, y)))
        costs[y][x] += q + each
    return costs


def equation_2(costs: Costs, p: Rect) -> int:
    return sum(costs[y][x] for y in range(p[1], p[3] + 1) for x in range(p[0], p[2] + 1))


def splits(p: Rect) -> list[tuple[Rect, Rect]]:
    """Every way to cut a partition in two, vertical ones first."""
    x1, y1, x2, y2 = p
    vertical = [((x1, y1, x, y2), (x + 1, y1, x2, y2)) for x in range(x1, x2)]
    return vertical + [((x1, y1, x2, y), (x1, y + 1, x2, y2)) for y in range(y1, y2)]


def best_split(costs: Costs, p: Rect) -> tuple[Rect, Rect] | None:
    """The least maximum; then across the longer side, next to its middle, vertical, lower."""

    def rank(cut: tuple[Rect, Rect]) -> tuple[int, int, int]:
        axis = 0 if cut[0][2] < cut[1][0] else 1
        length = p[axis + 2] - p[axis]
        before, after = (part[axis + 2] - part[axis] for part in cut)
        return max(equation_2(costs, part) for part in cut), -length, abs(before - after)

    return min(splits(p), key=rank, default=None)


def initial_partitions(costs: Costs, evaluators: int) -> list[Rect]:
    """Section 4.1; a single cell is passed over while others can be split."""
    side = len(costs)
    made: list[Rect] = [(0, 0, side - 1, side - 1)]

    def cells(p: Rect) -> int:
        return (p[2] - p[0] + 1) * (p[3] - p[1] + 1)

    while len(made) < evaluators:
        left = [i for i, p in enumerate(made) if cells(p) > 1]
        if not left:
            break
        top = min(left, key=lambda i: (-equation_2(costs, made[i]), -cells(made[i])))
        cut = best_split(costs, made[top])
        assert cut is not None
        made[top] = cut[0]
        made.append(cut[1])
    return made + [(0, 0, -1, -1)] * (evaluators - len(made))


def queries_in(ranges: list[Rect], band: Rect) -> int:
    return sum(overlaps(r, band) for r in ranges)


def is_tiling(partitions: list[Rect], side: int) -> bool:
    covered = Counter(
        (x, y)
        for p in partitions
        for x in range(p[0], p[2] + 1)
        for y in range(p[1], p[3] + 1)
        if p[0] <= p[2]
    )
    every = {(x, y) for x in range(side) for y in range(side)}
    return set(covered) == every and set(covered.values()) <= {1}


def is_rectangle(cells: set[tuple[int, int]]) -> bool:
    xs, ys = [x for x, _ in cells], [y for _, y in cells]
    return len(cells) == (max(xs) - min(xs) + 1) * (max(ys) - min(ys) + 1)


def cells_in(p: Rect) -> set[tuple[int, int]]:
    return {(x, y) for x in range(p[0], p[2] + 1) for y in range(p[1], p[3] + 1)}


def all_operations(
    costs: Costs, ranges: list[Rect], partitions: list[Rect], hot: int, beta: float
) -> dict[str, list[tuple[float, float]]]:
    """(C_r, C_t) of every operation from `hot`, from the cells: what keeps all rectangular.

    A corner shift moves a band to one that does not share an entire boundary; other shifts
    move one to one that does.
    """
    load = [equation_2(costs, p) for p in partitions]
    out: dict[str, list[tuple[float, float]]] = {"shift": [], "corner": [], "split/merge": []}
    for first, second in splits(partitions[hot]):
        for moved in (first, second):
            for b, target in enumerate(partitions):
                if b == hot or target[0] > target[2]:
                    continue
                if not is_rectangle(cells_in(target) | cells_in(moved)):
                    continue
                cost = equation_2(costs, moved)
                gain = load[hot] - max(load[hot] - cost, load[b] + cost)
                whole = is_rectangle(cells_in(target) | cells_in(partitions[hot]))
                overhead = beta * queries_in(ranges, moved)
                out["shift" if whole else "corner"].append((gain, overhead))
    out["split/merge"] = _split_merges(costs, ranges, partitions, hot, beta)
    return out


def _split_merges(
    costs: Costs, ranges: list[Rect], partitions: list[Rect], hot: int, beta: float
) -> list[tuple[float, float]]:
    """Equations (4) and (5) for every Y and Z; Z and X2 have the fewer queries."""
    cut = best_split(costs, partitions[hot])
    if cut is None:
        return []
    out: list[tuple[float, float]] = []
    parts = max(equation_2(costs, part) for part in cut)
    moved = min(queries_in(ranges, part) for part in cut)
    for y in range(len(partitions)):
        for z in range(y):
            pair = partitions[y], partitions[z]
            if hot in (y, z) or not is_rectangle(cells_in(pair[0]) | cells_in(pair[1])):
                continue
            merged = sum(equation_2(costs, p) for p in pair)
            gain = equation_2(costs, partitions[hot]) - max(parts, merged)
            freed = min(queries_in(ranges, p) for p in pair)
            out.append((gain, beta * (moved + freed)))
    return out


def rectangles(cells: list[list[int]]) -> list[tuple[Rect, int]]:
    """Rectangles with the owner of each, read off row by row, each as wide as can be, then high."""
    left = {(x, y) for y, row in enumerate(cells) for x in range(len(row))}
    out = []
    while left:
        x, y = min(left, key=lambda c: (c[1], c[0]))
        owner = cells[y][x]

        free = {(u, v) for u, v in left if cells[v][u] == owner}
        right = x
        while (right + 1, y) in free:
            right += 1
        high = y
        while all((u, high + 1) in free for u in range(x, right + 1)):
            high += 1
        box = x, y, right, high
        left -= cells_in(box)
        out.append((box, owner))
    return out


def best_part(
    costs: Costs, queries: Costs, box: Rect, hot: int, cold: int, horizon: float, beta: float
) -> float:
    """The most that handing over a part of a rectangle, or all of it, is worth."""
    parts = [box, *(part for cut in splits(box) for part in cut)]

    def worth(part: Rect) -> float:
        cost = equation_2(costs, part)
        return horizon * (hot - max(hot - cost, cold + cost)) - beta * equation_2(queries, part)

    return max(worth(part) for part in parts)
