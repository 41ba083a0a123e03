"""What a plan of DkM-SKS learns of running subscriptions: their places, balls and words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.kernels.slots import CONJUNCTION
from nearcast.model.extent import circle_boxes
from nearcast.model.jit import njit
from nearcast.model.space import Space
from nearcast.routing.arrays import Arrays
from nearcast.routing.base import Sample
from nearcast.wire.tables import lists, numbers


class Survey(NamedTuple):
    """Running subscriptions that a plan deals out (S of DkM-SKS), as flat arrays."""

    id_hash: NDArray[np.uint64]  # [m]
    x: NDArray[np.float64]  # [m]
    y: NDArray[np.float64]  # [m]
    boxes: NDArray[np.float64]  # [m, 4] minx, miny, maxx, maxy of B(s); infinite below k results
    word_offsets: NDArray[np.int64]  # [m + 1]
    words: NDArray[np.uint64]  # cover words; a conjunction has one; none: any object may match


def survey(
    controls: pa.RecordBatch, results: pa.RecordBatch, id_hash: NDArray[np.uint64], space: Space
) -> Arrays:
    """What a plan must know of subscriptions, rows of BALLS with their results (NEAREST)."""
    x, y = numbers(controls["x"]), numbers(controls["y"])
    reach = np.full(len(x), np.inf)
    starts, distances = lists(results["distance"], np.float64)
    slots = numbers(results["slot"])
    full = np.diff(starts) >= numbers(controls["k"])[slots]
    full &= numbers(controls["window"])[slots] == 0
    reach[slots[full]] = distances[starts[1:][full] - 1]
    cover, cover_words = lists(controls["cover"], np.uint64)
    program, program_words = lists(controls["program"], np.uint64)
    conjunction = numbers(controls["flags"]) & CONJUNCTION != 0
    return {
        "id_hash": id_hash,
        "x": x,
        "y": y,
        "boxes": _balls(space.code, x.copy(), y.copy(), reach),
        "cover": np.diff(cover),
        "cover_words": cover_words,
        "conjunction": np.where(conjunction, np.diff(program), 0),
        "conjunction_words": program_words[np.repeat(conjunction, np.diff(program))],
    }


@njit
def _balls(
    space: int, x: NDArray[np.float64], y: NDArray[np.float64], reach: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The box around each ball: all longitudes where it reaches over the antimeridian."""
    out = np.empty((len(x), 4))
    boxes = np.empty((2, 4))
    for i in range(len(x)):
        if reach[i] == np.inf:
            boxes[0, 0], boxes[0, 1], boxes[0, 2], boxes[0, 3] = -np.inf, -np.inf, np.inf, np.inf
        elif circle_boxes(space, x[i], y[i], reach[i], boxes) == 2:
            boxes[0, 0], boxes[0, 2] = -180.0, 180.0
        out[i] = boxes[0]
    return out


def join_surveys(parts: list[Arrays], sample: Sample) -> Survey:
    """One survey of all shards. A conjunction is known by its rarest word in the sample."""
    whole = {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}
    x, cover, conjunction = whole["x"], whole["cover"], whole["conjunction"]
    conjunction_words = whole["conjunction_words"]
    known, counts = np.unique(sample.words, return_counts=True)
    at = np.minimum(np.searchsorted(known, conjunction_words), max(len(known) - 1, 0))
    frequency = np.zeros(len(conjunction_words), np.int64)
    if len(known):
        frequency = np.where(known[at] == conjunction_words, counts[at], 0)
    rows = np.repeat(np.arange(len(x)), conjunction)
    sort = np.lexsort((frequency, rows))
    has, first = np.unique(rows[sort], return_index=True)
    chosen = has[cover[has] == 0]
    rarest = conjunction_words[sort[first]][cover[has] == 0]
    # Both kinds, subscription by subscription.
    owner = np.concatenate([np.repeat(np.arange(len(x)), cover), chosen])
    words = np.concatenate([whole["cover_words"], rarest])
    order = np.argsort(owner, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(x)))])
    return Survey(
        whole["id_hash"], x, whole["y"], whole["boxes"], offsets.astype(np.int64), words[order]
    )
