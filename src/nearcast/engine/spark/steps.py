"""The two steps as Spark runs them: `mapInArrow` for routes; for shards `transformWithState`, or
`mapInArrow` too, where files remember the manifests.

Spark loads this module in a process of its own to get the state of the processor; so what only
the steps themselves need is imported when they run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

if TYPE_CHECKING:
    import pandas as pd

    from nearcast.engine.route.step import RouteStep
    from nearcast.wire.decode import Decoded
    from nearcast.wire.kafka import Connections

Batches = Iterator[pa.RecordBatch]


def _batch_id() -> int:
    context = TaskContext.get()
    assert context is not None
    batch = context.getLocalProperty("streaming.sql.batchId")
    assert batch is not None
    return int(batch)


def _rows(
    step: RouteStep,
    keys: list[int],
    decoded: Decoded,
    split: int,
    final: bool = False,
    kinds: tuple[str, ...] | None = None,
) -> Batches:
    for shard, envelope in step.envelopes(decoded, split, final, kinds):
        yield pa.RecordBatch.from_arrays(
            [pa.array([keys[shard]], pa.int32()), pa.array([envelope], pa.binary())],
            names=["shard", "envelope"],
        )


def route_feed(
    settings: dict[str, Any],
    checkpoint: str,
    keys: list[int],
    connections: Connections,
) -> Callable[[Batches], Batches]:
    """The route step over the splits of a feed; `connections` as `read_split` has them."""

    def route(batches: Batches) -> Batches:
        from nearcast.engine.feed.source import read_row
        from nearcast.engine.options.settings import Settings
        from nearcast.engine.route.step import RouteStep
        from nearcast.wire.read_split import read_split

        chosen = Settings.from_json(settings)
        step = RouteStep(chosen, checkpoint, _batch_id())
        for batch in batches:
            for row in batch.column(0).to_pylist():
                number, split = read_row(row)
                decoded = read_split(
                    split, chosen.space, chosen.kinds, number, chosen.stored, connections
                )
                yield from _rows(step, keys, decoded, number, split.final, split.kinds)

    return route


def route_columns(
    settings: dict[str, Any], checkpoint: str, keys: list[int]
) -> Callable[[Batches], Batches]:
    """The route step over rows with the columns of events, in the order of their partitions."""

    def route(batches: Batches) -> Batches:
        from nearcast.engine.options.settings import Settings
        from nearcast.engine.route.step import RouteStep
        from nearcast.wire.columns import decode_columns
        from nearcast.wire.decode import no_collector
        from nearcast.wire.kind import needs_of

        chosen = Settings.from_json(settings)
        step = RouteStep(chosen, checkpoint, _batch_id())
        context = TaskContext.get()
        assert context is not None
        partition = context.partitionId()
        name = f"batch {step.batch}, partition {partition}"
        needs = needs_of(chosen.kinds) | chosen.stored
        first = 1
        for n, batch in enumerate(batches):
            split = partition << 16 | n
            with no_collector():
                decoded = decode_columns(
                    batch,
                    chosen.space,
                    chosen.kinds,
                    file=name,
                    first_line=first,
                    split=split,
                    needs=needs,
                )
            first += batch.num_rows
            yield from _rows(step, keys, decoded, split)

    return route


def shard_step(
    settings: dict[str, Any], keys: list[int], **places: str
) -> Callable[[Batches], Batches]:
    """The shard step over partitions of envelopes, a shard each; files remember its manifest.

    Half of what an empty batch costs is `transformWithState` (docs/measurements.md).
    """

    def step(batches: Batches) -> Batches:
        from nearcast.engine.options.settings import Settings
        from nearcast.engine.route.envelope import unpack
        from nearcast.engine.shard.manifests import manifest_before
        from nearcast.engine.shard.step import ShardStep

        envelopes: dict[int, list[Any]] = {}
        for batch in batches:
            for key, envelope in zip(*(column.to_pylist() for column in batch.columns)):
                envelopes.setdefault(keys.index(key), []).append(unpack(envelope))
        work = ShardStep(Settings.from_json(settings), **places)
        for shard, own in envelopes.items():
            before = manifest_before(work.checkpoint, own[0].directions.batch, shard)
            manifest, report = work.process(shard, own, before)
            report.manifest = msgspec.msgpack.encode(manifest)
            yield pa.RecordBatch.from_arrays(
                [pa.array([shard], pa.int32()), pa.array([msgspec.msgpack.encode(report)])],
                names=["shard", "report"],
            )

    return step


class ShardProcessor(StatefulProcessor):
    """The shard step: one key is one shard, its state one small value."""

    def __init__(self, settings: dict[str, Any], keys: list[int], **places: str) -> None:
        self.settings, self.keys, self.places = settings, keys, places

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Spark's value state holds the manifest."""
        self.state = handle.getValueState("manifest", "value binary")

    def handleInputRows(  # noqa: N802 -- Spark's name
        self, key: Any, rows: Iterator[pd.DataFrame], _timers: Any
    ) -> Iterator[pd.DataFrame]:
        """One batch of one shard."""
        import pandas as pd

        from nearcast.engine.options.settings import Settings
        from nearcast.engine.route.envelope import unpack
        from nearcast.engine.shard.state import Manifest, read_manifest
        from nearcast.engine.shard.step import ShardStep

        step = ShardStep(Settings.from_json(self.settings), **self.places)
        envelopes = [unpack(bytes(e)) for frame in rows for e in frame["envelope"]]
        held = self.state.get()
        manifest = Manifest()
        if held is not None:
            manifest = read_manifest(bytes(held[0]), step.checkpoint)
        shard = self.keys.index(key[0])
        manifest, report = step.process(shard, envelopes, manifest)
        self.state.update((msgspec.msgpack.encode(manifest),))
        yield pd.DataFrame({"shard": [shard], "report": [msgspec.msgpack.encode(report)]})

    def close(self) -> None:
        """Nothing to let go: arenas are closed after each batch."""
