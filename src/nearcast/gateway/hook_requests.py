"""Requests about webhooks: put, shown, listed, deleted."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from nearcast.gateway.answering import body_of, json_response
from nearcast.gateway.bodies import WebhookBody
from nearcast.gateway.core import Gateway, now_ms
from nearcast.gateway.hooks import Hook, Hooks, HookState
from nearcast.gateway.posting import Refused, allowed, check_url
from nearcast.gateway.problems import Problem
from nearcast.gateway.reading import owner_of
from nearcast.gateway.tokens import Client

__all__ = ["HookRequests"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class HookRequests:
    """The webhooks of one gateway."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway, self.hooks = gateway, Hooks(gateway.registry)

    async def put(self, request: Request, client: Client) -> Response:
        """`PUT /v1/webhooks/{name}`."""
        client.need("subscribe")
        name, tenant = _name_of(request), client.owner or ""
        body = await body_of(request, client.limits.body_bytes)
        try:
            given = msgspec.json.decode(body, type=WebhookBody)
        except (msgspec.DecodeError, RecursionError) as error:
            raise Problem(400, f"the body is no webhook: {error}") from None
        check_url(given.url)
        if given.subscriptions is None and given.owner is None and client.owner is None:
            raise Problem(400, "subscriptions: say which, or give an owner")
        owner = owner_of(given.owner, client)
        for id_ in given.subscriptions or () if client.owner is not None else ():
            found = self.gateway.registry.subscription(id_, now_ms())
            if found is None or not client.owns(found.owner):
                raise Problem(404, f"there is no subscription {id_!r}")
        await self._check_address(given.url)
        known = self.hooks.one(tenant, name)
        if known is None and len(self.hooks.all(tenant)) >= client.limits.webhooks:
            raise Problem(429, f"no more than {client.limits.webhooks} webhooks; remove some first")
        ids = None if given.subscriptions is None else tuple(given.subscriptions)
        hook = Hook(given.url, ids, owner, given.secret)
        self.hooks.put(tenant, name, hook, self.gateway.hub.end)
        status = 201 if known is None else 200
        self.gateway.audit.note(client.name, "webhook", name, status)
        found_now = self.hooks.one(tenant, name)
        assert found_now is not None
        return json_response(_shown(found_now), status)

    async def _check_address(self, url: str) -> None:
        """Refuse now what would be refused at every POST; a name that is not known may come."""
        private = self.gateway.service.private_webhooks
        try:
            await allowed(urlsplit(url).hostname or "", 443, private)
        except Refused as error:
            if "private" in str(error):
                raise Problem(400, f"url: {error}; the service must allow it") from None

    async def show(self, request: Request, client: Client) -> Response:
        """`GET /v1/webhooks/{name}`."""
        return json_response(_shown(self._known(request, client)))

    async def all(self, request: Request, client: Client) -> Response:
        """`GET /v1/webhooks`."""
        del request
        client.need("subscribe")
        states = self.hooks.all(client.owner or "")
        return json_response({"webhooks": [_shown(state) for state in states]})

    async def delete(self, request: Request, client: Client) -> Response:
        """`DELETE /v1/webhooks/{name}`."""
        known = self._known(request, client)
        self.hooks.remove(known.tenant, known.name)
        self.gateway.told.leave(known.reader)
        self.gateway.audit.note(client.name, "webhook removed", known.name, 204)
        return Response(status_code=204)

    def _known(self, request: Request, client: Client) -> HookState:
        client.need("subscribe")
        name = _name_of(request)
        known = self.hooks.one(client.owner or "", name)
        if known is None:
            raise Problem(404, f"there is no webhook {name!r}")
        return known


def _name_of(request: Request) -> str:
    name = str(request.path_params["name"])
    if not _NAME.fullmatch(name):
        raise Problem(400, "name: give 1 to 100 letters, digits, dots, - and _")
    return name


def _shown(state: HookState) -> dict[str, Any]:
    hook = state.hook
    shown: dict[str, Any] = {
        "name": state.name, "url": hook.url, "cursor": state.cursor,
        "state": "failing" if state.failures else "delivering",
        "signed": hook.secret is not None, "failures": state.failures, "dead": state.dead,
    }  # fmt: skip
    if hook.ids is not None:
        shown["subscriptions"] = list(hook.ids)
    if hook.owner is not None:
        shown["owner"] = hook.owner
    return shown
