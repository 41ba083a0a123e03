"""Range subscriptions as flat arrays: what a table deals, and what a plan is made from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index.base import LocalIndex, boxes_by, wanted_words
from nearcast.kernels.ragged import frozen, places
from nearcast.routing.base import Sample

Numbers = NDArray[np.int64]
Words = NDArray[np.uint64]
Reals = NDArray[np.float64]
_OUTLIERS = 1000  # one object in so many may lie outside the bounds on each side


class RegionSurvey(NamedTuple):
    """Subscriptions: ids, outer boxes, and the words they can be posted under.

    Words are the cover of an OR, or all words of a conjunction; none: any object may match.
    """

    id_hash: Words  # [n]
    box_offsets: Numbers  # [n + 1]
    boxes: Reals  # [b, 4] minx, miny, maxx, maxy
    word_offsets: Numbers  # [n + 1]
    words: Words
    conjunction: NDArray[np.bool_]  # [n]


def survey_of(controls: pa.RecordBatch, id_hash: Words) -> RegionSurvey:
    """Subscribes of the shape `regions`, rows of REGIONS, as a survey."""
    return RegionSurvey(
        *(frozen(a) for a in (id_hash, *boxes_by(controls), *wanted_words(controls)))
    )


def survey_at(index: LocalIndex, slots: Numbers) -> RegionSurvey:
    """The subscriptions in slots of an index, without their ids: dealing needs none."""
    ids = np.zeros(len(slots), np.uint64)
    return RegionSurvey(
        *(frozen(a) for a in (ids, *index.boxes(slots), *index.wanted_words(slots)))
    )


def join(surveys: list[RegionSurvey]) -> RegionSurvey:
    """One survey of all, with each id once: copies of a subscription are alike."""
    if not surveys:
        none = np.zeros(1, np.int64)
        words = np.empty(0, np.uint64)
        return RegionSurvey(words, none, np.empty((0, 4)), none, words, np.empty(0, bool))
    parts = [np.concatenate(columns) for columns in zip(*(_lengths(s) for s in surveys))]
    id_hash, box_counts, boxes, word_counts, words, conjunction = parts
    whole = RegionSurvey(
        id_hash, _offsets(box_counts), boxes, _offsets(word_counts), words, conjunction
    )
    return take(whole, np.unique(id_hash, return_index=True)[1])


def take(survey: RegionSurvey, rows: Numbers) -> RegionSurvey:
    """Some of the subscriptions, in the order of `rows`."""
    box_offsets, at = places(survey.box_offsets[rows], np.diff(survey.box_offsets)[rows])
    word_offsets, of = places(survey.word_offsets[rows], np.diff(survey.word_offsets)[rows])
    return RegionSurvey(
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


def bounds_of(
    sample: Sample,
    survey: RegionSurvey,
    hint: tuple[float, float, float, float] | None = None,
) -> Reals:
    """The hint, if there is one; else where nearly all objects lie; without objects, all finite
    edges of boxes. What lies outside belongs to the cells at the border."""
    if hint is not None:
        return np.array(hint, np.float64)
    if len(sample.x):
        skip = len(sample.x) // _OUTLIERS
        xs, ys = np.sort(sample.x), np.sort(sample.y)
        return np.array([xs[skip], ys[skip], xs[-1 - skip], ys[-1 - skip]])
    sides = [survey.boxes[:, axis::2].ravel() for axis in range(2)]
    xs, ys = (s[np.isfinite(s)] for s in sides)
    if len(xs) == 0 or len(ys) == 0:
        return np.array([0.0, 0.0, 1.0, 1.0])
    return np.array([xs.min(), ys.min(), xs.max(), ys.max()])


def _lengths(s: RegionSurvey) -> RegionSurvey:
    return s._replace(box_offsets=np.diff(s.box_offsets), word_offsets=np.diff(s.word_offsets))


def _offsets(lengths: Numbers) -> Numbers:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
