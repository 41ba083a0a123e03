"""The fitted table of a run: the user's file, then a copy in the checkpoint that workers read.

The copy holds hashes of keywords, so it is read at once; and the run goes on with it wherever the
user's file is by then.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.engine.formats import read_binary, write_binary
from nearcast.model.frame import Idf, Weights
from nearcast.wire.idf import read_fitted
from nearcast.wire.tables import from_bytes, numbers, to_bytes

__all__ = ["KeptWeights", "copied", "digest_of"]

_COPY = "idf.bin"  # in the checkpoint
_SCHEMA = pa.schema([("word", pa.uint64()), ("value", pa.float64())])


class KeptWeights:
    """The weights of a file, read when they are first needed."""

    def __init__(self, path: Path) -> None:
        """`path`: of a table of `nearcast fit`, or of a copy in a checkpoint."""
        self._path = path

    @cached_property
    def _known(self) -> Weights | None:
        return None if self._path.name == _COPY else read_fitted(self._path)

    @cached_property
    def hashed(self) -> Idf:
        """By hash of keyword."""
        if self._known is not None:
            return self._known.hashed
        table = from_bytes(read_binary(self._path, "idf"), _SCHEMA)
        words, values = numbers(table["word"]), numbers(table["value"])
        return Idf(words[:-1], values[:-1], float(values[-1]))

    def of(self, word: Any) -> float:
        """Of a keyword; of one as text only the user's file knows it."""
        if self._known is not None:
            return self._known.of(word)
        return float(self.hashed.of_words(np.array([word], np.uint64))[0])


def copied(path: str, checkpoint: Path) -> str:
    """Copy the table of a file into the checkpoint; the path of the copy. Empty: there is none."""
    if not path:
        return ""
    idf = KeptWeights(Path(path)).hashed
    columns = [np.append(idf.words, np.uint64(0)), np.append(idf.values, idf.other)]
    table = pa.RecordBatch.from_arrays([pa.array(c) for c in columns], schema=_SCHEMA)
    copy = checkpoint.resolve() / _COPY
    write_binary(copy, "idf", to_bytes(table))
    return str(copy)


def digest_of(path: str) -> str:
    """The same for tables that weigh alike; empty: there is no table."""
    if not path:
        return ""
    idf = KeptWeights(Path(path)).hashed
    parts = (idf.words.tobytes(), idf.values.tobytes(), np.float64(idf.other).tobytes())
    return hashlib.sha256(b"".join(parts)).hexdigest()
