"""A receiver of webhooks that behaves as it is told."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from nearcast.gateway.posting import SIGNATURE


@dataclass
class Receiver:
    """What came, and how the next POSTs are answered."""

    url: str = ""
    answers: list[str] = field(default_factory=list)  # one per POST; then `200`
    posts: list[tuple[dict[str, Any], bytes, str | None]] = field(default_factory=list)
    hang: threading.Event = field(default_factory=threading.Event)

    @property
    def keys(self) -> list[str]:
        """The keys of all notifications that were acknowledged, in order."""
        return [n["key"] for body, _, _ in self.posts for n in body["notifications"]]


@contextmanager
def receiver() -> Iterator[Receiver]:
    """One on a port of this machine."""
    found = Receiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            how = found.answers.pop(0) if found.answers else "200"
            if how == "hang":
                found.hang.wait(60)
                self.close_connection = True
                return
            if how == "cut":  # acknowledged, and then the body breaks off
                self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf")
                self.close_connection = True
            elif how == "garbage":
                self.wfile.write(b"nonsense\r\n\r\n")
                self.close_connection = True
                return
            else:
                self.send_response(int(how))
                self.send_header("Location", found.url + "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()
            if how in ("200", "204", "cut"):
                found.posts.append((json.loads(body), body, self.headers.get(SIGNATURE)))

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    found.url = f"http://127.0.0.1:{server.server_address[1]}/hook"
    try:
        yield found
    finally:
        found.hang.set()
        server.shutdown()
        server.server_close()
