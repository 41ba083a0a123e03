"""What goes wrong: repeated requests, crashes, full disks, a run that is away, slow clients."""

from __future__ import annotations

import errno
import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.gateway.running import Running, Server, listen, running, sent

from nearcast.gateway import hub, inbox
from nearcast.gateway.core import ENGINE
from nearcast.gateway.settings import Service

KNN = {"kind": "knn", "at": [0, 0], "k": 1000}


def lines(*ids: str) -> bytes:
    return b"\n".join(json.dumps({"op": "publish", "id": i, "at": [0, 0]}).encode() for i in ids)


def post(http: httpx.Client, body: bytes, key: str | None = None) -> httpx.Response:
    headers = {} if key is None else {"Idempotency-Key": key}
    return http.post("/v1/events", content=body, headers=headers)


def ids_in(folder: Path) -> list[str]:
    """The ids of all events of an inbox."""
    data = b"".join(p.read_bytes() for p in sorted(folder.glob("*.jsonl")))
    return [json.loads(line)["id"] for line in data.splitlines()]


@pytest.fixture
def alone(tmp_path: Path) -> Service:
    """A service whose run is away."""
    return Service(str(tmp_path / "data"), segment_bytes=1 << 20)


def test_a_request_with_a_key_is_taken_once(alone: Service) -> None:
    first = Server(alone)
    answer = post(first.http, lines("a", "b") + b"\nbad", "k")
    assert answer.json()["accepted"] == 2
    again = post(first.http, lines("a", "b") + b"\nbad", "k")
    assert (again.status_code, again.json()) == (202, answer.json())
    assert post(first.http, lines("c"), "k").status_code == 422
    assert post(first.http, lines("a"), "k2").status_code == 202
    with ThreadPoolExecutor(8) as pool:  # at the same time, too
        found = list(pool.map(lambda _: post(first.http, lines("d"), "k3").status_code, range(8)))
    assert found == [202] * 8
    first.stop()
    second = Server(alone)  # after a restart
    assert post(second.http, lines("a", "b") + b"\nbad", "k").json() == answer.json()
    assert post(second.http, lines("a", "b") + b"\nbad").json() == answer.json()  # without
    second.stop()
    assert ids_in(alone.inbox) == ["a", "b", "a", "d", "a", "b"]


@pytest.mark.parametrize("kept", [0, 1, 2, 3])
def test_a_gateway_that_died_before_it_answered(alone: Service, kept: int) -> None:
    """`kept` lines of a request are in the log, and nobody noted it."""
    first = Server(alone)
    post(first.http, lines("a", "b", "c"), "k")
    first.stop()
    (segment,) = alone.inbox.iterdir()
    whole = segment.read_bytes().splitlines(keepends=True)
    segment.write_bytes(b"".join(whole[:kept]) + (whole[kept][:9] if kept < 3 else b""))
    for path in alone.folder.glob("registry.sqlite*"):
        path.unlink()
    second = Server(alone)
    assert post(second.http, lines("a", "b", "c"), "k").json()["accepted"] == 3
    assert post(second.http, lines("a", "b", "c"), "k").json()["accepted"] == 3
    second.stop()
    if kept < 3:  # a line that was cut off stays without its end, and is read by nobody
        segment.write_bytes(segment.read_bytes().rpartition(b"\n")[0] + b"\n" * (kept > 0))
    assert ids_in(alone.inbox) == ["a", "b", "c"]


def test_subscriptions_outlive_a_registry_that_was_not_written(alone: Service) -> None:
    first = Server(alone)
    for n in range(3):
        first.http.put(f"/v1/subscriptions/s{n}", json={"query": KNN})
    first.http.delete("/v1/subscriptions/s1")
    first.stop()
    for path in alone.folder.glob("registry.sqlite*"):
        path.unlink()
    second = Server(alone)
    listed = second.http.get("/v1/subscriptions").json()["subscriptions"]
    second.stop()
    assert [s["id"] for s in listed] == ["s0", "s2"]


