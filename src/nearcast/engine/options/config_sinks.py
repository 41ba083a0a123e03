"""`[[sink]]` of a config: which of the sinks is the folder of the run itself, and the others.

The run writes each batch to one folder first (`engine.output.commit`): a sink of type files, if
there is one that all others can be fed from, else a folder of the checkpoint.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from nearcast.engine.output.sinks import ConsoleOf, FilesOf, KafkaOf, SinkOf
from nearcast.model.errors import NearcastError

__all__ = ["ConsoleSink", "FilesSink", "SinkTable", "dealt"]


class FilesSink(msgspec.Struct, tag_field="type", tag="files", forbid_unknown_fields=True):
    """`[[sink]]` type = "files": notifications and rejects in a folder, each exactly once."""

    path: str  # the folder


class ConsoleSink(msgspec.Struct, tag_field="type", tag="console", forbid_unknown_fields=True):
    """`[[sink]]` type = "console": notifications on standard output, each at least once."""


class KafkaSink(msgspec.Struct, tag_field="type", tag="kafka", forbid_unknown_fields=True):
    """`[[sink]]` type = "kafka": notifications as records of a topic, keyed by subscription."""

    bootstrap: str  # some brokers, as HOST:PORT,HOST:PORT
    topic: str  # of notifications
    rejects: str = ""  # topic of rejects; empty: they do not go to Kafka
    transactions: bool = True  # exactly once for who reads what is committed; else at least once
    options: dict[str, str | int | bool] = {}  # of librdkafka, such as those of SASL and TLS


SinkTable = FilesSink | KafkaSink | ConsoleSink


def dealt(
    sinks: list[SinkTable], options: list[dict[str, Any]], base: Path
) -> tuple[FilesOf | None, list[SinkOf]]:
    """(the folder of the run, all other sinks); `options` are `format` and `keep` of each."""
    files, others = list[FilesOf](), list[SinkOf]()
    for sink, own in zip(sinks, options, strict=True):
        if isinstance(sink, FilesSink):
            files.append(FilesOf(str(base / sink.path), **own))
        elif isinstance(sink, KafkaSink):
            others.append(
                KafkaOf(
                    sink.bootstrap, sink.topic, sink.rejects, sink.transactions, dict(sink.options)
                )
            )
        else:
            others.append(ConsoleOf())
    if not sinks:
        raise NearcastError("give at least one [[sink]]: nothing takes the results")
    paths = [Path(f.path).resolve() for f in files]
    if twice := [f.path for f, path in zip(files, paths, strict=True) if paths.count(path) > 1]:
        raise NearcastError(f"[[sink]] path: {twice[0]}: two sinks of type files need two folders")
    topics = [s.topic for s in sinks if isinstance(s, KafkaSink)]
    if again := [t for t in topics if topics.count(t) > 1]:
        raise NearcastError(f"[[sink]] topic: {again[0]}: two sinks of type kafka need two topics")
    if sum(isinstance(sink, ConsoleSink) for sink in sinks) > 1:
        raise NearcastError("[[sink]] of type console: one is enough; leave the others out")
    # Lines can become rows, not the other way round.
    first = next((f for f in files if f.format == "jsonl"), None)
    if first is None and not others and len({f.format for f in files}) == 1:
        first = files[0]
    return first, [*(f for f in files if f is not first), *others]
