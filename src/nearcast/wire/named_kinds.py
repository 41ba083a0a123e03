"""Which kinds the subscribes of a split may have, without decoding it.

A kind that nobody has subscribed to routes no objects (`engine.route.step`). All splits of a batch
must agree on that before any of them is decoded, so the kinds are looked for when the batch is
planned: by their names in the bytes. A name may be found where there is no valid subscribe; none
is missed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from mmap import ACCESS_READ, mmap
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nearcast.kernels.find import find
from nearcast.wire.logs import Log
from nearcast.wire.plain_types import without_views
from nearcast.wire.split import Split

# Lower-case letters, digits and hyphens, of which names and keys are made, may be written so.
_ESCAPED = re.compile(rb"\\u00[2367][0-9a-fA-F]")


def named_kinds(split: Split, names: Iterable[str], asks: bool = False) -> set[str]:
    """Those of `names` that a subscribe of the split may have as its kind; with `asks` also asks.

    In columns both are found in any case.
    """
    wanted = set(names)
    if not wanted or split.format in ("reject", "empty"):
        return set()
    if split.format == "kafka":  # is not looked at before it is decoded: perhaps all
        return set() if split.publishes else wanted
    if split.format == "jsonl":
        return _in_lines(split, wanted, asks) if split.length else set()
    return _in_rows(split, wanted)


def named_in_log(log: Log, names: Iterable[str], asks: bool = False) -> set[str]:
    """The same of a whole log, a row group at a time."""
    wanted, found = set(names), set[str]()
    if log.format == "jsonl":
        size = int(log.offsets[-1])
        return named_kinds(Split("jsonl", str(log.path), log.name, 0, size), wanted, asks)
    for group in range(len(log.offsets) - 1):
        if found < wanted:
            split = Split("parquet", str(log.path), log.name, group, 1)
            found |= named_kinds(split, wanted - found)
    return found


def _in_lines(split: Split, wanted: set[str], asks: bool) -> set[str]:
    found: set[str] = set()
    for name in wanted:
        lines = lines_with(split, f'"{name}"'.encode())
        if any((asks or b"subscribe" in line) and b"query" in line for line in lines):
            found.add(name)
    if found < wanted:
        for line in lines_with(split, b"\\u00"):
            if _ESCAPED.search(line):
                found |= wanted & _decoded(line)
    return found


def lines_with(split: Split, text: bytes) -> Iterator[bytes]:
    """The lines of a split in which a text stands, each once."""
    pattern = np.frombuffer(text, np.uint8)
    with Path(split.path).open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as whole:
        end = min(split.start + split.length, len(whole))
        at = _find(whole, split.start, end, pattern)
        while at >= 0:
            first = whole.rfind(b"\n", split.start, at) + 1 or split.start
            stop = whole.find(b"\n", at, end)
            stop = end if stop < 0 else stop
            yield whole[first:stop]
            at = _find(whole, stop, end, pattern)


def _find(whole: mmap, start: int, end: int, pattern: NDArray[np.uint8]) -> int:
    # The view is gone when this returns, else the file could not be closed.
    at = find(np.frombuffer(whole, np.uint8, end - start, start), 0, pattern) if start < end else -1
    return start + at if at >= 0 else -1


def _decoded(line: bytes) -> set[str]:
    """The kind of the query of a line whose keys or names are written with escapes."""
    try:
        event = msgspec.json.decode(line)
        return {str(event["query"]["kind"])}
    except Exception:  # no subscribe; the decoder will say what is wrong with it
        return set()


def _in_rows(split: Split, wanted: set[str]) -> set[str]:
    """The same of rows of columns: queries are JSON texts, or structs."""
    found: set[str] = set()
    for queries in _queries(split):
        if pa.types.is_struct(queries.type):
            names = [queries.type.field(i).name for i in range(queries.type.num_fields)]
            kinds = pc.struct_field(queries, "kind") if "kind" in names else None
            there = set() if kinds is None else set(pc.unique(kinds).to_pylist())
            found |= wanted & there
        elif pa.types.is_null(queries.type):
            continue
        else:
            texts = queries.cast(pa.large_string())
            for name in wanted - found:
                if pc.any(pc.match_substring(texts, f'"{name}"')).as_py():
                    found.add(name)
            odd = pc.match_substring_regex(texts, _ESCAPED.pattern.decode())
            if found < wanted and pc.any(odd).as_py():
                for text in texts.filter(odd).to_pylist():
                    found |= wanted & _decoded(b'{"query":' + text.encode() + b"}")
    return found


def _queries(split: Split) -> list[pa.Array]:
    """The column of queries of a split, in pieces; none: there is no such column."""
    if split.format == "parquet":
        groups = list(range(split.start, split.start + split.length))
        with pq.ParquetFile(split.path) as file:
            if "query" not in file.schema_arrow.names:
                return []
            table = file.read_row_groups(groups, columns=["query"])
        return list(without_views(table)["query"].chunks)
    with pa.memory_map(split.path) as source, pa.ipc.open_file(source) as reader:
        batch = without_views(reader.get_batch(split.start))
    return [batch["query"]] if "query" in batch.schema.names else []
