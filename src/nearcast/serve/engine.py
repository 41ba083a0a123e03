"""`python -m nearcast.serve.engine DATA`: the engine of a service, as a process of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from nearcast.engine.options.command import run
from nearcast.gateway.core import ENGINE, EngineState
from nearcast.model.errors import NearcastError
from nearcast.serve.supervisor import write_state


def main(folder: str) -> int:
    """Run until SIGTERM; the exit status."""
    data = Path(folder)

    def started() -> None:
        known = msgspec.json.decode((data / ENGINE).read_bytes(), type=EngineState)
        write_state(data / ENGINE, "running", known.restarts)

    try:
        run(str(data / "engine.toml"), started)
    except NearcastError as error:
        print(f"nearcast: {error}", file=sys.stderr)
        return getattr(error, "exit_status", 2)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
