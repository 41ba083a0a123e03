"""A service in this process: the real gateway behind a real socket, the steps without Spark."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from nearcast.engine.options.settings import Settings
from nearcast.gateway.app import create_app
from nearcast.gateway.core import Gateway
from nearcast.gateway.delivering import Patience
from nearcast.gateway.settings import Service
from nearcast.testing.live_run import LiveRun

DAY_MS = 86_400_000
PATIENCE_S = 120.0  # kernels may have to be compiled first


def until(holds: Callable[[], Any], what: str = "it") -> Any:
    """Wait until something holds; what it gave."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if found := holds():
            return found
        time.sleep(0.01)
    raise AssertionError(f"{what} did not happen")


class Server:
    """A gateway behind a socket."""

    def __init__(self, service: Service, port: int = 0, patience: Patience | None = None) -> None:
        self.app = create_app(service, patience)
        config = uvicorn.Config(
            self.app, host="127.0.0.1", port=port, log_level="warning", access_log=False,
            ws="wsproto", timeout_graceful_shutdown=1,
        )  # fmt: skip
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        until(lambda: self.server.started, "the start")
        port = self.server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self.http = httpx.Client(base_url=self.url, timeout=PATIENCE_S)

    @property
    def gateway(self) -> Gateway:
        """What is behind it."""
        found: Gateway = self.app.state.gateway
        return found

    def stop(self) -> None:
        """End it in good order."""
        self.http.close()
        self.server.should_exit = True
        self.thread.join()


@dataclass
class Running:
    """A run and its gateways."""

    folder: Path
    run: LiveRun
    service: Service
    server: Server
    patience: Patience | None = None
    more: list[Server] = field(default_factory=list)
    paused: threading.Event = field(default_factory=threading.Event)

    @property
    def http(self) -> httpx.Client:
        """A client of the first gateway."""
        return self.server.http

    def another(self, port: int = 0, **changes: Any) -> Server:
        """Another gateway of the same run."""
        from msgspec.structs import replace

        self.more.append(Server(replace(self.service, **{"name": "other", **changes}), port))
        return self.more[-1]

    def restart_gateway(self) -> None:
        """End the first gateway, and begin it again."""
        self.server.stop()
        self.server = Server(self.service, patience=self.patience)

    def settled(self) -> None:
        """Wait until everything that was written is visible and folded into results."""
        until(self._done, "the end of all batches")

    def _done(self) -> bool:
        feed = self.run.tailer.planned
        gateway = self.server.gateway
        known = self.run.tailer._read
        all_read = all(
            known.get(str(self.run.inbox / path.name)) == path.stat().st_size
            for path in self.service.inbox.glob("*.jsonl")
        )
        through = gateway.registry.mark("results")
        done = self.run.next == feed and all_read and gateway.hub.position == feed - 1
        held = gateway.reader.held if gateway.reader else None
        read = held is not None and held.batch == feed - 1
        return done and (feed == 0 or (read and through == f"{feed}-0-0"))


@contextmanager
def running(
    folder: Path, memory: Path, patience: Patience | None = None, **changes: Any
) -> Iterator[Running]:
    """A run in a folder, with one gateway."""
    out = folder / "out"
    (out / "inbox").mkdir(parents=True)
    (folder / "in").symlink_to(out / "inbox")
    (out / "checkpoint").symlink_to(folder / "checkpoint")
    settings = Settings(
        order="arrival", shards=2, arena=str(memory), retain_ms=DAY_MS, manifests="files"
    )
    run = LiveRun(settings, folder)
    service = Service(str(out), retain_ms=DAY_MS, **changes)
    running = Running(folder, run, service, Server(service, patience=patience), patience)
    stopped = threading.Event()

    def steps() -> None:
        while not stopped.is_set():
            if running.paused.is_set() or run.step() is None:
                stopped.wait(0.005)

    thread = threading.Thread(target=steps, daemon=True)
    thread.start()
    try:
        yield running
    finally:
        stopped.set()
        thread.join()
        for server in (running.server, *running.more):
            server.stop()
        run.tailer.stop()


def sent(text: str) -> list[tuple[str, str]]:
    """(cursor, data) of the events in a piece of a stream; data is empty for a mere cursor."""
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
        if "id" in fields:
            found.append((fields["id"], fields.get("data", "")))
    return found


def listen(http: httpx.Client, count: int, **params: Any) -> list[tuple[str, dict[str, Any]]]:
    """The next notifications of a stream, with their cursors."""
    import json

    headers = params.pop("headers", {})
    found: list[tuple[str, dict[str, Any]]] = []
    with http.stream("GET", "/v1/notifications", params=params, headers=headers) as stream:
        assert stream.status_code == 200, stream.read()
        text = ""
        for piece in stream.iter_text():
            text += piece
            whole, _, text = text.rpartition("\n\n")
            found += [(cursor, json.loads(data)) for cursor, data in sent(whole) if data]
            if len(found) >= count:
                return found
    raise AssertionError(f"the stream ended after {len(found)}")
