"""`python -m nearcast.serve.city FILE`: the demo's city posts to a service, without end."""

from __future__ import annotations

import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import msgspec

from nearcast.demo.city import City
from nearcast.gateway.settings import load

SUBSCRIPTIONS = 1000
POSTS_A_SECOND = 100
CHURN_A_SECOND = 2
_TICK_S = 0.25
_LIFE_S = 600.0  # a tenth of the subscriptions expires within so long
_LINES = msgspec.json.Encoder()


def main(path: str) -> int:
    """Post until SIGTERM; the exit status."""
    service = load(Path(path))
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    scheme = "https" if service.certificate else "http"
    url = f"{scheme}://{service.host}:{service.port}"
    with httpx.Client(base_url=url, verify=False, timeout=30.0) as http:
        live(City(time.time_ns() % 2**32, _LIFE_S), http, stopped)
    return 0


def live(city: City, http: httpx.Client, stopped: threading.Event) -> None:
    """Have a city post through a client, until it is stopped."""
    then = time.time_ns() // 1_000_000
    _post(http, city.opening(then, SUBSCRIPTIONS), stopped)
    while not stopped.wait(_TICK_S):
        now = time.time_ns() // 1_000_000
        seconds = min((now - then) / 1000.0, 2.0)
        churn = round(CHURN_A_SECOND * now / 1000) - round(CHURN_A_SECOND * then / 1000)
        posts = round(POSTS_A_SECOND * seconds)
        _post(http, city.moment(now - int(seconds * 1000), now, posts, churn), stopped)
        then = now
        city.posts.clear()  # a city without end remembers nothing
        for ended in city.ended:
            city.subscriptions.pop(ended, None)
        city.ended.clear()


def _post(http: httpx.Client, events: list[dict[str, Any]], stopped: threading.Event) -> None:
    """Send some events, again and again while the service is not there."""
    key = f"city-{time.time_ns()}"
    while not stopped.is_set():
        try:
            answer = http.post(
                "/v1/events",
                content=_LINES.encode_lines(events),
                headers={"Idempotency-Key": key},
            )
            if answer.status_code < 500:
                return
        except httpx.TransportError:
            pass
        stopped.wait(1.0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
