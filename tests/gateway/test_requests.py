"""Requests of a service without tokens: events, subscriptions, asks, notifications."""

from __future__ import annotations

import json
import time
from typing import Any

from tests.gateway.running import DAY_MS, Running, listen

from nearcast.kinds import KINDS
from nearcast.model.space import Space
from nearcast.wire.jsonl import decode_jsonl

BOX = {"kind": "range", "region": {"bbox": [139, 35, 140, 36]}}


def publish(service: Running, *events: dict[str, Any], **headers: str) -> dict[str, Any]:
    lines = "".join(json.dumps({"op": "publish", **e}) + "\n" for e in events)
    answer = service.http.post("/v1/events", content=lines, headers=headers)
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_post_reaches_who_subscribed(service: Running) -> None:
    http = service.http
    body = {"query": BOX | {"where": "ramen"}, "meta": {"a": [1]}, "owner": "mia"}
    first = http.put("/v1/subscriptions/r1", json=body)
    assert (first.status_code, first.headers["location"]) == (201, "/v1/subscriptions/r1")
    assert http.put("/v1/subscriptions/r1", json=body).status_code == 200
    now = int(time.time() * 1000)
    answer = publish(
        service,
        {"id": "o1", "at": [139.7, 35.6], "text": "Ramen!"},
        {"id": "o2", "at": [139.7, 35.6], "text": "sushi"},
    )
    assert answer == {"accepted": 2, "rejected": []}
    ((cursor, note),) = listen(http, 1, subscription="r1", after="0")
    assert note.pop("time") >= now
    assert note == {
        "id": "r1", "event": "match", "object": "o1", "owner": "mia", "meta": {"a": [1]},
    }  # fmt: skip
    service.settled()
    shown = http.get("/v1/subscriptions/r1").json()
    assert shown["query"] == body["query"]
    assert shown["meta"] == {"a": [1]}
    assert [held["object"] for held in shown["result"]["latest"]] == ["o1"]
    assert shown["as_of"]["batch"] >= int(cursor.split("-")[0])
    assert http.delete("/v1/subscriptions/r1").status_code == 204
    assert http.delete("/v1/subscriptions/r1").status_code == 404
    assert http.get("/v1/subscriptions/r1").status_code == 404


def test_reasons_are_those_of_rejects(service: Running) -> None:
    lines = [
        b'{"op":"publish","id":"o","time":1,"at":[0,91]}',
        b'{"op":"publish","id":"","time":1,"at":[0,1]}',
        b'{"op":"publish","id":"o","time":"soon","at":[0,1]}',
        b'{"op":"subscribe","id":"s","time":1,"query":{"kind":"knn","at":[0,0],"k":0}}',
        b'{"op":"subscribe","id":"s","time":1,"query":{"kind":"nix"}}',
        b'{"op":"subscribe","id":"s","time":1,"query":{"kind":"knn","at":[0,0],"k":1,"where":"("}}',
        b'{"op":"subscribe","id":"s","time":1,"query":{"kind":"terms","region":{"circle":{}}}}',
        b'{"op":"ask","id":"q","time":1,"query":{"kind":"knn","at":[0,0],"k":1}}',
        b'{"op":"nix","id":"s"}',
        b"\xff",
        b"[" * 5000,
        b"nonsense",
    ]
    body = b"\n".join(lines)
    answer = service.http.post("/v1/events", content=body)
    assert answer.status_code == 400
    rejected = [(r["line"], r["reason"]) for r in answer.json()["rejected"]]
    logged = decode_jsonl(body, Space.GEOGRAPHIC, KINDS).rejects.to_pylist()
    assert rejected == [(r["line"], r["reason"]) for r in logged]
    assert len(rejected) == len(lines)
    assert rejected[0][1] in answer.json()["detail"]


def test_an_array_is_as_good_as_lines(service: Running) -> None:
    body = json.dumps(
        [{"op": "publish", "id": "a1", "at": [1, 1], "text": "two\nlines"}, {"op": "nix"}],
        indent=1,
    )
    answer = service.http.post("/v1/events", content=body)
    assert answer.status_code == 202
    assert answer.json()["accepted"] == 1
    assert [r["line"] for r in answer.json()["rejected"]] == [2]
    assert service.http.post("/v1/events", content="[{]").status_code == 400
    assert service.http.post("/v1/events", content="").status_code == 400


def test_a_subscription_that_is_wrong_is_refused_with_its_reason(service: Running) -> None:
    http = service.http
    for body, reason in (
        ({"query": {"kind": "knn", "at": [0, 0], "k": 0}}, "query.k"),
        ({"query": BOX, "time": 5}, "time"),
        ({"query": BOX, "last": DAY_MS + 1}, "retains"),
        ({"owner": "x"}, "query"),
    ):
        answer = http.put("/v1/subscriptions/w", json=body)
        assert answer.status_code == 400
        assert answer.headers["content-type"] == "application/problem+json"
        assert reason in answer.json()["detail"]
    assert http.put(f"/v1/subscriptions/{'x' * 257}", json={"query": BOX}).status_code == 400
    assert http.put("/v1/subscriptions/a%2Fb%20c", json={"query": BOX}).status_code == 201
    assert http.get("/v1/subscriptions/a%2Fb%20c").json()["id"] == "a/b c"
    http.delete("/v1/subscriptions/a%2Fb%20c")


