"""Requests that read: what is registered, with its present results, and how the service is."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from nearcast.gateway.answering import json_response, number_of
from nearcast.gateway.core import Gateway, now_ms
from nearcast.gateway.metrics import CONTENT_TYPE
from nearcast.gateway.problems import Problem
from nearcast.gateway.registry import Filters, Subscription
from nearcast.gateway.results import present
from nearcast.gateway.tokens import Client

__all__ = ["Reading"]

_USUAL, _MOST = 100, 1000
_SHOWN = ("id", "query", "time", "owner", "meta", "expires", "last")
_READY_S = 10.0
_EVENT = msgspec.json.Decoder(dict[str, Any])


class Reading:
    """The requests of one gateway."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway

    def _shown(self, found: Subscription) -> dict[str, Any]:
        event = _EVENT.decode(found.line)
        shown = {name: event[name] for name in _SHOWN if event.get(name) is not None}
        kind = self.gateway.kinds.get(found.kind)
        result = present(kind, self.gateway.registry.result(found.id)) if kind else None
        return shown | {"time": found.time} | ({} if result is None else {"result": result})

    async def subscription(self, request: Request, client: Client) -> Response:
        """`GET /v1/subscriptions/{id}`."""
        client.need("subscribe")
        id_ = str(request.path_params["id"])
        found = self.gateway.registry.subscription(id_, now_ms())
        if found is None or not client.owns(found.owner):
            raise Problem(404, f"there is no subscription {id_!r}")
        return json_response(self._shown(found) | {"as_of": self.gateway.as_of()})

    async def subscriptions(self, request: Request, client: Client) -> Response:
        """`GET /v1/subscriptions`."""
        client.need("subscribe")
        limit = number_of(request, "limit", _USUAL, _MOST)
        owner = owner_of(request.query_params.get("owner"), client)
        kind = request.query_params.get("kind")
        if kind is not None and kind not in self.gateway.kinds:
            there = ", ".join(self.gateway.kinds)
            raise Problem(400, f"kind: no {kind[:40]!r}; there are {there}")
        wanted = Filters(owner, kind, request.query_params.get("after", ""))
        found = self.gateway.registry.subscriptions(wanted, now_ms(), limit + 1)
        more = found[limit - 1].id if len(found) > limit else None
        listed = [self._shown(one) for one in found[:limit]]
        as_of = self.gateway.as_of()
        return json_response({"subscriptions": listed, "next": more, "as_of": as_of})

    # -- how it is ---------------------------------------------------------------------------

    async def alive(self, request: Request, client: Client) -> Response:
        """`GET /healthz`."""
        del request, client
        return json_response({"status": "alive"})

    async def ready(self, request: Request, client: Client) -> Response:
        """`GET /readyz`: the engine runs, and nothing waits long."""
        del request, client
        state, waiting = self.gateway.engine.state, self.gateway.waiting_s
        behind = waiting > _READY_S
        ready = state in ("running", "unknown") and not behind
        shown = {
            "status": "ready" if ready else "not ready",
            "engine": state,
            "restarts": self.gateway.engine.restarts,
            "batch": self.gateway.hub.position,
            "waiting_ms": int(waiting * 1000),
        }
        return json_response(shown, 200 if ready else 503)

    async def metrics(self, request: Request, client: Client) -> Response:
        """`GET /metrics`."""
        del request
        client.need("admin")
        return Response(self.gateway.metrics.text(), media_type=CONTENT_TYPE)


def owner_of(asked: str | None, client: Client) -> str | None:
    """The owner that a request is about; None: all. What is another's is not there."""
    if client.owner is None:
        return asked
    if asked not in (None, client.owner):
        raise Problem(404, f"owner: there is nothing of {asked!r}")
    return client.owner
