"""The fitted table of a corpus: in how many of its objects each keyword is (`nearcast fit`).

A file of JSON lines, perhaps packed (`.gz`): first `{"objects":N}`, then one
`{"keyword":…,"df":n}` per keyword, the most frequent first.
"""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nearcast.model.errors import Invalid, NearcastError
from nearcast.model.frame import Idf
from nearcast.model.space import Space
from nearcast.model.standing import Needs
from nearcast.wire.columns import decode_columns
from nearcast.wire.decode import Decoded, no_collector
from nearcast.wire.durable import write_atomic
from nearcast.wire.jsonl import decode_jsonl
from nearcast.wire.kind import Kinds
from nearcast.wire.tables import lists, numbers
from nearcast.wire.words import hash_words

__all__ = ["Fit", "Fitted", "HashedTable", "read_fitted"]

_PIECE = 1 << 25  # bytes of a log at a time
_TEXTS = Needs.TEXTS


class _Line(msgspec.Struct, omit_defaults=True):
    objects: int | None = None
    keyword: str | None = None
    df: int | None = None


_LINES = msgspec.json.Decoder(_Line)


def _idf(objects: int, df: int) -> float:
    """SPEC section 4."""
    return math.log((objects + 1) / (df + 1)) + 1.0


class HashedTable:
    """A fitted table by hash of keyword alone, for workloads that have no texts."""

    def __init__(self, objects: int, words: NDArray[np.uint64], df: NDArray[np.int64]) -> None:
        order = np.argsort(words)
        values = np.array([_idf(objects, int(n)) for n in df[order].tolist()], np.float64)
        self.hashed = Idf(words[order], values, _idf(objects, 0))

    def of(self, word: Any) -> float:
        """The idf of a keyword, given as text or by its hash."""
        known = hash_words([word]) if isinstance(word, str) else np.array([word], np.uint64)
        return float(self.hashed.of_words(known)[0])


class Fitted:
    """How frequent keywords are, and how much that makes them weigh."""

    def __init__(self, objects: int, df: dict[str, int]) -> None:
        self.objects, self.df = objects, df

    def value(self, df: int) -> float:
        """The idf of a keyword that so many objects hold (SPEC section 4)."""
        return _idf(self.objects, df)

    @cached_property
    def hashed(self) -> Idf:
        """By hash of keyword."""
        words = hash_words(list(self.df))
        values = np.array([self.value(df) for df in self.df.values()], np.float64)
        order = np.argsort(words)
        return Idf(words[order], values[order], self.value(0))

    def of(self, word: Any) -> float:
        """The idf of a keyword, given as text or by its hash."""
        if isinstance(word, str):
            return self.value(self.df.get(word, 0))
        return float(self.hashed.of_words(np.array([word], np.uint64))[0])

    def write(self, path: Path) -> None:
        """Write the file."""
        ordered = sorted(self.df.items(), key=lambda entry: (-entry[1], entry[0]))
        rows = [_Line(keyword=keyword, df=df) for keyword, df in ordered]
        data = msgspec.json.Encoder().encode_lines([_Line(objects=self.objects), *rows])
        packed = path.name.endswith(".gz")
        write_atomic(path, gzip.compress(data, mtime=0) if packed else data)


def read_fitted(path: Path) -> Fitted:
    """The table of a file; one clear line if it is none."""
    try:
        data = path.read_bytes()
        if path.name.endswith(".gz"):
            data = gzip.decompress(data)
        head, *rows = _LINES.decode_lines(data) or [_Line()]
    except (OSError, EOFError, zlib.error) as error:
        raise NearcastError(f"idf: {path} cannot be read: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NearcastError(f"idf: {path} is no table of `nearcast fit`: {error}") from None
    n = head.objects
    if n is None or n < 0:
        raise NearcastError(f'idf: {path} is no table of `nearcast fit`: no {{"objects":N}} in it')
    df: dict[str, int] = {}
    for number, row in enumerate(rows, 2):
        if not row.keyword or row.df is None or not 0 <= row.df <= n or row.keyword in df:
            raise NearcastError(
                f'idf: {path}: line {number}: write {{"keyword":…,"df":n}} once per keyword, '
                f"n from 0 to the {n} objects"
            )
        df[row.keyword] = row.df
    return Fitted(n, df)


class Fit:
    """Counts the keywords of logs, a piece of a log at a time."""

    def __init__(self, space: Space, kinds: Kinds) -> None:
        self.space, self.kinds = space, kinds
        self.objects = self.rejects = 0
        self._df: dict[int, int] = {}
        self._texts: dict[int, str] = {}

    def add(self, name: str) -> None:
        """Count the objects of a log: JSON lines, these packed, or Parquet."""
        try:
            with no_collector():
                for decoded in self._pieces(name):
                    self._count(decoded)
        except (OSError, EOFError, zlib.error, pa.ArrowException, Invalid) as error:
            raise NearcastError(f"{name}: cannot be read: {error}") from error

    def fitted(self) -> Fitted:
        """The table of all that was added."""
        return Fitted(self.objects, {self._texts[word]: df for word, df in self._df.items()})

    def _pieces(self, name: str) -> Iterator[Decoded]:
        if name.endswith(".parquet"):
            with pq.ParquetFile(name) as file:
                for batch in file.iter_batches(1 << 17):
                    yield decode_columns(batch, self.space, self.kinds, file=name, needs=_TEXTS)
            return
        how = gzip.open if name.endswith(".gz") else open
        with how(name, "rb") as file:
            rest = b""
            while data := file.read(_PIECE):
                data = rest + data
                cut = data.rfind(b"\n") + 1
                rest = data[cut:]
                yield self._lines(data[:cut], name)
            yield self._lines(rest, name)

    def _lines(self, data: bytes, name: str) -> Decoded:
        return decode_jsonl(data, self.space, self.kinds, file=name, needs=_TEXTS)

    def _count(self, decoded: Decoded) -> None:
        self.objects += decoded.objects.num_rows
        self.rejects += decoded.rejects.num_rows
        words, counts = np.unique(lists(decoded.objects["words"], np.uint64)[1], return_counts=True)
        for word, count in zip(words.tolist(), counts.tolist(), strict=True):
            self._df[word] = self._df.get(word, 0) + count
        assert decoded.texts is not None
        known = decoded.texts.column("word"), decoded.texts.column("text")
        for word, text in zip(numbers(known[0]).tolist(), known[1].to_pylist(), strict=True):
            if word not in self._texts:
                self._texts[word] = text.decode()
