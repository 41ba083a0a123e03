"""PS2Stream's load adjustment in plain Python, written down from the paper's section V."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np

from nearcast.index.posting import UNIVERSAL
from nearcast.routing.grid.table import GridTable
from nearcast.routing.ps2stream.adjust.stats import (
    CellObjects,
    CellStats,
    Costs,
    cell_objects,
    worker_load,
)

MASK = 2**64 - 1


# -- Minimum Cost Migration ----------------------------------------------------------------------


def definition_4(loads: list[float], sizes: list[int], tau: float) -> int | None:
    """The least size of any set that reaches τ."""
    every = range(len(loads))
    reach = (
        sum(sizes[g] for g in some)
        for n in range(len(loads) + 1)
        for some in combinations(every, n)
        if sum(loads[g] for g in some) >= tau
    )
    return min(reach, default=None)


def dynamic_programming(loads: list[float], sizes: list[int], tau: float) -> int | None:
    """The least j with A(n, j) >= τ; a cell of size j fits where the paper has j <= S_g."""
    bound = sum(sizes)
    a = [[0.0] * (bound + 1)]
    for load, size in zip(loads, sizes, strict=True):
        row = [
            a[-1][j] if j < size else max(a[-1][j], a[-1][j - size] + load)
            for j in range(bound + 1)
        ]
        a.append(row)
    return next((j for j in range(bound + 1) if a[-1][j] >= tau), None)


def greedy(loads: list[float], sizes: list[int], tau: float) -> list[int]:
    """GS_1 ∪ … ∪ GS_t ∪ {g'} of the least size, of equal ones the first that is scanned."""
    order = sorted(
        (g for g in range(len(loads)) if loads[g] > 0), key=lambda g: sizes[g] / loads[g]
    )
    small: list[int] = []
    candidates: list[list[int]] = []
    for g in order:
        if sum(loads[s] for s in small) + loads[g] < tau:
            small.append(g)
        else:
            candidates.append([*small, g])
    return sorted(min(candidates, key=lambda some: sum(sizes[g] for g in some)))


def until(order: list[int], loads: list[float], tau: float) -> list[int]:
    """Cells of `order` until their load is enough."""
    some: list[int] = []
    for g in order:
        if sum(loads[s] for s in some) >= tau:
            break
        some.append(g)
    return sorted(some)


def size_based(loads: list[float], sizes: list[int], tau: float) -> list[int]:
    return until(sorted(range(len(loads)), key=lambda g: -sizes[g]), loads, tau)


def mix64(h: int) -> int:
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        h = (h ^ (h >> 33)) * factor & MASK
    return h ^ (h >> 33)


def random_choice(loads: list[float], tau: float, seed: int) -> list[int]:
    return until(sorted(range(len(loads)), key=lambda g: mix64(g ^ mix64(seed))), loads, tau)


# -- who owns what -------------------------------------------------------------------------------


def owner(table: GridTable, cell: int, word: int) -> int:
    held = int(table.cells.flat[cell])
    if held >= 0:
        return held
    first, stop = table.map_offsets[-1 - held], table.map_offsets[-held]
    known = dict(zip(table.map_words[first:stop].tolist(), table.map_shards[first:stop].tolist()))
    if word in known:
        return int(known[word])
    workers = table.workers[table.worker_offsets[-1 - held] : table.worker_offsets[-held]].tolist()
    return int(workers[mix64(word) % len(workers)])


class Sub(NamedTuple):
    cells: frozenset[int]
    hooks: frozenset[int]  # word hashes, or UNIVERSAL
    size: int


class Obj(NamedTuple):
    cell: int
    words: frozenset[int]


def sample_of(objects: list[Obj]) -> CellObjects:
    words = [sorted(o.words) for o in objects]
    return cell_objects(
        np.array([o.cell for o in objects], np.int64),
        np.cumsum([0, *map(len, words)], dtype=np.int64),
        np.array([w for some in words for w in some], np.uint64),
    )


def gather(
    table: GridTable, subs: list[Sub], objects: list[Obj], shards: int, discard: bool
) -> list[CellStats]:
    """What each shard has to say, by dealing everything; each subscription was inserted once."""
    stats = []
    for shard in range(shards):
        mine: dict[int, list[Sub]] = {}
        words: dict[int, dict[int, list[Sub]]] = {}
        for s in subs:
            for cell in s.cells:
                here = [h for h in s.hooks if owner(table, cell, h) == shard]
                if here:
                    mine.setdefault(cell, []).append(s)
                for h in here:
                    words.setdefault(cell, {}).setdefault(h, []).append(s)
        seen: dict[int, int] = {}
        for o in objects:
            used = {h for s in subs if o.cell in s.cells for h in s.hooks}
            by = [w for w in [*o.words, int(UNIVERSAL)] if w in used or not discard]
            if any(owner(table, o.cell, w) == shard for w in by):
                seen[o.cell] = seen.get(o.cell, 0) + 1
        stats.append(_stats(mine, words, seen))
    return stats


def _stats(
    mine: dict[int, list[Sub]], words: dict[int, dict[int, list[Sub]]], seen: dict[int, int]
) -> CellStats:
    cells = sorted({*mine, *seen})
    posted = [sorted(words.get(c, {}).items()) for c in cells]
    flat = [entry for some in posted for entry in some]
    held = np.array([len(mine.get(c, [])) for c in cells], float)
    return CellStats(
        np.array(cells, np.int64),
        np.array([seen.get(c, 0) for c in cells], float),
        held,
        held,
        np.zeros(len(cells)),
        np.array([sum(s.size for s in mine.get(c, [])) for c in cells], np.int64),
        np.cumsum([0, *map(len, posted)], dtype=np.int64),
        np.array([w for w, _ in flat], np.uint64),
        np.array([len(some) for _, some in flat], np.int64),
        np.array([sum(s.size for s in some) for _, some in flat], np.int64),
    )


# -- Phase I -------------------------------------------------------------------------------------


def divide(
    held: list[int], holding: list[set[int]], c: tuple[float, ...], each: float, per: float,
    sigma: float,
) -> list[int]:  # fmt: skip
    """Part 0 or 1 of each word: the least increase of load within `sigma`, else the less loaded."""

    def load(words: list[int]) -> float:
        o = per * len(set().union(*(holding[w] for w in words)))
        q = sum(held[w] for w in words)
        return c[0] * (o * q) + c[1] * o + each * q

    parts: tuple[list[int], list[int]] = ([], [])
    for w in sorted(range(len(held)), key=lambda w: -load([w])):
        now = [load(part) if part else 0.0 for part in parts]
        then = [load([*part, w]) for part in parts]
        less = min((0, 1), key=lambda i: (now[i], len(parts[i]), i))
        more = 1 - less
        fits = bool(parts[less]) and then[more] <= sigma * now[less]
        cheaper = then[more] - now[more] < then[less] - now[less]
        parts[more if fits and cheaper else less].append(w)
    return [0 if w in parts[0] else 1 for w in range(len(held))]


def worker_loads(stats: list[CellStats], costs: Costs) -> list[float]:
    """The load of each shard."""
    return [worker_load(s, costs) for s in stats]
