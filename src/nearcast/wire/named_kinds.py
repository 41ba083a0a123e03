"""Which kinds the subscribes of a split may have, without decoding it.

A kind that nobody has subscribed to routes no objects (`engine.route.step`). All splits of a batch
must agree on that before any of them is decoded, so the kinds are looked for when the batch is
planned: by their names in the bytes. A name may be found where there is no valid subscribe; none
is missed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nearcast.wire.plain_types import without_views
from nearcast.wire.split import Split

_CHUNK = 1 << 24  # bytes of a log that are looked through at once
# Lower-case letters, digits and hyphens, of which names and keys are made, may be written so.
_ESCAPED = re.compile(rb"\\u00[2367][0-9a-fA-F]")


def named_kinds(split: Split, names: Iterable[str]) -> set[str]:
    """Those of `names` that a subscribe of the split may have as its kind."""
    wanted = set(names)
    if not wanted or split.format in ("reject", "empty"):
        return set()
    if split.format == "jsonl":
        return _in_lines(split, wanted)
    return _in_rows(split, wanted)


def _in_lines(split: Split, wanted: set[str]) -> set[str]:
    found: set[str] = set()
    with Path(split.path).open("rb") as file:
        file.seek(split.start)
        left, rest = split.length, b""
        while left > 0 and found < wanted:
            data = file.read(min(_CHUNK, left))
            if not data:
                break
            left -= len(data)
            whole = rest + data
            cut = len(whole) if left == 0 else whole.rfind(b"\n") + 1
            rest = whole[cut:]
            found |= _in_text(whole[:cut], wanted - found)
    return found


def _in_text(data: bytes, wanted: set[str]) -> set[str]:
    """The same of whole lines."""
    found = {name for name in wanted if _subscribes(data, name)}
    for escape in _ESCAPED.finditer(data):
        if found >= wanted:
            break
        found |= wanted & _decoded(line_at(data, escape.start()))
    return found


def _subscribes(data: bytes, name: str) -> bool:
    """Whether the name stands in quotes in a line that may be a subscribe."""
    quoted = f'"{name}"'.encode()
    at = data.find(quoted)
    while at >= 0:
        line = line_at(data, at)
        if b"subscribe" in line and b"query" in line:
            return True
        at = data.find(quoted, at + len(quoted))
    return False


def line_at(data: bytes, at: int) -> bytes:
    """The line that holds the byte at `at`."""
    end = data.find(b"\n", at)
    return data[data.rfind(b"\n", 0, at) + 1 : len(data) if end < 0 else end]


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
