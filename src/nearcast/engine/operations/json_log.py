"""The log of a run as JSON, a line each, for what collects logs."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

from nearcast.engine.output.reports import BatchRecord

__all__ = ["JsonLines", "log_batch"]

_FIELDS = "nearcast"  # attribute of a log record that holds further fields
_logger = logging.getLogger("nearcast.batch")


class JsonLines(logging.Formatter):
    """`{"time":…,"level":…,"logger":…,"message":…}` and the fields of the record."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, _FIELDS, {}),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def log_batch(record: BatchRecord) -> None:
    """A line for each batch."""
    fields = {
        "batch": record.batch,
        "events": record.events,
        "notifications": record.notifications,
        "rejects": sum(r.rejects for r in record.reports),
        "seconds": round(record.seconds, 4),
    }
    _logger.info("batch %d is done", record.batch, extra={_FIELDS: fields})