def test_lists_go_on_where_they_ended(service: Running) -> None:
    http = service.http
    for n in range(5):
        owner = "even" if n % 2 == 0 else "odd"
        http.put(f"/v1/subscriptions/l{n}", json={"query": BOX, "owner": owner})
    found, after = [], ""
    while after is not None:
        params: dict[str, Any] = {"owner": "even", "kind": "range", "limit": 2, "after": after}
        page = http.get("/v1/subscriptions", params=params).json()
        found += [s["id"] for s in page["subscriptions"]]
        after = page["next"]
    assert found == ["l0", "l2", "l4"]
    assert http.get("/v1/subscriptions", params={"kind": "knn"}).json()["subscriptions"] == []
    for params in ({"kind": "nix"}, {"limit": "0"}, {"limit": "x"}):
        assert http.get("/v1/subscriptions", params=params).status_code == 400
    for n in range(5):
        http.delete(f"/v1/subscriptions/l{n}")


def test_present_results_are_the_results(service: Running) -> None:
    http = service.http
    near = {"kind": "knn", "at": [10, 10], "k": 2, "where": "here"}
    best = {"kind": "topk", "at": [10, 10], "k": 2, "keywords": ["here"], "alpha": 0.5}
    common = {
        "kind": "terms", "region": {"circle": {"at": [10, 10], "radius": 50000}},
        "k": 2, "window": 60000, "every": 50, "where": "here",
    }  # fmt: skip
    for id_, query in (("near", near), ("best", best), ("common", common)):
        assert http.put(f"/v1/subscriptions/{id_}", json={"query": query}).status_code == 201
    for n, distance in enumerate((0.3, 0.1, 0.2)):
        publish(service, {"id": f"p{n}", "at": [10, 10 + distance], "text": "here"})
    time.sleep(0.1)
    publish(service, {"id": "later", "at": [0, 0]})  # the stream passes a moment of `terms`
    service.settled()
    for id_, value in (("near", "distance"), ("best", "score")):
        shown = http.get(f"/v1/subscriptions/{id_}").json()["result"]["objects"]
        assert [held["id"] for held in shown] == ["p1", "p2"]
        assert all(value in held for held in shown)
    assert http.get("/v1/subscriptions/common").json()["result"]["terms"] == [["here", 3]]
    # A replaced subscription begins anew.
    http.put("/v1/subscriptions/near", json={"query": near})
    assert "result" not in http.get("/v1/subscriptions/near").json()
    for id_ in ("near", "best", "common"):
        http.delete(f"/v1/subscriptions/{id_}")


def test_an_ask_is_answered(service: Running) -> None:
    publish(service, {"id": "q1", "at": [20, 20], "text": "asked"})
    service.settled()
    query = {"kind": "knn", "at": [20, 20], "k": 1, "where": "asked"}
    ask = {"query": query, "last": 60_000, "fields": ["at"]}
    answer = service.http.post("/v1/ask", json=ask)
    assert answer.status_code == 200, answer.text
    said = answer.json()
    assert said["as_of"]["batch"] >= 0
    assert said["objects"] == [{"id": "q1", "distance": 0.0, "at": [20, 20]}]
    for wrong, reason in (
        ({"query": query}, "last"),
        ({"query": query, "last": DAY_MS + 1}, "retains"),
        ({"query": {"kind": "knn"}, "last": 1}, "at"),
        ({"query": query, "last": 1, "id": "x"}, "id"),
    ):
        refused = service.http.post("/v1/ask", json=wrong)
        assert refused.status_code == 400
        assert reason in refused.json()["detail"]


def test_answers_of_others_are_in_no_stream(service: Running) -> None:
    query = {"kind": "knn", "at": [20, 20], "k": 1}
    service.http.post("/v1/ask", json={"query": query, "last": 1000})
    service.http.put("/v1/subscriptions/all", json={"query": query})
    publish(service, {"id": "z", "at": [20, 20]})
    service.settled()
    notes = listen(service.http, 1, after="0")
    assert all(not note["id"].startswith("nearcast:ask") for _, note in notes)
    service.http.delete("/v1/subscriptions/all")


def test_paths_and_methods_that_are_not_there(service: Running) -> None:
    for method, path, status in (
        ("GET", "/v2", 404),
        ("POST", "/v1/subscriptions", 405),
        ("DELETE", "/v1/events", 405),
        ("GET", "/v1/notifications?after=x", 400),
    ):
        answer = service.http.request(method, path)
        assert answer.status_code == status
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["status"] == status


def test_it_says_how_it_is(service: Running) -> None:
    http = service.http
    assert http.get("/healthz").json() == {"status": "alive"}
    service.settled()
    ready = http.get("/readyz")
    assert (ready.status_code, ready.json()["status"]) == (200, "ready")
    text = http.get("/metrics").text
    for name in (
        "nearcast_request_seconds_bucket", 'nearcast_events_total{outcome="rejected"}',
        'nearcast_notifications_total{channel="sse",outcome="delivered"}',
        "nearcast_delivery_lag_seconds", 'nearcast_connections{channel="sse"}',
        "nearcast_queue_drops_total",
    ):  # fmt: skip
        assert name in text
