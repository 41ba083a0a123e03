"""The engine's route step, shard steps and sink in this process, one after the other: no Spark."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec

from nearcast.engine.options.settings import Settings
from nearcast.engine.output.commit import Sink
from nearcast.engine.output.sinks import Delivery
from nearcast.engine.route.envelope import Envelope, unpack
from nearcast.engine.route.step import RouteStep
from nearcast.engine.shard.manifests import manifest_before
from nearcast.engine.shard.report import Report
from nearcast.engine.shard.state import Manifest
from nearcast.engine.shard.step import ShardStep
from nearcast.wire.decode import Decoded


class Worked(NamedTuple):
    """What a batch left, by shard."""

    states: list[Manifest]
    reports: list[Report]
    seconds: list[float]  # of the processor


class _Row(NamedTuple):
    report: bytes


class _Frame:
    """As much of a DataFrame as the sink uses."""

    def __init__(self, reports: list[Report]) -> None:
        self._rows = [_Row(msgspec.msgpack.encode(r)) for r in reports]

    def collect(self) -> list[_Row]:
        """The reports of the shards."""
        return self._rows


@dataclass(frozen=True, slots=True)
class OneProcess:
    """A run in a folder."""

    settings: Settings
    folder: Path
    others: Sequence[Delivery] = ()  # sinks besides the folder `out`

    @property
    def checkpoint(self) -> Path:
        """Where it keeps what it needs to go on."""
        return self.folder / "checkpoint"

    @property
    def out(self) -> Path:
        """Where its notifications are."""
        return self.folder / "out"

    def batch(
        self,
        n: int,
        splits: Iterable[tuple[Decoded, bool]],
        states: list[Manifest],
        kinds: tuple[str, ...] | None = None,
    ) -> Worked:
        """Work batch `n` off on shards in these states; a split comes with whether it is final.

        Where files remember the manifests, they say what the states are, as they do for Spark.
        `kinds` are those in use by then; None: perhaps all.
        """
        sink = Sink(self.settings, self.checkpoint, self.out, others=self.others)
        route = RouteStep(self.settings, str(self.checkpoint), n)
        sent: list[list[Envelope]] = [[] for _ in states]
        for number, (decoded, final) in enumerate(splits):
            for shard, envelope in route.envelopes(decoded, number, final, kinds):
                sent[shard].append(unpack(envelope))
        files = self.settings.manifests == "files"
        step = ShardStep(self.settings, str(self.checkpoint), "run", str(self.out))
        done = Worked([], [], [])
        for shard, manifest in enumerate(states):
            # As Spark does: the state goes through bytes, so nothing of a failed try sticks to it.
            copy = msgspec.msgpack.decode(msgspec.msgpack.encode(manifest), type=Manifest)
            if files:
                copy = manifest_before(self.checkpoint, n, shard)
            started = time.process_time()
            following, report = step.process(shard, sent[shard], copy)
            if files:
                report.manifest = msgspec.msgpack.encode(following)
            done.seconds.append(time.process_time() - started)
            done.states.append(following)
            done.reports.append(report)
        sink(cast(Any, _Frame(done.reports)), n)
        return done
