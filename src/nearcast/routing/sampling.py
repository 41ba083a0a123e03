"""Samples of objects: made from what a shard sees, and thinned."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.ragged import gather
from nearcast.routing.base import Sample
from nearcast.wire.tables import ObjectColumns


def thinned(sample: Sample, most: int) -> tuple[Sample, int]:
    """At most about so many objects, every n-th; and n, the number that each stands for."""
    step = -(-len(sample.x) // most) if most else 1
    if step <= 1:
        return sample, 1
    return taken(sample, np.arange(0, len(sample.x), step)), step


def taken(sample: Sample, rows: NDArray[np.int64]) -> Sample:
    """Some of the objects."""
    words = gather(sample.words, sample.word_offsets[rows], np.diff(sample.word_offsets)[rows])
    return Sample(sample.x[rows], sample.y[rows], *words)


def sample_of(objects: ObjectColumns) -> Sample:
    """Objects, in the order of the log, as decisions see them."""
    o, rows = objects, objects.order
    lengths = np.diff(o.word_offsets)[rows]
    return Sample(o.x[rows], o.y[rows], *gather(o.words, o.word_offsets[rows], lengths))
