"""The words of O_init as dense numbers, and subscriptions as lists of these."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.kernels.ragged import frozen
from nearcast.kernels.slots import CONJUNCTION
from nearcast.model.jit import njit
from nearcast.routing.base import Sample
from nearcast.routing.dkm.survey import Survey
from nearcast.wire.tables import lists, numbers

UNKNOWN = -1
_HIGH = np.uint64(48)  # the bits above it are the bucket


class Vocabulary(NamedTuple):
    """Words are hashes, so their highest bits lead to a short run of the sorted list.

    Word number i is `words[i]`; the number after the last stands for "any object".
    """

    words: NDArray[np.uint64]  # [v], ascending
    buckets: NDArray[np.int64]  # [2**16 + 1]: where the words with these highest bits begin
    frequency: NDArray[np.int64]  # [v + 1]: |O_lambda|; the last is |O_init|


class WantedWords(NamedTuple):
    """The words that subscriptions want, as numbers; a match holds at least one of them."""

    offsets: NDArray[np.int64]  # [n + 1]
    words: NDArray[np.int32]  # words that no object of O_init has are left out


def vocabulary_of(sample: Sample) -> Vocabulary:
    """The words of O_init with |O_lambda| of each; an object has a word once.

    Words that are not uint64 are refused: they passed through float64 and lost their low bits.
    """
    if sample.words.dtype != np.uint64:
        raise TypeError(f"words of a sample must be uint64, not {sample.words.dtype}")
    words, frequency = np.unique(sample.words, return_counts=True)
    edges = np.arange(2**16, dtype=np.uint64) << _HIGH
    buckets = np.append(np.searchsorted(words, edges), len(words))
    counts = np.append(frequency, len(sample.x))
    return Vocabulary(frozen(words), frozen(buckets), frozen(counts.astype(np.int64)))


@njit
def number_of(v: Vocabulary, word: np.uint64) -> int:
    """The number of a word, or UNKNOWN."""
    bucket = np.int64(word >> _HIGH)
    lo, hi = v.buckets[bucket], v.buckets[bucket + 1]
    end = hi
    while lo < hi:
        mid = (lo + hi) >> 1
        if v.words[mid] < word:
            lo = mid + 1
        else:
            hi = mid
    return lo if lo < end and v.words[lo] == word else UNKNOWN


@njit
def numbers_of(v: Vocabulary, words: NDArray[np.uint64]) -> NDArray[np.int32]:
    """The number of each word, or UNKNOWN."""
    out = np.empty(len(words), np.int32)
    for i in range(len(words)):
        out[i] = number_of(v, words[i])
    return out


def wanted_by_survey(v: Vocabulary, survey: Survey) -> WantedWords:
    """The word lists of running subscriptions."""
    n = len(survey.x)
    none = frozen(np.empty(0, np.uint64))
    return WantedWords(
        *_wanted(
            v,
            frozen(survey.word_offsets),
            frozen(survey.words),
            frozen(np.zeros(n + 1, np.int64)),
            none,
            frozen(np.zeros(n, np.int32)),
        )
    )


def wanted_by_controls(v: Vocabulary, controls: pa.RecordBatch) -> WantedWords:
    """The word lists of new subscriptions, rows of CONTROLS."""
    cover_offsets, cover = lists(controls["cover"], np.uint64)
    program_offsets, program = lists(controls["program"], np.uint64)
    flags = numbers(controls["flags"])
    return WantedWords(
        *_wanted(v, frozen(cover_offsets), cover, frozen(program_offsets), program, flags)
    )


@njit
def _rarest(v: Vocabulary, program: NDArray[np.uint64], start: int, stop: int) -> int:
    """The word of a conjunction with the least P; UNKNOWN if O_init lacks one of them."""
    best = number_of(v, program[start])
    for i in range(start + 1, stop):
        word = number_of(v, program[i])
        if best == UNKNOWN or word == UNKNOWN:
            return UNKNOWN
        if v.frequency[word] < v.frequency[best]:
            best = word
    return best


@njit
def _wanted(
    v: Vocabulary,
    cover_offsets: NDArray[np.int64],
    cover: NDArray[np.uint64],
    program_offsets: NDArray[np.int64],
    program: NDArray[np.uint64],
    flags: NDArray[np.int32],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    n = len(flags)
    offsets = np.zeros(n + 1, np.int64)
    words = np.empty(len(cover) + n, np.int32)
    top = 0
    for i in range(n):
        first, last = program_offsets[i], program_offsets[i + 1]
        if cover_offsets[i] < cover_offsets[i + 1]:
            for j in range(cover_offsets[i], cover_offsets[i + 1]):
                words[top] = number_of(v, cover[j])
                top += words[top] != UNKNOWN
        else:
            words[top] = len(v.words)
            if first < last and flags[i] & CONJUNCTION:
                words[top] = _rarest(v, program, first, last)
            top += words[top] != UNKNOWN
        offsets[i + 1] = top
    return offsets, words[:top].copy()
