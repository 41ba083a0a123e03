"""The figures of a live run for Prometheus, made from the records of its batches.

Counters begin at 0 with the process, as Prometheus expects. What the checkpoint holds over all
starts is what `nearcast status` says.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from nearcast.engine.moves.control import control_path, read_control
from nearcast.engine.output.reports import BatchRecord

__all__ = ["Metrics"]

_SECONDS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.5, 3.0, 6.0, 15.0, 60.0)  # of a batch
_SHARD = ("shard",)


class Metrics:
    """Figures of one run; call it with the record of each batch."""

    def __init__(self, checkpoint: Path) -> None:
        self._checkpoint = checkpoint
        self.lag: Callable[[], float | None] = lambda: None
        """How many bytes of input no batch has yet; None: that is not known."""
        self._tables: dict[str, bytes] = {}
        self.registry = registry = CollectorRegistry()

        def counter(name: str, about: str, labels: tuple[str, ...] = ()) -> Counter:
            return Counter(f"nearcast_{name}", about, labels, registry=registry)

        def gauge(name: str, about: str, labels: tuple[str, ...] = ()) -> Gauge:
            return Gauge(f"nearcast_{name}", about, labels, registry=registry)

        self._batches = counter("batches", "Batches done")
        self._batch = gauge("batch", "Number of the latest batch that is done")
        self._seconds = Histogram(
            "nearcast_batch_seconds",
            "From the end of a batch to the end of the next",
            buckets=_SECONDS,
            registry=registry,
        )
        self._events = counter("events", "Events read", ("op",))
        self._rejects = counter("rejects", "Events refused, by what was wrong", ("field",))
        self._notifications = counter("notifications", "Notifications", ("kind", "event"))
        self._objects = counter("shard_objects", "Objects that a shard was sent", _SHARD)
        self._candidates = counter("candidates", "Subscriptions looked at for objects", _SHARD)
        self._busy = counter("shard_seconds", "Time that a shard worked", _SHARD)
        self._rebuilds = counter("rebuilds", "Indexes of a shard built anew from files", _SHARD)
        self._moved = counter("moved", "Copies of subscriptions that left a shard", _SHARD)
        self._replanned = counter("replanned", "Routing tables published", ("kind",))
        self._subscriptions = gauge("subscriptions", "Subscriptions that rest on a shard", _SHARD)
        self._load = gauge("shard_load", "Counted work of a shard in the latest batch", _SHARD)
        self._per_object = gauge(
            "candidates_per_object", "Subscriptions looked at per object in the latest batch"
        )
        self._state = gauge("state_bytes", "Files of the state of a shard", _SHARD)
        self._arena = gauge("arena_bytes", "Memory-mapped arrays of a shard", _SHARD)
        self._lag = gauge("input_lag_bytes", "Input that no batch has yet")

    def __call__(self, record: BatchRecord) -> None:
        """One batch is done."""
        self._batches.inc()
        self._batch.set(record.batch)
        self._seconds.observe(record.seconds)
        objects = examined = 0
        for r in record.reports:
            for op, n in r.events.items():
                if op != "reject":
                    self._events.labels(op).inc(n)
            for field, n in r.reject_kinds.items():
                self._rejects.labels(field).inc(n)
            for name, n in r.notifications.items():
                kind, _, event = name.partition(".")
                self._notifications.labels(kind, event).inc(n)
            shard = str(r.shard)
            self._objects.labels(shard).inc(r.objects)
            self._candidates.labels(shard).inc(r.examined)
            self._busy.labels(shard).inc(r.seconds)
            self._rebuilds.labels(shard).inc(r.rebuilt)
            self._moved.labels(shard).inc(r.moved)
            self._subscriptions.labels(shard).set(r.subscriptions)
            self._load.labels(shard).set(sum(c.load for c in r.counts.values()))
            self._state.labels(shard).set(r.state_bytes)
            self._arena.labels(shard).set(r.arena_bytes)
            objects += r.objects
            examined += r.examined
        if objects:
            self._per_object.set(examined / objects)
        self._note_tables(record.batch + 1)

    def _note_tables(self, batch: int) -> None:
        """Count the routing tables that begin with a batch."""
        path = control_path(self._checkpoint, batch)
        if not path.exists():
            return
        for kind, table in read_control(path).tables.items():
            if self._tables.get(kind) != table:
                self._tables[kind] = table
                self._replanned.labels(kind).inc()

    def page(self) -> bytes:
        """What Prometheus reads."""
        lag = self.lag()
        self._lag.set(float("nan") if lag is None else lag)
        return bytes(generate_latest(self.registry))
