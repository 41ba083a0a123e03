"""The definitions and algorithms of PS2Stream in plain Python, for tests to compare with."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import product

import numpy as np

from nearcast.routing import Sample
from nearcast.routing.grid.survey import RegionSurvey

ANY = 3
Box = tuple[float, float, float, float]
Region = tuple[int, int, int, int]
C = (1.0, 2.0, 3.0, 4.0)  # c1 to c4: whole numbers, so that loads are exact


@dataclass(frozen=True)
class Obj:
    x: float
    y: float
    words: frozenset[int]


@dataclass(frozen=True)
class Sub:
    boxes: tuple[Box, ...]
    words: tuple[int, ...]
    conjunction: bool


def _ragged(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    offsets = np.append(0, np.cumsum([len(r) for r in rows])).astype(np.int64)
    return offsets, np.array([w for r in rows for w in r], np.uint64)


def sample_of(objects: list[Obj]) -> Sample:
    x, y = (np.array([getattr(o, axis) for o in objects], float) for axis in "xy")
    return Sample(x, y, *_ragged([sorted(o.words) for o in objects]))


def survey_of(subs: list[Sub]) -> RegionSurvey:
    boxes = [b for s in subs for b in s.boxes]
    return RegionSurvey(
        np.arange(1, len(subs) + 1).astype(np.uint64),
        np.append(0, np.cumsum([len(s.boxes) for s in subs])).astype(np.int64),
        np.array(boxes, float).reshape(-1, 4),
        *_ragged([list(s.words) for s in subs]),
        np.array([s.conjunction for s in subs], bool),
    )


def definition_1(objects: int, queries: int) -> float:
    return C[0] * objects * queries + C[1] * objects + C[2] * queries + C[3] * queries


def factor(loads: list[float]) -> float:
    if max(loads) == 0:
        return 1.0
    return max(loads) / min(loads) if min(loads) else math.inf


@dataclass(frozen=True)
class Leaf:
    """A node: members by number."""

    region: Region
    terms: frozenset[int] | None
    text: bool
    inside: frozenset[int]
    sent: frozenset[int]
    queries: frozenset[int]

    @property
    def load(self) -> float:
        return definition_1(len(self.sent), len(self.queries))


class World:
    """O and Q in cells."""

    def __init__(self, objects: list[Obj], subs: list[Sub], side: int, discard: bool) -> None:
        self.side, self.discard = side, discard
        self.bounds = self._bounds(objects, subs)
        self.count = Counter(w for o in objects for w in o.words)
        self.at = [(self.cell(o.x, 0), self.cell(o.y, 1)) for o in objects]
        self.held = [o.words | {ANY} for o in objects]
        self.boxes = [
            [
                (self.cell(a, 0), self.cell(b, 1), self.cell(c, 0), self.cell(d, 1))
                for a, b, c, d in s.boxes
            ]
            for s in subs
        ]
        self.queried = [s.words for s in subs]
        self.hooks = [self._hooks(s) for s in subs]

    def _bounds(self, objects: list[Obj], subs: list[Sub]) -> Box:
        xs = [o.x for o in objects] or [v for s in subs for b in s.boxes for v in b[0::2]] or [0, 1]
        ys = [o.y for o in objects] or [v for s in subs for b in s.boxes for v in b[1::2]] or [0, 1]
        return min(xs), min(ys), max(xs), max(ys)

    def cell(self, value: float, axis: int) -> int:
        low, high = self.bounds[axis], self.bounds[axis + 2]
        if value <= low:
            return 0
        if value >= high:
            return self.side - 1
        return min(int((value - low) / (high - low) * self.side), self.side - 1)

    def _hooks(self, s: Sub) -> frozenset[int]:
        if not s.words:
            return frozenset((ANY,))
        if s.conjunction:
            return frozenset((min(s.words, key=lambda w: (self.count[w], w)),))
        return frozenset(s.words)

    def leaf(self, region: Region, terms: frozenset[int] | None = None, text: bool = False) -> Leaf:
        a, b, c, d = region
        inside = {
            o
            for o, (x, y) in enumerate(self.at)
            if a <= x < c and b <= y < d and (terms is None or self.held[o] & terms)
        }
        queries = {
            q
            for q, boxes in enumerate(self.boxes)
            if any(x0 < c and x1 >= a and y0 < d and y1 >= b for x0, y0, x1, y1 in boxes)
            and (terms is None or self.hooks[q] & terms)
        }
        known = frozenset(w for q in queries for w in self.hooks[q])
        known = known if terms is None else known & terms
        sent = {o for o in inside if self.held[o] & known} if self.discard else inside
        return Leaf(region, terms, text, *(frozenset(s) for s in (inside, sent, queries)))

    def root(self) -> Leaf:
        return self.leaf((0, 0, self.side, self.side))

    def terms(self, n: Leaf) -> list[int]:
        """T of a node, as it is dealt; ascending."""
        if n.terms is not None:
            every = set(n.terms)
        else:
            every = {w for o in n.inside for w in self.held[o]}
            every |= {w for q in n.queries for w in self.hooks[q]}
        if self.discard and not any(ANY in self.hooks[q] for q in n.queries):
            every.discard(ANY)
        return sorted(every)

    def holders(self, n: Leaf, word: int) -> set[int]:
        return {o for o in n.inside if word in self.held[o]}

    def askers(self, n: Leaf, word: int) -> set[int]:
        return {q for q in n.queries if word in self.hooks[q]}


def similarity(w: World, n: Leaf) -> float:
    held = Counter(word for o in n.inside for word in w.held[o] if word != ANY)
    queried = Counter(word for q in n.queries for word in w.queried[q])
    squares = sum(v * v for v in held.values()) * sum(v * v for v in queried.values())
    return sum(held[t] * queried[t] for t in held) / math.sqrt(squares) if squares else 1.0


def metric_parts(w: World, n: Leaf, p: int) -> dict[int, int]:
    sent: list[set[int]] = [set() for _ in range(p)]
    reached: list[set[int]] = [set() for _ in range(p)]
    queried: list[set[int]] = [set() for _ in range(p)]
    counted: list[int] = []
    rest: list[int] = []
    for t in w.terms(n):
        (counted if not w.discard or w.askers(n, t) else rest).append(t)
    counted.sort(key=lambda t: -definition_1(len(w.holders(n, t)), len(w.askers(n, t))))
    rest.sort(key=lambda t: -len(w.holders(n, t)))
    part = {}
    for t in counted:
        o, q = w.holders(n, t), w.askers(n, t)
        after = [definition_1(len(sent[i] | o), len(queried[i] | q)) for i in range(p)]
        i = part[t] = after.index(min(after))
        sent[i] |= o
        reached[i] |= o
        queried[i] |= q
    for t in rest:
        sizes = [len(reached[i] | w.holders(n, t)) for i in range(p)]
        i = part[t] = sizes.index(min(sizes))
        reached[i] |= w.holders(n, t)
    return part


def frequency_parts(w: World, n: Leaf, p: int) -> dict[int, int]:
    often = {t: len(w.holders(n, t)) + len(w.askers(n, t)) for t in w.terms(n)}
    sums = [0] * p
    part = {}
    for t in sorted(often, key=lambda t: -often[t]):
        part[t] = sums.index(min(sums))
        sums[part[t]] += often[t]
    return part


def text_split(w: World, n: Leaf, p: int) -> list[Leaf]:
    part = metric_parts(w, n, p)
    sets = [frozenset(t for t in part if part[t] == i) for i in range(p)]
    made = [w.leaf(n.region, s, True) for s in sets if s]
    return made if len(made) > 1 else [n]


def halves(region: Region, axis: int, at: int) -> list[Region]:
    a, b, c, d = region
    return [(a, b, at, d), (at, b, c, d)] if axis == 0 else [(a, b, c, at), (a, at, c, d)]


def median_at(w: World, n: Leaf, axis: int) -> int | None:
    lines = [w.at[o][axis] for o in n.inside]
    cuts = list(range(n.region[axis] + 1, n.region[axis + 2]))
    cuts = [c for c in cuts if 0 < sum(v < c for v in lines) < len(lines)]
    return min(cuts, key=lambda c: abs(2 * sum(v < c for v in lines) - len(lines)), default=None)


def load_at(w: World, n: Leaf, axis: int, left: int, right: int) -> int | None:
    def off(c: int) -> float:
        sides = []
        for region in halves(n.region, axis, c):
            part = w.leaf(region)
            sides.append(definition_1(len(part.inside & n.sent), len(part.queries)))
        return abs(sides[0] * right - sides[1] * left)

    return min(range(n.region[axis] + 1, n.region[axis + 2]), key=off, default=None)


def space_split(w: World, n: Leaf, p: int) -> list[Leaf]:
    if p < 2:
        return [n]
    ways = []
    for axis in range(2):
        at = load_at(w, n, axis, p // 2, p - p // 2)
        if at is not None:
            ways.append([w.leaf(region) for region in halves(n.region, axis, at)])
    if not ways:
        return [n]
    a, b = min(ways, key=lambda way: way[0].load + way[1].load)
    return space_split(w, a, p // 2) + space_split(w, b, p - p // 2)


def loaded(nodes: list[Leaf]) -> int:
    return sum(n.load > 0 for n in nodes)


def node_split(w: World, n: Leaf, p: int) -> list[Leaf]:
    if p < 2:
        return [n]
    by_text = text_split(w, n, p)
    if n.terms is not None or (n.text and w.discard and loaded(by_text) == p):
        return by_text
    by_space = space_split(w, n, p)
    if loaded(by_text) != loaded(by_space):
        return by_text if loaded(by_text) > loaded(by_space) else by_space
    if n.text and w.discard:
        return by_text
    mean = sum(x.load for x in by_space) / len(by_space)
    return by_text if max(x.load for x in by_text) < mean else by_space


def best_numbers(costs: list[list[float]], m: int) -> float:
    """The least sum over all ways to make m parts (or as many as there can be)."""
    for wanted in range(m, 0, -1):
        sums = [
            sum(c[k - 1] for c, k in zip(costs, ks, strict=True))
            for ks in product(*(range(1, len(c) + 1) for c in costs))
            if sum(ks) == wanted
        ]
        if sums and min(sums) < math.inf:
            return min(sums)
    return math.inf


def merge(nodes: list[Leaf], m: int) -> tuple[list[int], list[float]]:
    has: list[tuple[set[int], set[int]]] = [(set(), set()) for _ in range(m)]
    loads = [0.0] * m
    workers = [0] * len(nodes)
    for i in sorted(range(len(nodes)), key=lambda i: -nodes[i].load):
        after = [definition_1(len(o | nodes[i].sent), len(q | nodes[i].queries)) for o, q in has]
        least = loads.index(min(loads))
        growth = [b - a for a, b in zip(loads, after, strict=True)]
        part = growth.index(min(growth))
        made = [after[j] if j == part else loads[j] for j in range(m)]
        if loads[least] == 0 or factor(made) > factor(loads):
            part = least
        workers[i] = part
        has[part][0].update(nodes[i].sent)
        has[part][1].update(nodes[i].queries)
        loads[part] = after[part]
    return workers, loads


def subspaces(w: World, delta: float, theta: int, epsilon: float) -> list[Leaf]:
    undecided, decided = [w.root()], []
    while undecided:
        n = undecided.pop(0)
        own = similarity(w, n)
        if own >= delta:
            decided.append(n)
            continue
        ways = []
        for axis in range(2):
            at = median_at(w, n, axis)
            if at is not None:
                ways.append([w.leaf(region) for region in halves(n.region, axis, at)])
        alphas = [min(similarity(w, part) for part in way) for way in ways]
        full = len(decided) + len(undecided) + 2 > theta
        if not ways or full or abs(min(alphas) - own) <= epsilon:
            decided.append(w.leaf(n.region, text=True))
        else:
            undecided += ways[alphas.index(min(alphas))]
    return decided


def algorithm_1(
    w: World, m: int, delta: float, sigma: float, theta: int, epsilon: float
) -> tuple[list[Leaf], list[int], list[float]]:
    """All but the choice of numbers: `ComputeNumberPartitions` is compared by itself."""
    nodes = subspaces(w, delta, theta, epsilon)
    if len(nodes) < m:
        nodes = divided(w, nodes, m)
    best = made = (nodes, *merge(nodes, m))
    stuck: list[Leaf] = []
    while factor(made[2]) > sigma and len(nodes) < theta:
        ready = [n for n in nodes if n.load > 0 and n not in stuck]
        if not ready:
            break
        n = max(ready, key=lambda n: n.load)
        parts = node_split(w, n, 2)
        if loaded(parts) < 2:
            stuck.append(n)
            continue
        at = nodes.index(n)
        nodes = nodes[:at] + parts + nodes[at + 1 :]
        made = (nodes, *merge(nodes, m))
        if (max(made[2]), factor(made[2])) < (max(best[2]), factor(best[2])):
            best = made
    return best


def divided(w: World, nodes: list[Leaf], m: int) -> list[Leaf]:
    """Of all numbers of parts with the least sum, the one whose last are the smallest."""
    most = m - len(nodes) + 1
    ways = [[node_split(w, n, k) for k in range(1, most + 1)] for n in nodes]
    costs = [
        [
            sum(x.load for x in way) if k in (1, loaded(way)) else math.inf
            for k, way in enumerate(each, 1)
        ]
        for each in ways
    ]
    least = best_numbers(costs, m)
    for wanted in range(m, 0, -1):
        found = [
            ks[::-1]
            for ks in product(range(1, most + 1), repeat=len(nodes))
            if sum(ks) == wanted
            and sum(c[k - 1] for c, k in zip(costs, ks, strict=True)) == least < math.inf
        ]
        if found:
            return [x for way, k in zip(ways, min(found)[::-1], strict=True) for x in way[k - 1]]
    return nodes
