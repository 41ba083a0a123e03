"""Answers: what all shards found for the asks of a batch, merged and written by the sink.

Each shard writes its parts into the checkpoint (`shard/step.py`). The sink reads them, merges them
as their kinds say (`kinds.answers`) and writes one file of notifications for the batch. It makes
the same bytes each time, so a repeated batch writes the same file again.
"""

from __future__ import annotations

import io
import uuid
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.engine.files import inside
from nearcast.engine.options.settings import Settings
from nearcast.wire.asks import asks_with
from nearcast.wire.durable import write_atomic
from nearcast.wire.kind import Kinds
from nearcast.wire.line_rows import table_of
from nearcast.wire.tables import from_bytes, to_bytes

__all__ = ["Parts", "answers_name", "write_answers", "write_parts"]

_KEPT = 3  # batches that files of parts outlive, so that late repeats find them


class Parts(msgspec.Struct):
    """What one shard found for the asks of a batch."""

    asks: dict[str, memoryview]  # by kind
    parts: dict[str, list[bytes]]  # by kind, for each ask


def write_parts(
    checkpoint: Path,
    batch: int,
    shard: int,
    asks: dict[str, pa.RecordBatch],
    parts: dict[str, list[bytes]],
) -> str:
    """A new file in the checkpoint; its name."""
    name = f"{batch:012d}-{shard:04d}-{uuid.uuid4().hex[:12]}.bin"
    path = checkpoint / "answers" / name
    found = Parts({kind: to_bytes(table) for kind, table in asks.items()}, parts)
    write_atomic(path, msgspec.msgpack.encode(found))
    return inside(checkpoint, path)


def answers_name(batch: int, format_: str) -> str:
    """The file of answers of a batch, in the folder of results."""
    return f"notifications/b{batch:08d}-answers.{format_}"


def write_answers(
    settings: Settings, checkpoint: Path, out: Path, batch: int, names: list[str]
) -> None:
    """Merge the parts of a batch into its file of answers."""
    if not names:
        return
    decoder = msgspec.msgpack.Decoder(Parts)
    found = [decoder.decode((checkpoint / name).read_bytes()) for name in names]
    answers = []
    for kind, asked in found[0].asks.items():
        definition = settings.kinds[kind]
        merge = definition.answers
        assert merge is not None
        for n, ask in enumerate(from_bytes(asked, asks_with(definition)).to_pylist()):
            body = merge.merge(ask, [f.parts[kind][n] for f in found])
            answers.append((ask["time"] if settings.order == "time" else 0, ask["pos"], ask, body))
    answers.sort(key=lambda answer: answer[:2])
    path = out / answers_name(batch, settings.format)
    lines = [
        b'{"id":"' + ask["id"] + b'","event":"answer","time":%d,' % ask["time"] + body + b"}\n"
        for _, _, ask, body in answers
    ]
    data = b"".join(lines)
    write_atomic(path, data if settings.format == "jsonl" else _table(data, settings.kinds))
    for old in (checkpoint / "answers").iterdir():
        if not old.name.startswith(".") and int(old.name[:12]) <= batch - _KEPT:
            old.unlink(missing_ok=True)


def _table(lines: bytes, kinds: Kinds) -> bytes:
    """Answers as Parquet; what they found is JSON text, as `meta` is."""
    file = io.BytesIO()
    pq.write_table(table_of(lines, kinds, answers=True), file)
    return file.getvalue()
