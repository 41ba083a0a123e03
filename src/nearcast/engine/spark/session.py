"""Spark sessions with the settings that nearcast's query needs."""

from __future__ import annotations

import atexit
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from nearcast.engine.spark import jvm

_NEEDED = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # Each shard keeps one small value: a change log is cheaper than a snapshot per batch.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.pollingDelay": "5ms",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.adaptive.enabled": "false",
    # Without it both steps get the same environment, so that one daemon forks all workers.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    "spark.python.worker.reuse": "true",
    "spark.python.daemon.module": "nearcast.engine.spark.daemon",
    "spark.shuffle.compress": "false",  # envelopes stay on the machine, or are hardly compressible
}
# Settings of Spark that a run sets itself, whatever it is given, and why.
OURS = {
    "spark.master": "the master is an option of the run: use master",
    "spark.sql.shuffle.partitions": "it is the number of shards: use shards",
    **{key: "the query needs its own value" for key in _NEEDED if key.startswith("spark.sql.")},
}
_LOCAL = {
    # The usual one calls `readlink`, a process of its own, some 20 times per batch.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.python.unix.domain.socket.enabled": "true",
}


def create(
    master: str = "local[*]",
    app: str = "nearcast",
    extra: dict[str, str] | None = None,
    quiet: bool = False,
) -> SparkSession:
    """A session on any master; workers run this very Python.

    `quiet` sends what the JVM and its workers print to a log file in the temporary folder:
    errors reach the caller as exceptions anyway.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    local = master.startswith("local")
    chosen = {**_NEEDED, **(extra or {})}
    if local:
        chosen = {**_LOCAL, "spark.driver.extraJavaOptions": jvm.options(), **chosen}
    builder = SparkSession.builder.master(master).appName(app)
    for key, value in chosen.items():
        builder = builder.config(key, value)
    with _elsewhere() if quiet else nullcontext(), jvm.at_home() if local else nullcontext():
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    prepare(session)
    return session


def is_local(session: SparkSession) -> bool:
    """Whether driver and workers run on this machine alone."""
    return str(session.sparkContext.master).startswith("local")


def wake(session: SparkSession) -> None:
    """Have the daemon of Python workers loaded while the driver still plans."""
    threading.Thread(target=_run_nothing, args=(session,), daemon=True).start()


def _run_nothing(session: SparkSession) -> None:
    """One row through a function that does nothing, in the same environment as the steps."""
    with suppress(Exception):  # a session that is stopped meanwhile: nobody needs it then
        rows = session.range(1, numPartitions=1).mapInArrow(_same, "id long")
        rows.write.format("noop").mode("overwrite").save()


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


@contextmanager
def _elsewhere() -> Iterator[None]:
    """While this holds, children are born with a log file as their stderr."""
    log = Path(tempfile.gettempdir()) / f"nearcast-spark-{os.getpid()}.log"
    kept = os.dup(2)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
    atexit.register(lambda: log.unlink(missing_ok=True))


def prepare(session: SparkSession) -> None:
    """Give an existing session (a notebook's, a cluster's) what can still be set."""
    for key, value in _NEEDED.items():
        if key.startswith("spark.sql."):
            session.conf.set(key, value)


def shard_keys(shards: int) -> list[int]:
    """For each shard, a key that Spark's hash partitioner sends to the partition of that number."""
    keys: dict[int, int] = {}
    key = 0
    while len(keys) < shards:
        keys.setdefault(_spark_hash(key) % shards, key)
        key += 1
    return [keys[p] for p in range(shards)]


def _spark_hash(key: int) -> int:
    """Spark's `hash` of an int: Murmur3 for 32 bits with seed 42, as a signed number."""

    def rotate(value: int, bits: int) -> int:
        return (value << bits | value >> (32 - bits)) & 0xFFFFFFFF

    k = rotate(key * 0xCC9E2D51 & 0xFFFFFFFF, 15) * 0x1B873593 & 0xFFFFFFFF
    h = (rotate(42 ^ k, 13) * 5 + 0xE6546B64) & 0xFFFFFFFF
    h ^= 4
    h = (h ^ h >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    h = (h ^ h >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    h ^= h >> 16
    return h - (1 << 32) if h >= 1 << 31 else h
