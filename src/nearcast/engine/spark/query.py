"""The Spark query of a run: a source, the route step, one stateful step a shard, the sink."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from nearcast.engine.feed.source import SCHEMA, FeedSource
from nearcast.model.errors import NearcastError

ENVELOPES = "shard int, envelope binary"
REPORTS = "shard int, report binary"
Batches = Iterator[pa.RecordBatch]
_LOST = re.compile(
    r"ExecutorLostFailure|FetchFailed|[Ll]ost executor|Executor heartbeat timed out"
    r"|Remote RPC client disassociated|Failed to connect to|worker lost"
    # Output of a map stage was lost with its executor, and a part of the result had read it.
    r"|indeterminate output was failed and retried"
)
_OURS = re.compile(r"nearcast\.model\.errors\.\w+: ([^\n]+)")


def stream(
    spark: SparkSession,
    checkpoint: Path,
    route: Callable[[Batches], Batches],
    shard: StatefulProcessor | Callable[[Batches], Batches],
    sink: Callable[[DataFrame, int], None],
    *,
    shards: int,
    trigger: str = "0 seconds",
    events: DataFrame | None = None,
) -> StreamingQuery:
    """Start the query over `events`, or over the feed of the checkpoint.

    `shard` is the shard step: with Spark's own state, or a function that needs none of it.
    """
    here = checkpoint.resolve()
    spark.conf.set("spark.sql.shuffle.partitions", str(shards))
    if events is None:
        spark.dataSource.register(FeedSource)
        reader = spark.readStream.format(FeedSource.name()).schema(SCHEMA)
        events = reader.option("checkpoint", str(here)).load()
    envelopes = events.mapInArrow(route, ENVELOPES)
    if isinstance(shard, StatefulProcessor):
        by_shard = envelopes.groupBy("shard")
        reports = by_shard.transformWithStateInPandas(shard, REPORTS, "append", "none")
    else:
        reports = envelopes.repartition(shards, "shard").mapInArrow(shard, REPORTS)
    return (
        reports.writeStream.foreachBatch(sink)
        .option("checkpointLocation", str(here / "spark"))
        .outputMode("append")
        .trigger(processingTime=trigger)
        .start()
    )


def stop(query: StreamingQuery) -> None:
    """Stop it, if it still runs."""
    if query.isActive:
        query.stop()


class RunFailed(NearcastError):
    """A run that broke off for a reason outside the command's arguments and input."""

    exit_status = 1


def lost_executor(error: BaseException | None) -> bool:
    """Whether a query ended because executors died, which Spark itself does not always survive."""
    text = str(error)
    return bool(_LOST.search(text)) and not _OURS.search(text)


def explained(error: Exception) -> NearcastError:
    """What went wrong in a query, as one line: our own words if there are any in it."""
    text = str(error)
    ours = _OURS.findall(text)
    if ours:
        return RunFailed(ours[-1].strip())
    lines = [line for line in text.splitlines() if line.strip()]
    python = [line for line in lines if re.match(r"^\w[\w.]*(Error|Exception): ", line.strip())]
    return RunFailed(f"the run failed: {(python or lines or ['unknown'])[-1].strip()}")
