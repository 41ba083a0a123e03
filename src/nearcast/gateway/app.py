"""The service as an ASGI application, assembled from its parts."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.websockets import WebSocket

from nearcast.gateway.answering import json_response
from nearcast.gateway.asking import Asking
from nearcast.gateway.core import Gateway
from nearcast.gateway.delivering import Delivering, Patience
from nearcast.gateway.hook_requests import HookRequests
from nearcast.gateway.openapi import document
from nearcast.gateway.page_requests import PageRequests, Posts
from nearcast.gateway.problems import Problem, as_response
from nearcast.gateway.reading import Reading
from nearcast.gateway.settings import Service
from nearcast.gateway.showing import Showing
from nearcast.gateway.streaming import Streaming, token_of
from nearcast.gateway.tokens import ANYONE, Client
from nearcast.gateway.writing import Writing

__all__ = ["PAGE", "create_app"]

PAGE = Path(__file__).parent / "page"
"""The map page, as it was built."""
Answer = Callable[[Request, Client], Awaitable[Response]]
_QUIET = ("/healthz", "/readyz", "/metrics")  # requests that the audit log leaves out
_OPEN = ("/healthz", "/readyz", "/openapi.json")  # that need no token
_STREAMS = ("/v1/notifications", "/v1/posts")


def create_app(service: Service, patience: Patience | None = None) -> Starlette:
    """The application of one gateway; `patience`: of webhooks."""
    gateway = Gateway(service)
    posts = Posts()
    writing, reading = Writing(gateway, posts), Reading(gateway)
    page = PageRequests(gateway, posts)
    streaming, asking = Streaming(gateway), Asking(gateway)
    hooks = HookRequests(gateway)
    showing = Showing(gateway)
    Delivering(gateway, patience)

    described_as = json_response(document(gateway)).body

    async def described(request: Request, client: Client) -> Response:
        del request, client  # it says the same to everyone
        return Response(described_as, media_type="application/json")

    @asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[None]:
        await gateway.start()
        try:
            yield
        finally:
            await gateway.stop()

    def route(method: str, path: str, answer: Answer) -> Route:
        return Route(path, _endpoint(gateway, path, answer), methods=[method])

    async def socket(connection: WebSocket) -> None:
        await _socket(gateway, streaming, connection)

    subscription = "/v1/subscriptions/{id:path}"
    routes: list[BaseRoute] = [
        route("POST", "/v1/events", writing.events),
        route("GET", "/v1/subscriptions", reading.subscriptions),
        route("PUT", subscription, writing.put),
        route("GET", subscription, reading.subscription),
        route("DELETE", subscription, writing.delete),
        route("POST", "/v1/ask", asking.ask),
        route("GET", "/v1/notifications", streaming.events),
        WebSocketRoute("/v1/stream", socket),
        route("GET", "/v1/webhooks", hooks.all),
        route("PUT", "/v1/webhooks/{name}", hooks.put),
        route("GET", "/v1/webhooks/{name}", hooks.show),
        route("DELETE", "/v1/webhooks/{name}", hooks.delete),
        route("GET", "/v1/status", page.status),
        route("GET", "/v1/posts", page.posts),
        route("GET", "/v1/rejects", page.rejects),
        route("GET", "/v1/run", showing.run),
        route("GET", "/openapi.json", described),
        route("GET", "/healthz", reading.alive),
        route("GET", "/readyz", reading.ready),
        route("GET", "/metrics", reading.metrics),
    ]
    if PAGE.is_dir():
        routes.append(Mount("/", StaticFiles(directory=PAGE, html=True)))
    middleware = []
    if service.origins:
        middleware.append(
            Middleware(
                CORSMiddleware,
                allow_origins=list(service.origins),
                allow_methods=["GET", "POST", "PUT", "DELETE"],
                allow_headers=["Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID"],
                max_age=600,
            )
        )
    app = Starlette(
        routes=_grouped(routes),
        middleware=middleware,
        lifespan=life,
        exception_handlers={HTTPException: _unrouted, Exception: _failed},
    )
    app.state.gateway = gateway
    return app


def _grouped(routes: list[BaseRoute]) -> list[BaseRoute]:
    """One route per path: else a method that a path has not would be that of the first alone."""
    by_path: dict[str, dict[str, Callable[..., Awaitable[Response]]]] = {}
    kept: list[BaseRoute] = []
    for one in routes:
        if not isinstance(one, Route):
            kept.append(one)
            continue
        methods = one.methods or set()
        if one.path not in by_path:
            kept.append(one)
        for method in methods - {"HEAD"}:
            by_path.setdefault(one.path, {})[method] = one.endpoint
    return [
        Route(one.path, _by_method(by_path[one.path]), methods=list(by_path[one.path]))
        if isinstance(one, Route)
        else one
        for one in kept
    ]


def _by_method(
    endpoints: dict[str, Callable[..., Awaitable[Response]]],
) -> Callable[[Request], Awaitable[Response]]:
    async def choose(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        return await endpoints[method](request)

    return choose


def _endpoint(
    gateway: Gateway, path: str, answer: Answer
) -> Callable[[Request], Awaitable[Response]]:
    """Who it is, the answer or the problem, the figures and the audit log."""

    async def endpoint(request: Request) -> Response:
        began = time.perf_counter()
        client = ANYONE
        try:
            if path not in _OPEN:
                header = request.headers.get("authorization")
                client = gateway.client(token_of(request) if path in _STREAMS else header)
            response = await answer(request, client)
        except Problem as error:
            response = as_response(error)
        response.headers["X-Nearcast-Engine"] = gateway.engine.state
        status = response.status_code
        took = time.perf_counter() - began
        gateway.metrics.requests.labels(request.method, path, status).observe(took)
        if status in (401, 403) and path not in _QUIET:
            gateway.audit.note(client.name, f"{request.method} {path}", "", status)
        return response

    return endpoint


async def _socket(gateway: Gateway, streaming: Streaming, connection: WebSocket) -> None:
    try:
        client = gateway.client(token_of(connection))
        await streaming.socket(connection, client)
    except Problem as error:
        gateway.audit.note("anyone", "GET /v1/stream", "", error.status)
        await connection.send_denial_response(as_response(error))


async def _unrouted(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    details = {
        404: f"there is no {request.url.path}; /openapi.json lists what there is",
        405: f"{request.url.path} has no {request.method}",
    }
    detail = details.get(error.status_code, str(error.detail))
    return as_response(Problem(error.status_code, detail, error.headers))


async def _failed(_: Request, error: Exception) -> Response:
    return as_response(Problem(500, f"the gateway failed ({type(error).__name__}); see its log"))
