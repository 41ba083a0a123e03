"""From the leaves of a kd^t-tree to the grid^t: the routing table with H1 (section IV-C)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.routing.grid.survey import Numbers, Words
from nearcast.routing.grid.table import GridTable, sealed
from nearcast.routing.ps2stream.nodes import Node
from nearcast.routing.ps2stream.workload import Region, Workload

Cells = NDArray[np.int32]


class Maps:
    """H1 of the cells that are divided by text, one map for all cells of a node."""

    def __init__(self) -> None:
        self.words: list[Words] = []
        self.shards: list[Numbers] = []
        self.workers: list[list[int]] = []

    def add(self, words: Words, shards: Numbers, workers: list[int]) -> int:
        """What a cell holds to point to a new map; the worker itself where there is only one."""
        if len(workers) == 1:
            return workers[0]
        order = np.argsort(words, kind="stable")
        self.words.append(words[order])
        self.shards.append(shards[order])
        self.workers.append(workers)
        return -len(self.words)


def grid_t(w: Workload, nodes: list[Node], workers: list[int]) -> GridTable:
    """The table of leaves, node i at worker `workers[i]`."""
    sharing: dict[Region, list[int]] = {}
    for i, node in enumerate(nodes):
        sharing.setdefault(node.region, []).append(i)
    cells, maps = np.zeros((w.side, w.side), np.int32), Maps()
    for (left, low, right, high), among in sharing.items():
        cell = workers[among[0]]
        if nodes[among[0]].terms is not None:
            terms = [_terms(nodes[i]) for i in among]
            shards = np.repeat([workers[i] for i in among], [len(t) for t in terms])
            words = w.vocabulary[np.concatenate(terms)]
            cell = maps.add(words, shards, sorted({workers[i] for i in among}))
        cells[low:high, left:right] = cell
    return table_of(w, cells, maps)


def _terms(node: Node) -> Numbers:
    return np.empty(0, np.int64) if node.terms is None else node.terms


def table_of(w: Workload, cells: Cells, maps: Maps) -> GridTable:
    """The table of cells, with the frequencies of the workload's words."""
    known = w.frequency > 0
    known[0] = False
    return sealed(
        GridTable(
            w.bounds,
            coarsest(cells),
            _offsets([len(m) for m in maps.words]),
            np.concatenate([*maps.words, np.empty(0, np.uint64)]),
            np.concatenate([*maps.shards, np.empty(0, np.int64)]),
            _offsets([len(m) for m in maps.workers]),
            np.array([worker for each in maps.workers for worker in each], np.int32),
            w.vocabulary[known],
            w.frequency[known],
        )
    )


def coarsest(cells: Cells) -> Cells:
    """The same grid with as few cells as the leaves allow ("granularity", section IV-C)."""
    while len(cells) % 2 == 0:
        quarter = cells[::2, ::2]
        if not all((cells[i::2, j::2] == quarter).all() for i in (0, 1) for j in (0, 1)):
            break
        cells = quarter
    return cells


def _offsets(lengths: list[int]) -> Numbers:
    return np.concatenate([[0], np.cumsum(np.array(lengths, np.int64))])
