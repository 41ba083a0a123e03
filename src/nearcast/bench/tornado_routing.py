"""Figure 7 of Tornado: routing points and ranges by the A-Grid, a uniform grid, an R-tree."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from nearcast.bench.dealt import Figure, Say, Stream, sample_of
from nearcast.bench.tornado import GRID, Setting
from nearcast.bench.tweets import tornado_stream
from nearcast.model.errors import NearcastError
from nearcast.routing.grid.survey import bounds_of
from nearcast.routing.grid.table import GridTable
from nearcast.routing.tornado.a_grid import AGrid, Found, Ranges, a_grid_of, partitions_of
from nearcast.routing.tornado.grid_scan import grid_scan
from nearcast.routing.tornado.neighbour_search import neighbour_search
from nearcast.routing.tornado.r_tree import r_tree_of, r_tree_search
from nearcast.routing.tornado.table import object_cells, ranges_of, tornado_table

A_GRID, UNIFORM, R_TREE = "A-Grid", "Grid", "R-tree"
PARTITIONS = (4, 16, 64, 256, 1024)
SIDES = (0.001, 0.005, 0.01, 0.02, 0.05)  # of the spatial range: ".1% to 5%"
USUAL = 64  # partitions of figure 7(b)
_REPEATS = 9
_MOST = 20_000  # points or ranges routed


def run_routing(setting: Setting, say: Say) -> Iterator[Figure]:
    """Points with more and more partitions, then ranges that grow."""
    stream = tornado_stream(setting.queries, min(setting.objects, _MOST), 1, setting.seed)
    for partitions in PARTITIONS:
        say(f"figure 7(a): {partitions} partitions …")
        table, grid = _planned(stream, partitions)
        sample = sample_of(stream.steps[0].objects)
        columns, rows = object_cells(table, sample.x, sample.y)
        points = np.stack([columns, rows, columns, rows], axis=1).astype(np.int32)
        yield from _searched("7(a)", grid, points, {"partitions": partitions})
    table, grid = _planned(stream, USUAL)
    for side in SIDES:
        say(f"figure 7(b): ranges of {side:.1%} …")
        asked = tornado_stream(min(setting.queries, _MOST), 1, 1, setting.seed, side=side)
        ranges = ranges_of(table, asked.survey().boxes)
        yield from _searched("7(b)", grid, ranges, {"partitions": USUAL, "side": side})


def _planned(stream: Stream, partitions: int) -> tuple[GridTable, AGrid]:
    survey = stream.survey()
    bounds = bounds_of(stream.sample, survey)
    table = tornado_table(stream.sample, survey, bounds, GRID, partitions)
    return table, a_grid_of(partitions_of(table.cells, partitions), GRID)


def _searched(figure: str, grid: AGrid, ranges: Ranges, what: Figure) -> Iterator[Figure]:
    """The three on the same ranges; they must find the same partitions."""
    tree = r_tree_of(grid.partitions)
    ways: dict[str, Callable[[], Found]] = {
        A_GRID: lambda: neighbour_search(grid, ranges),
        UNIFORM: lambda: grid_scan(grid, ranges),
        R_TREE: lambda: r_tree_search(tree, ranges),
    }
    answers = set()
    for name, way in ways.items():
        found = way()  # compiles
        answers.add(_answer(found))
        if len(answers) > 1:
            raise NearcastError(f"bench: {name} finds other partitions")
        times = []
        for _ in range(_REPEATS):
            started = time.thread_time()
            way()
            times.append(time.thread_time() - started)
        n = len(ranges)
        yield {
            "figure": figure,
            "structure": name,
            **what,
            "routed": n,
            "routing_us": float(f"{1e6 * min(times) / n:.4g}"),
            "steps": round(float(found.steps.mean()), 2),
            "found": round(len(found.partitions) / n, 3),
        }


def _answer(found: Found) -> tuple[bytes, bytes]:
    """The partitions of each range, in order."""
    owner = np.repeat(np.arange(len(found.offsets) - 1), np.diff(found.offsets))
    order = np.lexsort((found.partitions, owner))
    return found.offsets.tobytes(), found.partitions[order].tobytes()
