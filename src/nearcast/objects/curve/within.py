"""Rows inside regions: by runs of the tree, and by the lists of words within these."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.model.geometry import region_contains
from nearcast.model.jit import njit
from nearcast.objects.base import Queries, Regions
from nearcast.objects.curve.index import CurveIndex
from nearcast.objects.slices import Columns
from nearcast.objects.tree import outer_boxes_of, runs_in
from nearcast.objects.where import LISTS, NONE, Plan, found_before, in_period, plan_of, true_of

__all__ = ["first_from", "matching_rows", "rows_within"]

# What it takes to look at a row of a run, to find a run in a list, and to look at a row of a
# list, which is anywhere in memory; relative to each other.
_ROW, _FIND, _JUMP = 1, 12, 8

Longs = NDArray[np.int64]


@njit
def rows_within(
    space: int, c: Columns, ix: CurveIndex, q: Queries, r: Regions, which: Longs, limits: Longs
) -> tuple[Longs, Longs, int]:
    """(queries, a row that each found, how many rows were examined)."""
    owner = np.empty(256, np.int64)
    rows = np.empty(256, np.int64)
    n = 0
    examined = 0
    for i in which:
        plan = plan_of(c, ix.list_starts, q, i, limits)
        if plan.sort == NONE:
            continue
        data = r.numbers[r.offsets[i] : r.offsets[i + 1]]
        code = r.code[i]
        runs, m = runs_in(space, ix.tree, len(c.at), code, data, outer_boxes_of(r, i))
        before = n
        rows, n, seen = matching_rows(space, c, ix, q, i, plan, code, data, runs[:m], rows, n)
        examined += seen
        if len(owner) < len(rows):
            more = np.empty(len(rows), np.int64)
            more[:before] = owner[:before]
            owner = more
        owner[before:n] = i
    return owner[:n].copy(), rows[:n].copy(), examined


@njit
def matching_rows(
    space: int,
    c: Columns,
    ix: CurveIndex,
    q: Queries,
    i: int,
    plan: Plan,
    code: int,
    data: NDArray[np.float64],
    runs: Longs,
    rows: Longs,
    n: int,
) -> tuple[Longs, int, int]:
    """Append the rows of runs that match to `rows[:n]`: (rows, n, how many were examined)."""
    if plan.sort == LISTS and _lists_are_cheaper(ix, plan, runs, len(c.at)):
        return _by_lists(space, c, ix, q, i, plan, code, data, runs, rows, n)
    examined = 0
    for run in range(len(runs)):
        first, last, inside = runs[run]
        rows = _with_room(rows, n + last - first)
        examined += last - first
        for row in range(first, last):
            if not inside and not region_contains(space, code, data, c.at[row, 0], c.at[row, 1]):
                continue
            if (plan.covered or in_period(c, q, i, row)) and (
                len(plan.tokens) == 0 or true_of(plan, c, row)
            ):
                rows[n] = row
                n += 1
    return rows, n, examined


@njit
def _with_room(rows: Longs, needed: int) -> Longs:
    """The same rows in an array with room for so many."""
    if needed <= len(rows):
        return rows
    more = np.empty(max(needed, 2 * len(rows)), np.int64)
    more[: len(rows)] = rows
    return more


@njit(lean=True)
def _lists_are_cheaper(ix: CurveIndex, plan: Plan, runs: Longs, n: int) -> bool:
    total = 0
    for run in range(len(runs)):
        total += runs[run, 1] - runs[run, 0]
    cost = 0.0
    for code in plan.lists:
        held = np.int64(ix.list_starts[code + 1]) - np.int64(ix.list_starts[code])
        cost += float(min(len(runs) * _FIND, held)) + _JUMP * held * (total / n)
    return cost < total * _ROW


@njit(lean=True)
def first_from(lists: NDArray[np.uint32], lo: int, hi: int, row: int) -> int:
    """The first place from `lo` on, before `hi`, whose row is not below `row`; else `hi`."""
    step = 1
    top = lo
    while top < hi and lists[top] < row:
        lo = top + 1
        top += step
        step *= 2
    top = min(top, hi)
    while lo < top:
        mid = (lo + top) >> 1
        if lists[mid] < row:
            lo = mid + 1
        else:
            top = mid
    return lo


@njit
def _by_lists(
    space: int,
    c: Columns,
    ix: CurveIndex,
    q: Queries,
    i: int,
    plan: Plan,
    code: int,
    data: NDArray[np.float64],
    runs: Longs,
    rows: Longs,
    n: int,
) -> tuple[Longs, int, int]:
    """`matching_rows` by the lists of a plan. A row on several of them counts on the first."""
    examined = 0
    for j in range(len(plan.lists)):
        at = np.int64(ix.list_starts[plan.lists[j]])
        end = np.int64(ix.list_starts[plan.lists[j] + 1])
        for run in range(len(runs)):
            first, last, inside = runs[run]
            at = first_from(ix.lists, at, end, first)
            while at < end:
                row = np.int64(ix.lists[at])
                if row >= last:
                    break
                at += 1
                examined += 1
                if not (plan.covered or in_period(c, q, i, row)):
                    continue
                if not inside and not region_contains(
                    space, code, data, c.at[row, 0], c.at[row, 1]
                ):
                    continue
                if (plan.proved or true_of(plan, c, row)) and not found_before(plan, c, row, j):
                    rows = _with_room(rows, n + 1)
                    rows[n] = row
                    n += 1
            if at >= end:
                break
    return rows, n, examined
