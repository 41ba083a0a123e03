"""Decisions as data, and the routing table that follows from one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.hashing import mix64_array
from nearcast.routing.grid.cells import Map, map_of
from nearcast.routing.grid.table import GridTable, sealed
from nearcast.routing.ps2stream.adjust.stats import Numbers, Reals, Words

SPLIT = "split"  # Phase I: words of a cell go to another shard, the others stay
MERGE = "merge"  # Phase I: a part of a cell joins another part of it
MIGRATE = "migrate"  # Phase II: cells go to another shard
REPARTITION = "repartition"  # a new strategy places, the old one keeps its subscriptions
RETIRE = "retire"  # the subscriptions of the old strategy move to the new one

NOBODY = -1


class Decision(NamedTuple):
    """What shall change, and why. `RETIRE` and `REPARTITION` are about all shards and cells."""

    kind: str
    origin: int  # the shard that gives
    target: int  # the shard that takes
    cells: Numbers  # row · side + column; whatever of them the origin owns
    words: Words  # SPLIT: only these; otherwise none
    before: Reals  # load of each shard
    after: Reals  # and as it should be then
    size: int  # bytes that move
    steps: int  # work done to choose
    reason: str


def about_all(kind: str, before: Reals, after: Reals, why: str) -> Decision:
    """A decision about all shards and cells."""
    none, words = np.empty(0, np.int64), np.empty(0, np.uint64)
    return Decision(kind, NOBODY, NOBODY, none, words, before, after, 0, 0, why)


def apply(decision: Decision, table: GridTable) -> GridTable:
    """The table after a local decision; a global one leaves tables as they are.

    Only owners change, and only from `origin` to `target` in the cells named. The words and counts
    that say what a subscription is posted under stay, and so does what other shards own. A cell
    that the origin does not own (any more) is left alone.
    """
    if decision.kind not in (SPLIT, MERGE, MIGRATE):
        return table
    cells = table.cells.ravel().copy()
    maps = [map_of(table, n) for n in range(len(table.map_offsets) - 1)]
    changed: dict[int, int] = {}  # what a cell held: what it shall hold
    for cell in decision.cells:
        held = int(cells[cell])
        if held not in changed:
            changed[held] = _given(held, maps, decision)
        cells[cell] = changed[held]
    return _assembled(table, cells.reshape(table.cells.shape), maps)


def owns(table: GridTable, cell: int, shard: int) -> bool:
    """Does the shard own anything in a cell?"""
    held = int(table.cells.flat[cell])
    if held >= 0:
        return held == shard
    _, shards, workers = map_of(table, -1 - held)
    return shard in shards or shard in workers


def window(table: GridTable, cell: int) -> GridTable:
    """A table of this one cell, cell 0, with the same owners."""
    held = int(table.cells.flat[cell])
    kept = [map_of(table, -1 - held)] if held < 0 else []
    return _assembled(table, np.array([[-1 if kept else held]], np.int32), kept)


def _given(held: int, maps: list[Map], decision: Decision) -> int:
    """What a cell that holds `held` shall hold; a map that is new goes to the end of `maps`."""
    origin, target = decision.origin, decision.target
    if decision.kind != SPLIT:
        if held >= 0:
            return target if held == origin else held
        words, shards, workers = maps[-1 - held]
        # In its place: words that the map does not know keep their owner unless it is the origin.
        maps.append((words, _instead(shards, origin, target), _instead(workers, origin, target)))
        return -len(maps)
    if held >= 0:
        if held != origin:
            return held
        none = np.empty(0, np.int32)
        maps.append(_with_words((decision.words[:0], none, _one(origin)), decision))
    else:
        maps.append(_with_words(maps[-1 - held], decision))
    return -len(maps)


def _with_words(old: Map, decision: Decision) -> Map:
    """The map with the decision's words at its target, as far as the origin owned them."""
    words, shards, workers = old
    mine = np.unique(decision.words)
    owner = _owners(old, mine)
    mine = mine[owner == decision.origin]
    others = ~np.isin(words, mine)
    joined = np.concatenate([words[others], mine])
    target = np.full(len(mine), decision.target, np.int32)
    order = np.argsort(joined, kind="stable")
    return joined[order], np.concatenate([shards[others], target])[order], workers


def _owners(known: Map, words: Words) -> NDArray[np.int32]:
    """The owner of each word by a map, as `grid.table.owner_in` has it."""
    its_words, shards, workers = known
    dealt = workers[(mix64_array(words) % np.uint64(len(workers))).astype(np.int64)]
    if not len(its_words):
        return dealt
    at = np.minimum(np.searchsorted(its_words, words), len(its_words) - 1)
    return np.where(its_words[at] == words, shards[at], dealt)


def _instead(shards: NDArray[np.int32], origin: int, target: int) -> NDArray[np.int32]:
    return np.where(shards == origin, np.int32(target), shards).astype(np.int32)


def _one(shard: int) -> NDArray[np.int32]:
    return np.array([shard], np.int32)


def _assembled(table: GridTable, cells: NDArray[np.int32], maps: list[Map]) -> GridTable:
    """The table of these maps: equal ones once, in the order of cells, none that no cell uses.

    A map with a single shard is no map: its cells are that shard's.
    """
    numbers: dict[tuple[bytes, ...], int] = {}
    kept: list[Map] = []
    becomes: dict[int, int] = {}
    for held in dict.fromkeys(cells[cells < 0].tolist()):
        words, shards, workers = maps[-1 - held]
        everyone = np.union1d(shards, workers)
        if len(everyone) == 1:
            becomes[held] = int(everyone[0])
            continue
        key = (words.tobytes(), shards.tobytes(), workers.tobytes())
        if key not in numbers:
            kept.append((words, shards, workers))
            numbers[key] = len(kept)
        becomes[held] = -numbers[key]
    if maps:
        held_now = np.array([becomes.get(h, 0) for h in range(-len(maps), 0)], np.int32)
        cells = np.where(cells < 0, held_now[np.minimum(cells, -1) + len(maps)], cells)
    columns = list(zip(*kept, strict=True)) or [(), (), ()]
    return sealed(
        table._replace(
            cells=cells,
            map_offsets=_offsets(columns[0]),
            map_words=np.concatenate([np.empty(0, np.uint64), *columns[0]]),
            map_shards=np.concatenate([np.empty(0, np.int32), *columns[1]]),
            worker_offsets=_offsets(columns[2]),
            workers=np.concatenate([np.empty(0, np.int32), *columns[2]]),
        )
    )


def _offsets(parts: tuple[NDArray[Any], ...]) -> Numbers:
    return np.concatenate([[0], np.cumsum([len(p) for p in parts], dtype=np.int64)]).astype(
        np.int64
    )
