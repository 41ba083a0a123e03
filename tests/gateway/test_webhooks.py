"""Webhooks: what they are sent, what happens when they do not answer, where they may be."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.receiver import Receiver, receiver
from tests.gateway.running import Running, running, until

from nearcast.cli import main
from nearcast.gateway import posting
from nearcast.gateway.delivering import Patience
from nearcast.gateway.posting import Refused, allowed

SECRET = "a secret of sixteen"


@pytest.fixture(scope="module")
def hooked(tmp_path_factory: pytest.TempPathFactory, module_memory: Path) -> Iterator[Running]:
    """A service that posts to this machine, and gives up soon."""
    folder = tmp_path_factory.mktemp("hooked")
    patience = Patience(tries=3, first_s=0.01)
    with running(folder, module_memory, patience, private_webhooks=True) as found:
        yield found


def subscribed(service: Running, word: str) -> None:
    query = {"kind": "range", "region": {"bbox": [0, 0, 1, 1]}, "where": word}
    assert service.http.put(f"/v1/subscriptions/{word}", json={"query": query}).status_code == 201


def publish(service: Running, word: str, *ids: str) -> None:
    events = [{"op": "publish", "id": i, "at": [0.5, 0.5], "text": word} for i in ids]
    assert service.http.post("/v1/events", json=events).status_code == 202


def put(service: Running, name: str, receiver: Receiver, **more: Any) -> dict[str, Any]:
    body = {"url": receiver.url, "subscriptions": [name], **more}
    answer = service.http.put(f"/v1/webhooks/{name}", json=body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def objects(receiver: Receiver) -> list[str]:
    return [n["notification"]["object"] for b, _, _ in receiver.posts for n in b["notifications"]]


def test_notifications_are_posted_in_order_and_signed(hooked: Running) -> None:
    with receiver() as found:
        subscribed(hooked, "one")
        shown = put(hooked, "one", found, secret=SECRET)
        assert "secret" not in shown
        assert shown["signed"] is True
        names = [f"o{n}" for n in range(250)]
        for n in range(0, 250, 50):
            publish(hooked, "one", *names[n : n + 50])
        until(lambda: len(objects(found)) == 250)
        assert objects(found) == names
        assert len(set(found.keys)) == 250
        for value, body, signature in found.posts:
            assert value["webhook"] == "one"
            assert len(value["notifications"]) <= posting.MOST
            expected = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
            assert signature == expected
        listed = hooked.http.get("/v1/webhooks").json()["webhooks"]
        assert [(w["name"], w["state"]) for w in listed] == [("one", "delivering")]
        assert hooked.http.delete("/v1/webhooks/one").status_code == 204
        assert hooked.http.get("/v1/webhooks/one").status_code == 404


def test_what_is_not_acknowledged_comes_again_with_its_key(hooked: Running) -> None:
    with receiver() as found:
        found.answers = ["500", "302", "cut"]
        subscribed(hooked, "two")
        put(hooked, "two", found)
        publish(hooked, "two", "a")
        until(lambda: found.posts)
        found.answers = ["garbage", "503"]
        publish(hooked, "two", "b")
        until(lambda: len(found.posts) == 2)
        assert objects(found) == ["a", "b"]  # the redirect was not followed
        hooked.http.delete("/v1/webhooks/two")


def test_a_dead_one_delays_nobody_and_its_letters_are_replayed(
    hooked: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    with receiver() as dead, receiver() as alive:
        dead.answers = ["500", "hang", "500"]
        subscribed(hooked, "three")
        put(hooked, "three", dead)
        body = {"url": alive.url, "subscriptions": ["three"]}
        assert hooked.http.put("/v1/webhooks/alive", json=body).status_code == 201
        publish(hooked, "three", "a", "b")
        until(lambda: objects(alive) == ["a", "b"])
        assert dead.posts == []
        dead.hang.set()
        until(lambda: hooked.http.get("/v1/webhooks/three").json()["dead"] == 2)
        publish(hooked, "three", "c")  # it goes on behind what was given up
        until(lambda: objects(dead) == ["c"])
        until(lambda: hooked.http.get("/v1/webhooks/three").json()["state"] == "delivering")
        data = ["--data", hooked.service.data]
        assert main(["webhooks", "list", *data]) == 0
        assert "three\t*\tdelivering\t2 given up" in capsys.readouterr().out
        assert main(["webhooks", "replay", "three", *data]) == 2  # a private address
        assert "private" in capsys.readouterr().err
        assert main(["webhooks", "replay", "three", *data, "--private"]) == 0
        assert objects(dead) == ["c", "a", "b"]
        assert main(["webhooks", "replay", "three", *data, "--private"]) == 0
        assert objects(dead) == ["c", "a", "b"]
        for name in ("three", "alive"):
            hooked.http.delete(f"/v1/webhooks/{name}")


def test_it_goes_on_where_it_was_after_a_restart(hooked: Running) -> None:
    with receiver() as found:
        subscribed(hooked, "four")
        put(hooked, "four", found)
        publish(hooked, "four", "a")
        until(lambda: objects(found) == ["a"])
        until(lambda: hooked.http.get("/v1/webhooks/four").json()["cursor"].split("-")[2] != "0")
        hooked.restart_gateway()
        publish(hooked, "four", "b")
        until(lambda: len(found.posts) == 2)
        assert objects(found) == ["a", "b"]
        assert len(set(found.keys)) == 2
        hooked.http.delete("/v1/webhooks/four")


def test_what_is_no_webhook_is_refused(hooked: Running) -> None:
    for body, reason in (
        ({"url": "ftp://example.com/"}, "http"),
        ({"url": "http://user:pass@example.com/"}, "password"),
        ({"url": "http://example.com:0/"}, "http"),
        ({"url": "http://x.invalid/", "secret": ""}, "secret"),
        ({"url": "http://x.invalid/"}, "subscriptions"),
        ({}, "url"),
    ):
        answer = hooked.http.put("/v1/webhooks/bad", content=json.dumps(body))
        assert answer.status_code == 400, body
        assert reason in answer.json()["detail"]
    assert hooked.http.put("/v1/webhooks/-", content=b"{}").status_code == 400


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "::ffff:127.0.0.1", "0.0.0.0", "fd00::1",
     "100.64.0.1", "224.0.0.1", "localhost", "2002:7f00:1::"],
)  # fmt: skip
def test_private_addresses_are_refused(host: str) -> None:
    with pytest.raises(Refused, match="private"):
        asyncio.run(allowed(host, 80, private=False))


def test_public_addresses_are_not() -> None:
    assert asyncio.run(allowed("93.184.216.34", 80, private=False)) == "93.184.216.34"
    assert asyncio.run(allowed("127.0.0.1", 80, private=True)) == "127.0.0.1"
