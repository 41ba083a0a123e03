"""`python -m nearcast.engine.spark.class_archive FILE`: classes for `engine.spark.jvm`, by a run.

A JVM with that option writes the classes that it has loaded when it ends. So this process runs one
batch of the same shape as every run (feed, route step, shard step, sink), with steps that do
nothing: no kernel is compiled for it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from nearcast.engine.feed.source import Feed
from nearcast.engine.spark import session as sessions
from nearcast.engine.spark.jvm import OPTIONS
from nearcast.engine.spark.query import stream
from nearcast.wire.split import Split


def _idle(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"shard": batch.column(0), "report": batch.column(1)})


def _route(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_pydict(
            {"shard": pa.array([0], pa.int32()), "envelope": batch.column(0).slice(0, 1)}
        )


def _collect(frame: DataFrame, _batch: int) -> None:
    frame.collect()


def make(target: Path) -> None:
    """Run the batches and wait until the JVM has written its classes to `target`."""
    part = target.with_suffix(f".{os.getpid()}.part")
    extra = {
        "spark.driver.extraJavaOptions": f"{OPTIONS} -XX:ArchiveClassesAtExit={part}",
        "spark.python.daemon.module": "pyspark.daemon",
    }
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for batch in range(2):
                Feed(folder).add(batch, [Split("reject", "", "")])
            spark = sessions.create("local[1]", extra=extra)
            query = stream(spark, folder, _route, _idle, _collect, shards=1)
            query.processAllAvailable()
            query.stop()
            gateway: Any = spark.sparkContext._gateway
            spark.stop()
            gateway.proc.stdin.close()
            gateway.proc.wait()
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


if __name__ == "__main__":
    os.nice(10)
    make(Path(sys.argv[1]))
