"""What the reports of a run add up to so far; nothing here is estimated."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field

from nearcast.engine.output.reports import BatchRecord


@dataclass(slots=True)
class Tally:
    """Sums over the batches, and the last batch itself."""

    events: Counter[str] = field(default_factory=Counter)
    notifications: Counter[str] = field(default_factory=Counter)  # "range.match": n
    batches: int = 0
    last: BatchRecord | None = None
    reported: deque[int] = field(default_factory=lambda: deque(maxlen=40))
    """Notifications of each of the latest batches."""

    def add(self, record: BatchRecord) -> None:
        """Count a batch."""
        for report in record.reports:
            self.events.update(report.events)
            self.notifications.update(report.notifications)
        self.reported.append(record.notifications)
        self.batches += 1
        self.last = record

    @property
    def total(self) -> int:
        """Events processed."""
        return self.events.total()

    @property
    def per_second(self) -> float:
        """Events a second, from the end of one batch to the end of the next."""
        if self.last is None or self.last.seconds <= 0:
            return 0.0
        return self.last.events / self.last.seconds
