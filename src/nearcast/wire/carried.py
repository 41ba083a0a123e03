"""What objects carry besides their columns, for kinds that need it (`model.standing.Needs`).

Counts stand beside the words of an object. Texts are a table for many objects, each word once.
The rank of an object is known on the shard only, where all splits of a batch meet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.model.standing import Needs
from nearcast.wire.tables import OBJECTS, join, lists, numbers, strings

__all__ = [
    "COUNT_COLUMNS",
    "FIELD_COLUMNS",
    "TEXTS",
    "Carried",
    "WordTexts",
    "carried_by",
    "objects_with",
]

_NUMBERS = pa.large_list(pa.field("item", pa.int32(), nullable=False))

# Columns of OBJECTS where a kind needs COUNTS, parallel to `words`.
COUNT_COLUMNS = pa.schema(
    [
        ("counts", _NUMBERS),  # how often the object holds the word (tf)
        ("firsts", _NUMBERS),  # as which of its words it comes first, from 0
    ]
)
# Where objects stay, for answers: JSON values; no bytes: the object has no such field.
FIELD_COLUMNS = pa.schema([("text", pa.large_binary()), ("keywords", pa.large_binary())])
TEXTS = pa.schema([("word", pa.uint64()), ("text", pa.large_binary())])  # by word, each once


def objects_with(needs: Needs) -> pa.Schema:
    """OBJECTS that carry what is needed."""
    counts = COUNT_COLUMNS if Needs.COUNTS in needs else ()
    fields = FIELD_COLUMNS if Needs.FIELDS in needs else ()
    return pa.schema([*OBJECTS, *counts, *fields]) if counts or fields else OBJECTS


class WordTexts(Mapping[int, str]):
    """Word hashes to keywords. Kernels may read its arrays: `words` ascend."""

    def __init__(self, table: pa.RecordBatch) -> None:
        """The texts of a table of TEXTS."""
        self.words: NDArray[np.uint64] = numbers(table["word"])
        self.offsets, self.data = strings(table["text"])

    def __getitem__(self, word: int) -> str:
        """The keyword of a hash."""
        at = int(np.searchsorted(self.words, np.uint64(word)))
        if at == len(self.words) or self.words[at] != word:
            raise KeyError(word)
        return self.data[self.offsets[at] : self.offsets[at + 1]].tobytes().decode()

    def __iter__(self) -> Iterator[int]:
        """The hashes, ascending."""
        return iter(self.words.tolist())

    def __len__(self) -> int:
        """How many words there are."""
        return len(self.words)


@dataclass(frozen=True, slots=True)
class Carried:
    """What the objects of a batch carry; what no kind in use needs is not there."""

    counts: NDArray[np.int32] | None = None  # parallel to `ObjectColumns.words`
    firsts: NDArray[np.int32] | None = None  # the same
    ranks: NDArray[np.int64] | None = None  # by row
    texts: Mapping[int, str] = field(default_factory=dict)  # of all words

    def words(
        self, row: int, offsets: NDArray[np.int64], words: NDArray[np.uint64]
    ) -> dict[int, int]:
        """The words of an object with their counts, in the order of first use where it is known."""
        own = slice(offsets[row], offsets[row + 1])
        if self.counts is None or self.firsts is None:
            return dict.fromkeys(words[own].tolist(), 1)
        order = np.argsort(self.firsts[own])
        counts = self.counts[own][order].tolist()
        return dict(zip(words[own][order].tolist(), counts, strict=True))


def carried_by(
    objects: pa.RecordBatch,
    texts: list[pa.RecordBatch],
    ranks: NDArray[np.int64] | None,
    needs: Needs,
) -> Carried:
    """What OBJECTS carry, with TEXTS of their splits, and their ranks."""
    counts = firsts = None
    if Needs.COUNTS in needs:
        counts, firsts = (lists(objects[f.name], np.int32)[1] for f in COUNT_COLUMNS)
    known: Mapping[int, str] = {}
    if Needs.TEXTS in needs:
        known = WordTexts(_each_once(join(texts, TEXTS)))
    return Carried(counts, firsts, ranks, known)


def _each_once(texts: pa.RecordBatch) -> pa.RecordBatch:
    """TEXTS of several splits, sorted again."""
    words = numbers(texts["word"])
    distinct, first = np.unique(words, return_index=True)
    if len(distinct) == len(words) and np.array_equal(distinct, words):
        return texts
    return texts.take(pa.array(first))
