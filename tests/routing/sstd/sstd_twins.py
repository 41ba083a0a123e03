"""SSTD in plain Python, and samples of objects and queries for tests to draw."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.hashing import mix64
from nearcast.routing.base import Sample
from nearcast.routing.grid.survey import RegionSurvey
from nearcast.routing.sstd.cells import LEVELS, Cell
from nearcast.routing.sstd.qt_tree import LEAF, SPATIAL, QtTree, cell_of, leaves_of
from nearcast.wire.words import hash_words

WORDS = hash_words([f"word{i}" for i in range(400)])
MASK = (1 << 64) - 1


def ragged(rows: list[Any]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    offsets = np.append(0, np.cumsum([len(row) for row in rows])).astype(np.int64)
    return offsets, np.concatenate([np.empty(0, np.uint64), *rows])


def town(rng: np.random.Generator, n: int = 600, side: float = 0.2) -> tuple[Sample, RegionSurvey]:
    """Objects around two centres with words of a power law, and queries like them."""
    centre = rng.choice([0.2, 0.7], n)
    x, y = np.clip(rng.normal(centre, 0.08, (2, n)), 0, 1)
    held = [np.unique(WORDS[row]) for row in rng.zipf(1.3, (n, 4)) % 400]
    low = np.stack([x, y], axis=1)[rng.permutation(n)]
    queried = [np.unique(WORDS[row]) for row in rng.zipf(1.3, (n, 2)) % 400]
    queried = [q[: rng.integers(0, 3)] for q in queried]
    boxes = np.hstack([low - side, low + side])
    ids = hash_words([f"s{i}" for i in range(n)])
    survey = RegionSurvey(ids, np.arange(n + 1), boxes, *ragged(queried), rng.random(n) < 0.7)
    return Sample(x, y, *ragged(held)), survey


def unit(value: float, low: float, high: float) -> int:
    if value <= low:
        return 0
    if value >= high:
        return (1 << LEVELS) - 1
    part = (0.5 * value - 0.5 * low) / (0.5 * high - 0.5 * low)
    return min(int(part * (1 << LEVELS)), (1 << LEVELS) - 1)


def inside(cell: Cell, across: int, up: int) -> bool:
    shift = LEVELS - cell.level
    return (across >> shift, up >> shift) == (cell.column, cell.line)


def overlap(cell: Cell, units: tuple[int, int, int, int]) -> bool:
    left, low, right, high = cell.units
    return units[0] <= right and units[2] >= left and units[1] <= high and units[3] >= low


def leaves_of_box(tree: QtTree, box: list[float]) -> set[int]:
    """All leaves whose cell the box touches, by looking at each."""
    b = tree.bounds.tolist()
    units = (
        unit(box[0], b[0], b[2]), unit(box[1], b[1], b[3]),
        unit(box[2], b[0], b[2]), unit(box[3], b[1], b[3]),
    )  # fmt: skip
    return {n for n in leaves_of(tree).tolist() if overlap(cell_of(tree, n), units)}


def plain_mix(h: int) -> int:
    return int(mix64(np.uint64(h)))


class PlainTree:
    """Routing of objects as section 4.2 says it, node by node with sets of words."""

    def __init__(self, tree: QtTree) -> None:
        self.tree = tree
        self.count = tree.objects.tolist()
        self.p: dict[int, dict[int, tuple[float, float]]] = {}
        self.lists: dict[int, set[int]] = {}
        self.h = np.stack([tree.h_srq, tree.h_skq], axis=1).tolist()
        for node in range(len(tree.kind)):
            first, stop = tree.word_offsets[node : node + 2].tolist()
            words = tree.words[first:stop].tolist()
            p = zip(tree.p_srq[first:stop].tolist(), tree.p_skq[first:stop].tolist(), strict=True)
            self.p[node] = dict(zip(words, p, strict=True))
            for c in range(4) if tree.kind[node] not in (LEAF, SPATIAL) else []:
                held = tree.held[first:stop] >> c & 1
                self.lists[int(tree.child[node]) + c] = set(
                    tree.words[first:stop][held > 0].tolist()
                )

    def covered(self, h: float, type_: int) -> float:
        out = 0.0
        for share in reversed(self.tree.lengths[type_].tolist()):
            out = out * h + share
        return out

    def route(self, x: float, y: float, words: list[int], learn: bool) -> int:
        t = self.tree
        b = t.bounds.tolist()
        across, up = unit(x, b[0], b[2]), unit(y, b[1], b[3])
        spread = plain_mix(across << LEVELS | up)
        node = 0
        while t.kind[node] != LEAF:
            first = int(t.child[node])
            if t.kind[node] == SPATIAL:
                [node] = [n for n in range(first, first + 4) if inside(cell_of(t, n), across, up)]
                continue
            for word in words:
                spread = plain_mix(spread ^ word)
            spread = plain_mix(spread)
            ranks = []
            for child in range(first, first + 4):
                new = [w for w in words if w in self.p[node] and w not in self.lists[child]]
                brings = [sum(self.p[node][w][i] for w in new) for i in range(2)]
                more = 0.0
                for i, price in enumerate((t.price_srq[node], t.price_skq[node])):
                    h = self.h[child][i]
                    was, is_ = self.covered(h, i), self.covered(min(h + brings[i], 1.0), i)
                    more += float(price) * (is_ + self.count[child] * (is_ - was))
                ranks.append((more, brings[0] + brings[1]))
            best = [c for c in range(4) if ranks[c] == min(ranks)]
            child = first + best[spread % len(best)]
            if learn:
                new = [w for w in words if w in self.p[node] and w not in self.lists[child]]
                for i in range(2):
                    more = sum(self.p[node][w][i] for w in new)
                    self.h[child][i] = min(self.h[child][i] + more, 1.0)
                self.lists[child].update(w for w in words if w in self.p[node])
                self.count[child] += 1.0
            node = child
        return node
