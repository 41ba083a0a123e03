"""What a gateway counts, as Prometheus reads it."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

__all__ = ["CONTENT_TYPE", "Metrics"]

CONTENT_TYPE = CONTENT_TYPE_LATEST
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1.0, 2.0, 5.0, 15.0, 60.0, 300.0)


class Metrics:
    """The counters of one gateway."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        name, registry = "nearcast_", self.registry
        self.requests = Histogram(
            f"{name}request_seconds",
            "Time to answer a request",
            ["method", "route", "status"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.events = Counter(f"{name}events", "Events of requests", ["outcome"], registry=registry)
        self.notifications = Counter(
            f"{name}notifications",
            "Notifications that left or could not",
            ["channel", "outcome"],
            registry=registry,
        )
        self.lag = Histogram(
            f"{name}delivery_lag_seconds",
            "From the time of a notification to its delivery",
            ["channel"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.connections = Gauge(
            f"{name}connections", "Open streams", ["channel"], registry=registry
        )
        self.dropped = Counter(
            f"{name}queue_drops",
            "Queues that were full; their clients read on from the log",
            registry=registry,
        )
        self.batch = Gauge(f"{name}visible_batch", "The latest batch", registry=registry)
        self.waiting = Gauge(
            f"{name}waiting_seconds",
            "For how long the oldest event waits that no batch has brought to light",
            registry=registry,
        )
        self.engine = Gauge(f"{name}engine_up", "Whether the engine runs", registry=registry)

    def count(self, outcome: str) -> int:
        """Events of requests that ended so: accepted or rejected."""
        found = self.registry.get_sample_value("nearcast_events_total", {"outcome": outcome})
        return int(found or 0)

    def text(self) -> bytes:
        """All of them."""
        text: bytes = generate_latest(self.registry)
        return text
