"""Range subscriptions as flat arrays: what a table deals, and what a plan is made from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index.base import asked_by
from nearcast.kernels.ragged import frozen, places
from nearcast.model.jit import njit
from nearcast.routing.base import Sample
from nearcast.wire.tables import lists

Numbers = NDArray[np.int64]
Words = NDArray[np.uint64]
Reals = NDArray[np.float64]
_OUTLIERS = 1000  # one object in so many may lie outside the bounds on each side


class RangeSurvey(NamedTuple):
    """Subscriptions: ids, outer boxes, and the words they can hang under.

    Words are the cover of an OR, or all words of a conjunction; none: any object may match.
    """

    id_hash: Words  # [n]
    box_offsets: Numbers  # [n + 1]
    boxes: Reals  # [b, 4] minx, miny, maxx, maxy
    word_offsets: Numbers  # [n + 1]
    words: Words
    conjunction: NDArray[np.bool_]  # [n]


def survey_of(controls: pa.RecordBatch, id_hash: Words) -> RangeSurvey:
    """Subscribes of kind range, rows of CONTROLS, as a survey."""
    box_offsets, boxes = _outer(
        *lists(controls["region"], np.float64), *lists(controls["boxes"], np.float64)
    )
    word_offsets, words, conjunction = asked_by(controls)
    return RangeSurvey(
        *(frozen(a) for a in (id_hash, box_offsets, boxes, word_offsets, words, conjunction))
    )


def join(surveys: list[RangeSurvey]) -> RangeSurvey:
    """One survey of all, an id once: copies of a subscription are alike."""
    if not surveys:
        none = np.zeros(1, np.int64)
        words = np.empty(0, np.uint64)
        return RangeSurvey(words, none, np.empty((0, 4)), none, words, np.empty(0, bool))
    parts = [np.concatenate(columns) for columns in zip(*(_lengths(s) for s in surveys))]
    id_hash, box_counts, boxes, word_counts, words, conjunction = parts
    whole = RangeSurvey(
        id_hash, _offsets(box_counts), boxes, _offsets(word_counts), words, conjunction
    )
    return take(whole, np.unique(id_hash, return_index=True)[1])


def take(survey: RangeSurvey, rows: Numbers) -> RangeSurvey:
    """Some of the subscriptions, in the order of `rows`."""
    box_offsets, at = places(survey.box_offsets[rows], np.diff(survey.box_offsets)[rows])
    word_offsets, of = places(survey.word_offsets[rows], np.diff(survey.word_offsets)[rows])
    return RangeSurvey(
        *(
            frozen(a)
            for a in (
                survey.id_hash[rows],
                box_offsets,
                survey.boxes[at],
                word_offsets,
                survey.words[of],
                survey.conjunction[rows],
            )
        )
    )


def bounds_of(sample: Sample, survey: RangeSurvey) -> Reals:
    """Where nearly all objects lie; without objects, all finite edges of boxes."""
    if len(sample.x):
        skip = len(sample.x) // _OUTLIERS
        xs, ys = np.sort(sample.x), np.sort(sample.y)
        return np.array([xs[skip], ys[skip], xs[-1 - skip], ys[-1 - skip]])
    sides = [survey.boxes[:, axis::2].ravel() for axis in range(2)]
    xs, ys = (s[np.isfinite(s)] for s in sides)
    if len(xs) == 0 or len(ys) == 0:
        return np.array([0.0, 0.0, 1.0, 1.0])
    return np.array([xs.min(), ys.min(), xs.max(), ys.max()])


def _lengths(s: RangeSurvey) -> RangeSurvey:
    return s._replace(box_offsets=np.diff(s.box_offsets), word_offsets=np.diff(s.word_offsets))


def _offsets(lengths: Numbers) -> Numbers:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


@njit
def _outer(
    region_offsets: Numbers, region: Reals, box_offsets: Numbers, boxes: Reals
) -> tuple[Numbers, Reals]:
    """The outer boxes of each row; without any, the region is its own box."""
    n = len(region_offsets) - 1
    offsets = np.zeros(n + 1, np.int64)
    for i in range(n):
        offsets[i + 1] = offsets[i] + max((box_offsets[i + 1] - box_offsets[i]) // 4, 1)
    out = np.empty((offsets[n], 4))
    for i in range(n):
        own = box_offsets[i + 1] == box_offsets[i]
        first = region_offsets[i] if own else box_offsets[i]
        for b in range(offsets[i], offsets[i + 1]):
            for side in range(4):
                out[b, side] = region[first + side] if own else boxes[first + side]
            first += 4
    return offsets, out
