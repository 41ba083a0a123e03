"""Range subscriptions as flat arrays: what a table deals, and what a plan is made from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index.base import LocalIndex, asked_by, boxes_by
from nearcast.kernels.ragged import frozen, places
from nearcast.routing.base import Sample

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
    return RangeSurvey(*(frozen(a) for a in (id_hash, *boxes_by(controls), *asked_by(controls))))


def survey_at(index: LocalIndex, slots: Numbers) -> RangeSurvey:
    """The subscriptions in slots of an index, without their ids: who deals needs none."""
    ids = np.zeros(len(slots), np.uint64)
    return RangeSurvey(*(frozen(a) for a in (ids, *index.boxes(slots), *index.asked(slots))))


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
