"""The audit log: who changed what, and when; one JSON line each. No body, token or secret."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path

import msgspec

__all__ = ["Audit"]

_logger = logging.getLogger("nearcast.gateway")
_ROLL = 64 << 20
_KEPT = 10


class Audit:
    """Appends to `audit.jsonl`; when that is large, another one begins, and the oldest go."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "audit.jsonl"
        self._lock = threading.Lock()
        self._file = self.path.open("ab", buffering=0)

    def note(self, who: str, what: str, target: str, status: int, **more: object) -> None:
        """Note a request that changed something, or was refused."""
        entry = {"time": time.time_ns() // 1_000_000, "who": who, "what": what, "target": target}
        line = msgspec.json.encode({**entry, "status": status, **more}) + b"\n"
        with self._lock:
            try:
                self._file.write(line)
                if self._file.tell() > _ROLL:
                    self._roll()
            except OSError as error:  # a full disk must not stop what is being noted
                _logger.error("audit: %s", error.strerror)

    def _roll(self) -> None:
        self._file.close()
        self.path.rename(self.path.with_name(f"audit-{time.time_ns() // 1_000_000}.jsonl"))
        for old in sorted(self.path.parent.glob("audit-*.jsonl"))[:-_KEPT]:
            old.unlink(missing_ok=True)
        self._file = self.path.open("ab", buffering=0)

    def close(self) -> None:
        """Write no more."""
        with self._lock:
            self._file.close()
