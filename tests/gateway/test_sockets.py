"""Notifications over WebSocket, through a real socket."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.gateway.running import Running
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    RejectConnection,
    Request,
    TextMessage,
)

QUERY = {"kind": "range", "region": {"bbox": [50, 50, 51, 51]}}


class Talk:
    """A client."""

    def __init__(self, url: str, target: str = "/v1/stream") -> None:
        host, _, port = url.removeprefix("http://").partition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=60)
        self._ws = WSConnection(ConnectionType.CLIENT)
        self._socket.sendall(self._ws.send(Request(host=host, target=target)))
        self._text = ""
        self._events: Iterator[Any] = iter(())

    def event(self) -> Any:
        """What comes next."""
        while True:
            for event in self._events:
                return event
            self._ws.receive_data(self._socket.recv(65_536) or None)
            self._events = self._ws.events()

    def hear(self) -> dict[str, Any]:
        """The next message that is no heartbeat."""
        while True:
            event = self.event()
            assert isinstance(event, TextMessage), event
            self._text += event.data
            if event.message_finished:
                said: dict[str, Any] = json.loads(self._text)
                self._text = ""
                if set(said) != {"cursor"}:
                    return said

    def say(self, value: Any) -> None:
        """Send a message."""
        data = value if isinstance(value, bytes) else json.dumps(value)
        event = BytesMessage(data) if isinstance(data, bytes) else TextMessage(data)
        self._socket.sendall(self._ws.send(event))

    def close(self) -> None:
        """Go away without a word."""
        self._socket.close()


@contextmanager
def talking(service: Running) -> Iterator[Talk]:
    talk = Talk(service.server.url)
    try:
        assert isinstance(talk.event(), AcceptConnection)
        yield talk
    finally:
        talk.close()


def publish(service: Running, *ids: str) -> None:
    events = [{"op": "publish", "id": i, "at": [50.5, 50.5]} for i in ids]
    assert service.http.post("/v1/events", json=events).status_code == 202


def test_notifications_with_cursors_from_any_of_them_on(service: Running) -> None:
    for name in ("w1", "w2"):
        service.http.put(f"/v1/subscriptions/{name}", json={"query": QUERY})
    with talking(service) as talk:
        talk.say({"subscribe": ["w1"], "after": "0"})
        publish(service, "a", "b")
        first, second = talk.hear(), talk.hear()
        assert [(n["id"], n["object"]) for n in (first, second)] == [("w1", "a"), ("w1", "b")]
        talk.say({"subscribe": ["w2"], "after": 0})  # another wish takes the place of the first
        assert talk.hear()["id"] == "w2"
        for wrong in ({"after": "x"}, {"nix": 1}, {"subscribe": "w1"}):
            talk.say(wrong)
            while "status" not in (said := talk.hear()):
                pass
            assert (said["status"], said["title"]) == (400, "Bad Request")
        talk.say({"subscribe": ["w1"]})  # from now on
        service.settled()
        publish(service, "c")
        while (said := talk.hear())["object"] != "c":
            assert said["id"] == "w2"  # of the wish before
        assert said["id"] == "w1"
    with talking(service) as talk:
        talk.say({"subscribe": ["w1"], "after": first["cursor"]})
        assert [talk.hear()["object"] for _ in range(2)] == ["b", "c"]
        talk.say(b"\x00")
        while not isinstance(talk.event(), CloseConnection):
            pass
    for name in ("w1", "w2"):
        service.http.delete(f"/v1/subscriptions/{name}")


def test_it_refuses_who_may_not(service: Running, tmp_path_factory: Any) -> None:
    from nearcast.gateway.tokens import new_token

    path = tmp_path_factory.mktemp("ws") / "t.json"
    token = new_token(path, "a", "ann", ("subscribe",))
    other = service.another(name="guarded", tokens=str(path))
    talk = Talk(other.url)
    refused = talk.event()
    assert isinstance(refused, RejectConnection)
    assert refused.status_code == 401
    talk.close()
    talk = Talk(other.url, f"/v1/stream?access_token={token}")
    assert isinstance(talk.event(), AcceptConnection)
    talk.say({"subscribe": ["of-others"]})
    assert talk.hear()["status"] == 404
    talk.close()
