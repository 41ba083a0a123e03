"""What the map page asks for besides."""

from __future__ import annotations

import json

from tests.gateway.running import Running

from nearcast.gateway.page_requests import Posts
from nearcast.wire.arriving import Arrived
from nearcast.wire.shapes import PublishShape


def test_posts_come_as_they_are_taken(service: Running) -> None:
    event = {"op": "publish", "id": "p1", "at": [1, 2], "text": "Hello", "keywords": ["k"]}
    assert service.http.post("/v1/events", json=[event]).status_code == 202
    with service.http.stream("GET", "/v1/posts") as stream:
        line = next(line for line in stream.iter_lines() if line.startswith("data: "))
    (shown,) = [p for p in json.loads(line.removeprefix("data: ")) if p["id"] == "p1"]
    del shown["time"]
    assert shown == {"id": "p1", "at": [1, 2], "text": "Hello", "keywords": ["k"]}


def test_of_many_posts_a_sample_is_shown() -> None:
    posts = Posts()
    every = [Arrived(n, PublishShape(str(n), n, (0.0, 0.0)), b"") for n in range(5000)]
    posts.add(every[:3])
    assert [p["id"] for p in posts.since(1)] == ["1", "2"]
    posts.add(every[3:])
    shown = [int(p["id"]) for p in posts.since(3)]
    assert len(shown) == 100
    assert shown == sorted(shown)
    assert shown[0] >= 3000
    assert posts.since(5000) == []


def test_status_and_rejects(service: Running) -> None:
    # What a gateway refuses never reaches the run: this line comes by another way.
    (service.service.inbox / "1.jsonl").write_text('{"op":"nix"}\n')
    service.settled()
    (found,) = service.http.get("/v1/rejects", params={"limit": 1}).json()["rejects"]
    assert found["reason"].startswith("op: unknown 'nix'")
    status = service.http.get("/v1/status").json()
    assert status["space"] == "geographic"
    assert status["kinds"] == ["range", "knn", "topk", "terms"]
    assert status["as_of"]["batch"] == service.server.gateway.hub.position
    assert service.http.get("/v1/rejects?limit=0").status_code == 400
