"""`/metrics` and `/healthz` of a live run, on a port of their own, from a thread."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from nearcast.engine.output.reports import BatchRecord
from nearcast.model.errors import NearcastError

if TYPE_CHECKING:
    from nearcast.engine.operations.metrics import Metrics

__all__ = ["OperationsServer"]

_TEXT = "text/plain; version=0.0.4; charset=utf-8"


class OperationsServer:
    """Serves until it is closed; call it with the record of each batch."""

    def __init__(self, address: str, metrics: Metrics) -> None:
        """`address` is HOST:PORT."""
        self._metrics = metrics
        self.trouble: Callable[[], str] = lambda: ""
        """Why the run cannot go on, or nothing."""
        self._batch, self._at = -1, time.monotonic()

        class Handler(BaseHTTPRequestHandler):
            """Answers what this server knows."""

            server_version, sys_version = "nearcast", ""
            timeout = 10  # seconds that a client may take

            def do_GET(inner) -> None:  # noqa: N805 -- as the base class calls them
                self._answer(inner)

            def log_message(inner, *args: object) -> None:  # noqa: N805
                """Whoever scrapes every second fills no log."""

        host, _, port = address.rpartition(":")
        self.host = host
        try:
            self._server = ThreadingHTTPServer((host, int(port)), Handler)
        except OSError as error:
            raise NearcastError(
                f"metrics: cannot listen on {host}:{port} ({error.strerror}); choose another port"
            ) from error
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="nearcast-metrics", daemon=True
        )
        self._thread.start()

    @property
    def address(self) -> str:
        """HOST:PORT."""
        return f"{self.host}:{self.port}"

    @property
    def port(self) -> int:
        """Where it listens; the one that was free, if it was asked to take any."""
        return int(self._server.server_address[1])

    def __call__(self, record: BatchRecord) -> None:
        """One batch is done."""
        self._batch, self._at = record.batch, time.monotonic()
        self._metrics(record)

    def close(self) -> None:
        """Serve no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        path = request.path.partition("?")[0]
        if path == "/metrics":
            _send(request, 200, _TEXT, self._metrics.page())
        elif path == "/healthz":
            trouble = self.trouble()
            health = {
                "status": "failed" if trouble else "ok",
                "batch": self._batch if self._batch >= 0 else None,
                "seconds_since_batch": round(time.monotonic() - self._at, 1),
            }
            if trouble:
                health["detail"] = trouble
            body = json.dumps(health).encode() + b"\n"
            _send(request, 503 if trouble else 200, "application/json", body)
        else:
            _send(request, 404, _TEXT, b"there are /metrics and /healthz\n")


def _send(request: BaseHTTPRequestHandler, status: int, kind: str, body: bytes) -> None:
    request.send_response(status)
    request.send_header("Content-Type", kind)
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)
