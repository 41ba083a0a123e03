"""The equations and algorithms of DkM-SKS in plain Python, for tests to compare with.

Costs are counted in objects (|O_init| times the paper's), at least 1 a subscription.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from nearcast.routing import Sample
from nearcast.routing.dkm.survey import Survey

Box = tuple[float, float, float, float]
EVERYWHERE: Box = (-math.inf, -math.inf, math.inf, math.inf)


@dataclass(frozen=True)
class Obj:
    x: float
    y: float
    words: frozenset[int]


@dataclass(frozen=True)
class Sub:
    x: float
    y: float
    words: frozenset[int]
    box: Box


def _ragged(rows: list[frozenset[int]]) -> tuple[Any, Any]:
    offsets = np.append(0, np.cumsum([len(r) for r in rows])).astype(np.int64)
    return offsets, np.array([w for r in rows for w in sorted(r)], np.uint64)


def sample_of(objects: list[Obj]) -> Sample:
    x = np.array([o.x for o in objects], float)
    y = np.array([o.y for o in objects], float)
    return Sample(x, y, *_ragged([o.words for o in objects]))


def survey_of(subs: list[Sub]) -> Survey:
    return Survey(
        np.arange(1, len(subs) + 1).astype(np.uint64),
        np.array([s.x for s in subs], float),
        np.array([s.y for s in subs], float),
        np.array([s.box for s in subs], float).reshape(-1, 4),
        *_ragged([s.words for s in subs]),
    )


def inside(o: Obj, r: Box) -> bool:
    return r[0] <= o.x <= r[2] and r[1] <= o.y <= r[3]


def equation_1(objects: list[Obj], words: frozenset[int]) -> int:
    if not words:
        return max(len(objects), 1)
    return max(sum(w in o.words for w in words for o in objects), 1)


def equation_2(objects: list[Obj], r: Box) -> int:
    return max(sum(inside(o, r) for o in objects), 1)


def equation_3(objects: list[Obj], subs: list[Sub]) -> int:
    return equation_2(objects, around(subs)) * len(subs)


def equation_5(objects: list[Obj], words: frozenset[int], r: Box) -> int:
    return equation_1([o for o in objects if inside(o, r)], words)


def equation_6(objects: list[Obj], subs: list[Sub]) -> int:
    return sum(equation_5(objects, s.words, around(subs)) for s in subs)


def around(subs: list[Sub]) -> Box:
    if not subs:
        return (math.inf, math.inf, -math.inf, -math.inf)
    a, b, c, d = zip(*(s.box for s in subs), strict=True)
    return (min(a), min(b), max(c), max(d))


def overlap(a: Box, b: Box) -> float:
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    return width * height if width > 0 and height > 0 else 0.0


def greedy(costs: list[float], order: list[int], loads: list[float]) -> list[int]:
    """Each to the worker with the least load; changes `loads`."""
    worker = [0] * len(costs)
    for s in order:
        worker[s] = loads.index(min(loads))
        loads[worker[s]] += costs[s]
    return worker


def descending(costs: list[float], among: list[int] | None = None) -> list[int]:
    places = list(range(len(costs))) if among is None else among
    return sorted(places, key=lambda s: -costs[s])


def algorithm_1(costs: list[float], m: int) -> tuple[list[int], list[float]]:
    loads = [0.0] * m
    return greedy(costs, descending(costs), loads), loads


def algorithm_3(
    costs: list[float], subsets: list[list[int]], m: int
) -> tuple[list[int], list[float]]:
    sums = [sum(costs[s] for s in subset) for subset in subsets]
    order = [s for i in descending(sums) for s in descending(costs, sorted(subsets[i]))]
    loads = [0.0] * m
    return greedy(costs, order, loads), loads


@dataclass
class Subset:
    members: list[int]
    cell: Box
    cost: float


def quarters(subs: list[Sub], subset: Subset) -> list[Subset] | None:
    """Space-only-Partition, through quarters that hold all; None if all are at one spot."""
    a, b, c, d = subset.cell
    if len({(subs[i].x, subs[i].y) for i in subset.members}) < 2:
        return None
    cx, cy = 0.5 * a + 0.5 * c, 0.5 * b + 0.5 * d
    cx, cy = (cx if a < cx else c), (cy if b < cy else d)
    cells = [(a, b, cx, cy), (cx, b, c, cy), (a, cy, cx, d), (cx, cy, c, d)]
    parts = [Subset([], cell, 0) for cell in cells]
    for i in subset.members:
        parts[(subs[i].x >= cx) + 2 * (subs[i].y >= cy)].members.append(i)
    parts = [p for p in parts if p.members]
    return quarters(subs, parts[0]) if len(parts) == 1 else parts


def space_of(objects: list[Obj], subs: list[Sub]) -> Box:
    things: list[Obj | Sub] = [*objects, *subs]
    xs, ys = [t.x for t in things], [t.y for t in things]
    return (min(xs), min(ys), max(xs), max(ys))


def space_oriented(objects: list[Obj], subs: list[Sub], target: int) -> list[Subset]:
    """Section 3.2, with the numbering of subsets that decides ties."""
    everyone = list(range(len(subs)))
    found = [Subset(everyone, space_of(objects, subs), equation_3(objects, subs))]
    stuck: set[int] = set()
    while len(found) < target and len(stuck) < len(found):
        at = min((i for i in range(len(found)) if i not in stuck), key=lambda i: -found[i].cost)
        parts = quarters(subs, found[at])
        if parts is None:
            stuck.add(at)
            continue
        for part in parts:
            part.cost = equation_3(objects, [subs[i] for i in part.members])
        found[at : at + 1] = parts[:1]
        found += parts[1:]
    return found


def hybrid(objects: list[Obj], subs: list[Sub], subset: Subset) -> list[Subset]:
    r = around([subs[i] for i in subset.members])
    costs = [float(equation_5(objects, subs[i].words, r)) for i in subset.members]
    order = descending(costs)
    part = greedy(costs, order, [0.0] * 4)
    dealt = [[subset.members[i] for i in order if part[i] == h] for h in range(4)]
    return [Subset(members, subset.cell, 0) for members in dealt if members]


def algorithm_2(objects: list[Obj], subs: list[Sub], target: int, gamma2: int) -> list[Subset]:
    everyone = list(range(len(subs)))
    found = [Subset(everyone, space_of(objects, subs), 0)]
    stuck: set[int] = set()

    def costed(parts: list[Subset]) -> list[Subset]:
        for part in parts:
            part.cost = equation_6(objects, [subs[i] for i in part.members])
        return parts

    while len(found) < target and len(stuck) < len(found):
        at = min((i for i in range(len(found)) if i not in stuck), key=lambda i: -found[i].cost)
        subset = found[at]
        spatial = quarters(subs, subset)
        parts = None if spatial is None else costed(spatial)
        if 1 < len(subset.members) <= gamma2:
            dealt = costed(hybrid(objects, subs, subset))
            if parts is None or sum(p.cost for p in parts) >= sum(p.cost for p in dealt):
                parts = dealt
        if parts is None:
            stuck.add(at)
            continue
        found[at : at + 1] = parts[:1]
        found += parts[1:]
    return found


def reach(objects: list[Obj], words: frozenset[int], k: int, x: float, y: float) -> float:
    fit = [o for o in objects if not words or words & o.words]
    distances = sorted(float(np.hypot(o.x - x, o.y - y)) for o in fit)
    return distances[k - 1] if k <= len(distances) else math.inf
