"""Splits: the pieces of a log that one task decodes. Imports nothing that takes long to load."""

from __future__ import annotations

import msgspec


class Split(msgspec.Struct, frozen=True, omit_defaults=True):
    """A piece of a log: where its bytes or rows are, and what to call them in rejects."""

    # jsonl, parquet (row groups), arrow (record batches of a spool), kafka (offsets of a topic),
    # reject, empty (no events)
    format: str
    path: str
    name: str  # the file as the user knows it
    # jsonl: first byte; parquet, arrow: first row group or record batch; kafka: first offset
    start: int = 0
    length: int = 0  # jsonl: bytes; parquet, arrow: how many; kafka: offsets
    first_line: int = 1  # number of the first line or row in the file
    lines: str = ""  # a spool's file of line numbers (int64: file, line), when they are not a run
    names: tuple[str, ...] = ()  # the files that those numbers mean
    reason: str = ""  # reject: why the file, or its rest, cannot be read
    line_start: int = 0  # first of `lines`
    final: bool = False  # of the last batch of its plan
    kinds: tuple[str, ...] | None = None  # subscribed to by now, in all batches; None: perhaps all
    events: int = 0  # of a growing file: how many lines it is; 0: not counted
    topic: str = ""  # of Kafka, whose records it holds; a spool of such has a path as well
    partition: int = 0  # of that topic
    until: int = 0  # the offset behind its records
    publishes: bool = False  # kafka: other events are refused