def test_a_full_disk_takes_nothing(alone: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(alone)
    assert post(server.http, lines("before")).status_code == 202

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(inbox, "reserve", full)
        patch.setattr(inbox, "_AHEAD", 0)
        server.gateway.inbox._reserved = 0
        refused = post(server.http, lines("x" * 200), "k")
        assert refused.status_code == 507
        assert "No space left" in refused.json()["detail"]
    assert post(server.http, lines("x"), "k2").status_code == 202
    assert post(server.http, lines("x" * 200), "k").status_code == 202
    server.stop()
    assert ids_in(alone.inbox) == ["before", "x", "x" * 200]


def test_without_a_run_writes_are_taken_and_reads_say_so(alone: Service) -> None:
    alone.folder.mkdir()
    (alone.folder / ENGINE).write_text('{"state":"down","since":0,"restarts":3}')
    server = Server(alone)
    time.sleep(0.1)
    assert post(server.http, lines("a")).status_code == 202
    assert server.http.put("/v1/subscriptions/s", json={"query": KNN}).status_code == 201
    shown = server.http.get("/v1/subscriptions/s")
    assert shown.headers["x-nearcast-engine"] == "down"
    assert shown.json()["as_of"]["engine"] == "down"
    ready = server.http.get("/readyz")
    assert (ready.status_code, ready.json()["engine"]) == (503, "down")
    asked = server.http.post("/v1/ask", json={"query": KNN, "last": 1})
    server.stop()
    assert asked.status_code == 400  # it retains nothing


def test_large_deep_and_strange_bodies(alone: Service) -> None:
    from msgspec.structs import replace

    server = Server(replace(alone, limits=replace(alone.limits, body_bytes=100_000)))
    http = server.http
    assert post(http, b"x" * 100_001).status_code == 413

    def parts() -> Any:
        yield from (b"x" * 50_000 for _ in range(4))

    assert http.post("/v1/events", content=parts()).status_code == 413
    for body in (b"[" * 50_000, b'{"a":' * 20_000, b"\x00", b'"', b"[1,2]", b"null", b"\n\n"):
        answer = post(http, body)
        assert answer.status_code == 400, body[:20]
        assert http.put("/v1/subscriptions/x", content=body).status_code == 400
    server.stop()
    assert ids_in(alone.inbox) == []


def test_a_slow_client_reads_on_from_the_log(
    tmp_path: Path, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "_QUEUE", 50)
    monkeypatch.setattr(hub, "_FOUND", 40)
    total = 40_000
    with running(tmp_path, memory) as service:
        http = service.http
        big = {"x": "y" * 500}
        http.put("/v1/subscriptions/s", json={"query": KNN | {"k": 100_000}, "meta": big})
        found: list[str] = []
        started = threading.Event()

        def read() -> None:
            with (
                httpx.Client(base_url=service.server.url, timeout=240) as slow,
                slow.stream("GET", "/v1/notifications?after=0") as stream,
            ):
                text = ""
                for n, piece in enumerate(stream.iter_text()):
                    started.set()
                    time.sleep(0.05 if n < 20 else 0.0)
                    text += piece
                    whole, _, text = text.rpartition("\n\n")
                    found.extend(json.loads(d)["object"] for _, d in sent(whole) if d)
                    if len(found) >= total:
                        return

        thread = threading.Thread(target=read)
        thread.start()
        started.wait()
        names = [f"o{n}" for n in range(total)]
        for n in range(0, total, 4000):
            assert post(http, lines(*names[n : n + 4000])).status_code == 202
        quick = [note["object"] for _, note in listen(http, total, after="0")]
        thread.join()
        assert found == quick
        assert sorted(found) == sorted(names)
        assert service.server.gateway.metrics.dropped._value.get() > 0


def test_two_gateways_share_what_is_registered(service: Running) -> None:
    other = service.another(name="second")
    service.http.put("/v1/subscriptions/shared", json={"query": KNN})
    assert other.http.get("/v1/subscriptions/shared").status_code == 200
    assert other.http.put("/v1/subscriptions/shared", json={"query": KNN}).status_code == 200
    assert post(other.http, lines("by-other"), "k").status_code == 202
    assert post(service.http, lines("by-other"), "k").status_code == 202
    ((_, note),) = listen(service.http, 1, subscription="shared", after="0")
    assert note["object"] == "by-other"
    service.settled()
    for server in (service.server, other):
        shown = server.http.get("/v1/subscriptions/shared").json()
        assert [o["id"] for o in shown["result"]["objects"]] == ["by-other"]
    assert other.http.delete("/v1/subscriptions/shared").status_code == 204
    assert service.http.get("/v1/subscriptions/shared").status_code == 404
