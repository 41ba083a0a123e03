"""Tokens: who may do what, and that what belongs to others is not there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from tests.gateway.receiver import receiver
from tests.gateway.running import PATIENCE_S, Running, listen, running, until

from nearcast.cli import main
from nearcast.gateway.settings import Limits
from nearcast.gateway.tokens import Token, digest, new_token, read_tokens

QUERY = {"kind": "range", "region": {"bbox": [0, 0, 1, 1]}}


@dataclass
class Tenants:
    """A service and its clients."""

    service: Running
    ann: httpx.Client
    bob: httpx.Client
    all: httpx.Client
    reader: httpx.Client
    secrets: list[str]


@pytest.fixture(scope="module")
def tenants(tmp_path_factory: pytest.TempPathFactory, module_memory: Path) -> Iterator[Tenants]:
    folder = tmp_path_factory.mktemp("tenants")
    path = folder / "tokens.json"
    secrets = [
        new_token(path, "ann", "ann", ("publish", "subscribe", "ask")),
        new_token(path, "bob", "bob", ("publish", "subscribe", "ask")),
        new_token(path, "ops", "*", ("publish", "subscribe", "ask", "admin")),
        new_token(path, "reader", "ann", ("subscribe",)),
    ]
    with running(folder, module_memory, tokens=str(path), private_webhooks=True) as service:
        url = service.server.url
        clients = [
            httpx.Client(base_url=url, timeout=60, headers={"Authorization": f"Bearer {s}"})
            for s in secrets
        ]
        ann, bob, ops, reader = clients
        yield Tenants(service, ann, bob, ops, reader, secrets)
        for client in clients:
            client.close()


def post(http: httpx.Client, *events: dict[str, Any]) -> httpx.Response:
    return http.post("/v1/events", json=list(events))


def test_without_a_token_nothing_is_there(tenants: Tenants) -> None:
    http = tenants.service.http
    for method, path in (
        ("POST", "/v1/events"), ("GET", "/v1/subscriptions"), ("PUT", "/v1/subscriptions/x"),
        ("GET", "/v1/subscriptions/x"), ("DELETE", "/v1/subscriptions/x"), ("POST", "/v1/ask"),
        ("GET", "/v1/notifications"), ("GET", "/v1/webhooks"), ("PUT", "/v1/webhooks/x"),
        ("GET", "/v1/webhooks/x"), ("DELETE", "/v1/webhooks/x"), ("GET", "/metrics"),
    ):  # fmt: skip
        for headers in ({}, {"Authorization": "Bearer nc_wrong"}, {"Authorization": "Basic x"}):
            answer = http.request(method, path, headers=headers)
            assert answer.status_code == 401, (method, path)
            assert answer.headers["www-authenticate"].startswith("Bearer")
    assert http.get("/healthz").status_code == 200
    assert http.get("/readyz").status_code in (200, 503)


def test_what_belongs_to_others_is_not_there(tenants: Tenants) -> None:
    ann, bob = tenants.ann, tenants.bob
    assert ann.put("/v1/subscriptions/hers", json={"query": QUERY}).status_code == 201
    assert ann.get("/v1/subscriptions/hers").json()["owner"] == "ann"
    with receiver() as found:
        hook = {"url": found.url, "subscriptions": ["hers"]}
        assert ann.put("/v1/webhooks/hook", json=hook).status_code == 201
        for method, path, body in (
            ("GET", "/v1/subscriptions/hers", None),
            ("DELETE", "/v1/subscriptions/hers", None),
            ("PUT", "/v1/subscriptions/hers", {"query": QUERY}),
            ("GET", "/v1/subscriptions?owner=ann", None),
            ("GET", "/v1/notifications?subscription=hers", None),
            ("GET", "/v1/notifications?owner=ann", None),
            ("GET", "/v1/webhooks/hook", None),
            ("DELETE", "/v1/webhooks/hook", None),
            ("PUT", "/v1/webhooks/mine", hook),
            ("PUT", "/v1/webhooks/mine", {"url": found.url, "owner": "ann"}),
        ):
            answer = bob.request(method, path, json=body)
            assert answer.status_code == 404, (method, path, answer.text)
            if "owner" not in path and method != "PUT":  # it looks as if it were not there at all
                other = path.replace("hers", "nix").replace("s/hook", "s/nix")
                said = bob.request(method, other).json()["detail"].replace("nix", "*")
                assert answer.json()["detail"].replace("hers", "*").replace("'hook'", "'*'") == said
        assert bob.get("/v1/subscriptions").json()["subscriptions"] == []
        assert bob.get("/v1/webhooks").json()["webhooks"] == []
        # In events, too.
        answer = post(bob, {"op": "subscribe", "id": "hers", "query": QUERY})
        assert answer.status_code == 400
        answer = post(bob, {"op": "unsubscribe", "id": "hers"}, {"op": "unsubscribe", "id": "nix"})
        assert answer.json() == {"accepted": 2, "rejected": []}
        assert ann.get("/v1/subscriptions/hers").status_code == 200
        # Nobody subscribes in another's name, whatever the line looks like.
        for line in (
            '{"op":"subscribe","id":"b1","query":%s,"owner":"ann"}',
            '{"op":"subscribe","id":"b1","owner":null,"query":%s,"owner":"ann"}',
        ):
            text = line % json.dumps(QUERY)
            assert bob.post("/v1/events", content=text).status_code == 400
        text = f'{{"op":"subscribe","id":"b1","query":{json.dumps(QUERY)},"owner":null}}'
        assert bob.post("/v1/events", content=text).status_code == 202
        assert bob.get("/v1/subscriptions/b1").json()["owner"] == "bob"
        # Each gets its own notifications alone.
        assert post(ann, {"op": "publish", "id": "o", "at": [0.5, 0.5]}).status_code == 202
        assert [n["id"] for _, n in listen(bob, 1, after="0")] == ["b1"]
        assert [n["id"] for _, n in listen(ann, 1, after="0")] == ["hers"]
        assert {n["id"] for _, n in listen(tenants.all, 2, after="0")} == {"b1", "hers"}
        until(lambda: found.posts)
        assert all(
            n["notification"]["owner"] == "ann"
            for body, _, _ in found.posts
            for n in body["notifications"]
        )
        assert ann.delete("/v1/webhooks/hook").status_code == 204


def test_rights(tenants: Tenants) -> None:
    reader = tenants.reader
    assert post(reader, {"op": "publish", "id": "o", "at": [0, 0]}).status_code == 400
    answer = post(reader, {"op": "publish", "id": "o", "at": [0, 0]},
                  {"op": "unsubscribe", "id": "x"})  # fmt: skip
    assert [r["line"] for r in answer.json()["rejected"]] == [1]
    assert "may not publish" in answer.json()["rejected"][0]["reason"]
    refused = reader.post("/v1/ask", json={"query": QUERY, "last": 1})
    assert (refused.status_code, "ask" in refused.json()["detail"]) == (403, True)
    assert tenants.ann.get("/metrics").status_code == 403
    assert tenants.all.get("/metrics").status_code == 200


def test_limits(tenants: Tenants) -> None:
    path = Path(tenants.service.service.tokens)
    token = "nc_limited"
    limits = Limits(body_bytes=500, events_per_second=5, subscriptions=2, connections=1, webhooks=1)
    known = [*read_tokens(path), Token("small", digest(token), "small", ("publish", "subscribe"),
                                       limits)]  # fmt: skip
    path.write_bytes(msgspec.json.encode(known))
    url = tenants.service.server.url
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=url, headers=headers, timeout=PATIENCE_S) as small:
        assert small.post("/v1/events", content=b" " * 501).status_code == 413
        for n in range(2):
            assert small.put(f"/v1/subscriptions/t{n}", json={"query": QUERY}).status_code == 201
        third = small.put("/v1/subscriptions/t2", json={"query": QUERY})
        assert (third.status_code, "2 subscriptions" in third.json()["detail"]) == (429, True)
        post_one = {"op": "publish", "id": "o", "at": [9, 9]}
        answers = [post(small, post_one, post_one, post_one) for _ in range(6)]
        assert answers[0].status_code == 202
        assert answers[-1].status_code == 429
        assert int(answers[-1].headers["retry-after"]) >= 1
        with small.stream("GET", "/v1/notifications") as first:
            assert first.status_code == 200
            next(first.iter_text())
            assert small.get("/v1/notifications").status_code == 429


def test_nothing_secret_is_kept_or_shown(tenants: Tenants) -> None:
    folder = tenants.service.folder
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert not any(s.encode() in data for s in tenants.secrets), path
    audit = (tenants.service.service.folder / "audit" / "audit.jsonl").read_text()
    notes = [json.loads(line) for line in audit.splitlines()]
    assert {"ann", "bob", "anyone"} <= {note["who"] for note in notes}
    assert any(note["what"] == "subscribe" and note["target"] == "hers" for note in notes)


def test_tokens_are_made_and_taken_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "t.json")
    add = ["tokens", "add", "app", "--owner", "o", "--rights", "publish,ask", "--file", file]
    assert main(add) == 0
    token = capsys.readouterr().out.strip()
    assert token.startswith("nc_")
    assert token not in Path(file).read_text()
    assert (Path(file).stat().st_mode & 0o077) == 0
    assert main(add) == 2
    assert main([*add[:2], "b", *add[3:6], "fly", *add[7:]]) == 2
    assert main(["tokens", "list", "--file", file]) == 0
    assert "app\to\tpublish,ask" in capsys.readouterr().out
    assert main(["tokens", "remove", "app", "--file", file]) == 0
    assert main(["tokens", "remove", "app", "--file", file]) == 2
    assert read_tokens(Path(file)) == []
