"""Starts the processes of a service, watches them, and ends them in good order."""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from nearcast.gateway.core import ENGINE, EngineState
from nearcast.model.errors import NearcastError
from nearcast.serve.child import Child
from nearcast.serve.config import Serving, write_serving
from nearcast.wire.durable import make_folder, write_atomic

__all__ = ["supervise"]

_LOOK_S = 0.1
_REFUSED = 2  # exit status of what cannot start as it is configured


def supervise(serving: Serving, demo: bool = False) -> int:
    """Serve until SIGINT or SIGTERM; the exit status."""
    make_folder(serving.data)
    with _alone(serving.data):
        write_serving(serving)
        state = _State(serving.data)
        engine = Child("engine", ["nearcast.serve.engine", str(serving.data)], state.say)
        gateways = [
            Child("gateway", ["nearcast.gateway", str(serving.service_file(n))], stop_s=15.0)
            for n in range(len(serving.services))
        ]
        children = [engine, *gateways]
        if demo:
            children.append(Child("city", ["nearcast.serve.city", str(serving.service_file(0))]))
        return _watch(serving, children)


def _watch(serving: Serving, children: list[Child]) -> int:
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    first = serving.services[0]
    scheme = "https" if first.certificate else "http"
    host = f"[{first.host}]" if ":" in first.host else first.host
    print(
        f"nearcast: serving {scheme}://{host}:{first.port} from {serving.data}",
        file=sys.stderr,
        flush=True,
    )
    status = 0
    for child in children:
        child.start()
    while not stopped.wait(_LOOK_S):
        for child in children:
            if child.look() and child.status == _REFUSED and not child.restarts:
                status = _REFUSED  # it has said why
                stopped.set()
    # Gateways first: what they have taken by then, the engine still reads.
    for child in reversed(children):
        child.ask_to_stop()
    for child in reversed(children):
        child.join()
    return status


class _State:
    """The file that says how the engine is."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / ENGINE

    def say(self, state: str, restarts: int) -> None:
        """Write it."""
        write_state(self.path, state, restarts)


def write_state(path: Path, state: str, restarts: int) -> None:
    """Say how the engine is."""
    now = time.time_ns() // 1_000_000
    write_atomic(path, msgspec.json.encode(EngineState(state, now, restarts)))


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Refuse a folder that is being served."""
    with (folder / "serve.lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            who = file.read().strip() or "another process"
            raise NearcastError(f"serve: {folder} is served already, by {who}") from None
        file.truncate(0)
        file.write(f"process {os.getpid()}")
        file.flush()
        yield
