"""Figure 7 of Tornado: routing points and ranges by the A-Grid, a uniform grid, an R-tree."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.ragged import frozen
from nearcast.model.errors import NearcastError
from nearcast.model.jit import njit
from nearcast.routing.grid.costs import object_cells, ranges_of
from nearcast.routing.grid.survey import bounds_of
from nearcast.routing.grid.table import GridTable
from nearcast.routing.tornado.a_grid import AGrid, Found, Ranges, a_grid_of, partitions_of
from nearcast.routing.tornado.grid_scan import grid_scan
from nearcast.routing.tornado.neighbour_search import neighbour_search
from nearcast.routing.tornado.r_tree import r_tree_of, r_tree_search
from nearcast.routing.tornado.table import tornado_table
from nearcast_bench.common.cluster import Stream, sample_of
from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.tornado.experiment import GRID, Setting
from nearcast_bench.tornado.stream import tornado_stream

A_GRID, UNIFORM, R_TREE = "A-Grid", "Grid", "R-tree"
PARTITIONS = (4, 16, 64, 256, 1024)
SIDES = (0.001, 0.005, 0.01, 0.02, 0.05)  # of the spatial range: ".1% to 5%"
USUAL = 64  # partitions of figure 7(b)
_PASSES = 9
_POINTS, _RANGES = 500_000, 20_000  # routed, at most


def run_routing(setting: Setting, say: Say) -> Iterator[Figure]:
    """Points with more and more partitions, then ranges that grow."""
    points = min(5 * setting.objects, _POINTS)
    stream = tornado_stream(setting.queries, points, 1, setting.seed)
    for partitions in PARTITIONS:
        say(f"figure 7(a): {partitions} partitions …")
        table, grid = _planned(stream, partitions)
        sample = sample_of(stream.steps[0].objects)
        at = object_cells(table, frozen(sample.x), frozen(sample.y))
        yield from _looked_up(grid, at, {"partitions": partitions})
    table, grid = _planned(stream, USUAL)
    for side in SIDES:
        say(f"figure 7(b): ranges of {side:.1%} …")
        queried = tornado_stream(min(setting.queries, _RANGES), 1, 1, setting.seed, side=side)
        ranges = ranges_of(table, queried.survey().boxes)
        yield from _searched("7(b)", grid, ranges, {"partitions": USUAL, "side": side})


def _planned(stream: Stream, partitions: int) -> tuple[GridTable, AGrid]:
    survey = stream.survey()
    bounds = bounds_of(stream.sample, survey)
    table = tornado_table(stream.sample, survey, bounds, GRID, partitions)
    return table, a_grid_of(partitions_of(table.cells, partitions), GRID)


Way = Callable[[], Found]


def _looked_up(
    grid: AGrid, at: tuple[NDArray[np.int32], NDArray[np.int32]], what: Figure
) -> Iterator[Figure]:
    """Points: the A-Grid and the grid read a cell, the tree is searched."""
    columns, rows = at
    points = np.stack([columns, rows, columns, rows], axis=1).astype(np.int32)
    tree = r_tree_of(grid.partitions)

    def read() -> Found:
        found = read_cells(grid.cells, columns, rows)
        return Found(np.arange(len(found) + 1), found, np.ones(len(found), np.int64))

    timed: dict[str, Callable[[], object]] = {
        A_GRID: lambda: read_cells(grid.cells, columns, rows),
        UNIFORM: lambda: read_cells(grid.cells, columns, rows),
        R_TREE: lambda: r_tree_search(tree, points),
    }
    found = {A_GRID: read(), UNIFORM: read(), R_TREE: r_tree_search(tree, points)}
    yield from _reported("7(a)", len(points), found, timed, what)


@njit
def read_cells(
    cells: NDArray[np.int32], columns: NDArray[np.int32], rows: NDArray[np.int32]
) -> NDArray[np.int32]:
    """The partition of each point: what routing an object takes."""
    out = np.empty(len(rows), np.int32)
    for i in range(len(rows)):
        out[i] = cells[rows[i], columns[i]]
    return out


def _searched(figure: str, grid: AGrid, ranges: Ranges, what: Figure) -> Iterator[Figure]:
    """The three on the same ranges."""
    tree = r_tree_of(grid.partitions)
    ways: dict[str, Way] = {
        A_GRID: lambda: neighbour_search(grid, ranges),
        UNIFORM: lambda: grid_scan(grid, ranges),
        R_TREE: lambda: r_tree_search(tree, ranges),
    }
    found = {name: way() for name, way in ways.items()}  # compiles
    yield from _reported(figure, len(ranges), found, ways, what)


def _reported(
    figure: str,
    n: int,
    found: Mapping[str, Found],
    ways: Mapping[str, Callable[[], object]],
    what: Figure,
) -> Iterator[Figure]:
    """Times of the ways, taken in turn; they must have found the same partitions."""
    if len({_answer(f) for f in found.values()}) > 1:
        raise NearcastError(f"bench: not all of {', '.join(found)} find the same partitions")
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(_PASSES):
        for name, way in ways.items():
            started = time.thread_time()
            way()
            seconds[name].append(time.thread_time() - started)
    for name, times in seconds.items():
        yield {
            "figure": figure,
            "structure": name,
            **what,
            "routed": n,
            "routing_us": float(f"{1e6 * min(times) / n:.4g}"),
            "middle_us": float(f"{1e6 * float(np.median(times)) / n:.4g}"),
            "steps": round(float(found[name].steps.mean()), 2),
            "found": round(len(found[name].partitions) / n, 3),
        }


def _answer(found: Found) -> tuple[bytes, bytes]:
    """The partitions of each range, in order."""
    owner = np.repeat(np.arange(len(found.offsets) - 1), np.diff(found.offsets))
    order = np.lexsort((found.partitions, owner))
    return found.offsets.tobytes(), found.partitions[order].tobytes()
