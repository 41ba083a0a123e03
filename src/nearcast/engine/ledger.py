"""Which logs a checkpoint has planned."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from nearcast.engine.files import write_atomic
from nearcast.model.errors import NearcastError


class Ledger:
    """Which logs a checkpoint has planned: a log that changed since is refused."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "ledger.json"
        self._known: dict[str, Any] = {"logs": {}, "batches": 0, "events": 0}
        if self._path.exists():
            self._known = json.loads(self._path.read_text())

    @property
    def batches(self) -> int:
        """Batches planned."""
        return int(self._known["batches"])

    @property
    def events(self) -> int:
        """Events planned."""
        return int(self._known["events"])

    def fresh(self, names: list[str]) -> list[str]:
        """The logs not planned yet."""
        new = []
        for name in names:
            size = Path(name).stat().st_size if Path(name).exists() else -1
            then = self._known["logs"].get(str(Path(name).resolve()))
            if then is None:
                new.append(name)
            elif then != size:
                raise NearcastError(
                    f"{name}: the file had {then:,} bytes when this checkpoint planned it and has "
                    f"{size:,} now; put new events into a new file"
                )
        return new

    def add(self, names: list[str], batches: int, events: int) -> None:
        """Note that `names` are planned."""
        for name in names:
            size = Path(name).stat().st_size if Path(name).exists() else -1
            self._known["logs"][str(Path(name).resolve())] = size
        self._known |= {"batches": batches, "events": events}
        write_atomic(self._path, json.dumps(self._known).encode())
