"""`/openapi.json`: OpenAPI 3.1, made from the structs that check the requests."""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from typing import Any

import msgspec

from nearcast.gateway import bodies
from nearcast.gateway.core import Gateway
from nearcast.gateway.posting import SIGNATURE

__all__ = ["document"]

Json = dict[str, Any]
_VERSION = version("nearcast")
_HERE = "#/components/schemas/"
_PLAIN = (
    bodies.EventsAnswer, bodies.SubscriptionBody, bodies.SubscriptionShown, bodies.Listed,
    bodies.AskBody, bodies.AsOf, bodies.WebhookBody, bodies.WebhookShown, bodies.Webhooks,
    bodies.ProblemBody,
)  # fmt: skip
# Names that msgspec makes of generic structs and of those with an underscore.
_NAMES = re.compile(r"\b_(Publish|Subscribe|Unsubscribe|Ask)(?:_typing\.Union[\w.]*)?")
_PROBLEMS = {
    "400": "what is wrong with the request", "401": "a token is needed",
    "403": "the token has no right to it", "404": "it is not there, or another's",
    "408": "the body came too slowly", "413": "the body is too large",
    "422": "the key was used for another body", "429": "more than the token may; repeat later",
    "503": "not now; repeat later", "504": "no answer in time", "507": "the disk is full",
}  # fmt: skip


def document(gateway: Gateway) -> Json:
    """The whole document."""
    schemas = _schemas(gateway)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "nearcast",
            "version": _VERSION,
            "description": "Location-aware publish/subscribe.",
        },
        "paths": _paths(),
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "responses": {
                f"Problem{status}": {
                    "description": text,
                    "content": {"application/problem+json": {"schema": _ref("ProblemBody")}},
                }
                for status, text in _PROBLEMS.items()
            },
        },
        "security": [{"token": []}] if gateway.tokens is not None else [],
    }


def _schemas(gateway: Gateway) -> Json:
    """All structs; queries are those of the kinds that this service takes."""
    types = [gateway.arrival.shapes.event, *_PLAIN]
    (event, *_), found = msgspec.json.schema_components(types, ref_template=_HERE + "{name}")
    found["Event"] = event
    named: Json = json.loads(_NAMES.sub(r"\1", json.dumps(found)))
    for name in ("Publish", "Subscribe", "Unsubscribe", "Ask"):
        named[name]["title"] = name
    named["Query"] = named["Subscribe"]["properties"]["query"]
    named["AskQuery"] = named["Ask"]["properties"]["query"]
    for name, query in (
        ("Subscribe", "Query"), ("SubscriptionBody", "Query"), ("SubscriptionShown", "Query"),
        ("Ask", "AskQuery"), ("AskBody", "AskQuery"),
    ):  # fmt: skip
        named[name]["properties"]["query"] = _ref(query)
    answers = {k.answers.field for k in gateway.kinds.values() if k.answers is not None}
    named["Answer"] = {
        "title": "Answer",
        "type": "object",
        "required": ["as_of"],
        "properties": {"as_of": _ref("AsOf"), **{f: {"type": "array"} for f in sorted(answers)}},
    }
    return named


def _ref(name: str) -> Json:
    return {"$ref": _HERE + name}


def _body(schema: Json, more: Json | None = None) -> Json:
    content = {"application/json": {"schema": schema}, **(more or {})}
    return {"required": True, "content": content}


def _answers(problems: str, **good: tuple[str, Json | None] | str) -> Json:
    """Answers by status; `problems`: statuses of those that are none."""
    found: Json = {}
    for status, what in good.items():
        text, schema = (what, None) if isinstance(what, str) else what
        found[status[1:]] = {"description": text}
        if schema is not None:
            found[status[1:]]["content"] = {"application/json": {"schema": schema}}
    for status in ["401", "429", *problems.split()]:
        found[status] = {"$ref": f"#/components/responses/Problem{status}"}
    return found


def _query(name: str, text: str, schema: Json | None = None) -> Json:
    schema = schema or {"type": "string"}
    return {"name": name, "in": "query", "description": text, "schema": schema}


def _header(name: str, text: str, most: int = 255) -> Json:
    schema = {"type": "string", "minLength": 1, "maxLength": most}
    return {"name": name, "in": "header", "description": text, "schema": schema}


def _in_path(name: str, most: int, pattern: str | None = None) -> Json:
    schema: Json = {"type": "string", "minLength": 1, "maxLength": most}
    if pattern:
        schema["pattern"] = pattern
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _paths() -> Json:
    id_ = _in_path("id", 256)
    hook = _in_path("name", 100, "^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")
    object_ = {"type": "object"}
    lines = {"application/x-ndjson": {"schema": {"type": "string"}}}
    limit = {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}
    ids = {"type": "array", "items": {"type": "string"}}
    return {
        "/v1/events": {
            "post": {
                "summary": "Send events; they are durable when this answers",
                "parameters": [_header("Idempotency-Key", "a repeated request is taken once")],
                "requestBody": _body({"type": "array", "items": _ref("Event")}, lines),
                "responses": _answers(
                    "400 403 408 413 422 503 507",
                    s202=("what became of them", _ref("EventsAnswer")),
                ),
            }
        },
        "/v1/subscriptions": {
            "get": {
                "summary": "Subscriptions that stand, by id",
                "parameters": [
                    _query("owner", "whose"),
                    _query("kind", "of which kind of query"),
                    _query("after", "ids behind this one"),
                    _query("limit", "at most so many", limit),
                ],
                "responses": _answers("400 403 404", s200=("some of them", _ref("Listed"))),
            }
        },
        "/v1/subscriptions/{id}": {
            "parameters": [id_],
            "put": {
                "summary": "Subscribe; what has this id is replaced",
                "requestBody": _body(_ref("SubscriptionBody")),
                "responses": _answers(
                    "400 403 404 408 413 503 507",
                    s201=("new", object_),
                    s200=("replaced", object_),
                ),
            },
            "get": {
                "summary": "A subscription and its present result",
                "responses": _answers("403 404", s200=("it", _ref("SubscriptionShown"))),
            },
            "delete": {
                "summary": "Unsubscribe",
                "responses": _answers("403 404 503 507", s204="it has ended"),
            },
        },
        "/v1/ask": {
            "post": {
                "summary": "Ask about the past",
                "requestBody": _body(_ref("AskBody")),
                "responses": _answers(
                    "400 403 408 413 503 504 507", s200=("the answer", _ref("Answer"))
                ),
            }
        },
        "/v1/notifications": {
            "get": {
                "summary": "Notifications as server-sent events; `id` is the cursor",
                "parameters": [
                    _query("subscription", "of which; several may be given", ids),
                    _query("owner", "whose"),
                    _query("after", "a cursor; 0: from the oldest that is kept"),
                    _header("Last-Event-ID", "a cursor; goes before `after`"),
                ],
                "responses": {
                    "200": {
                        "description": "a stream",
                        "content": {"text/event-stream": {"schema": {"type": "string"}}},
                    },
                    **_answers("400 403 404"),
                },
            }
        },
        "/v1/webhooks": {
            "get": {
                "summary": "All webhooks",
                "responses": _answers("403", s200=("they", _ref("Webhooks"))),
            }
        },
        "/v1/webhooks/{name}": {
            "parameters": [hook],
            "put": {
                "summary": f"Have notifications posted, signed in {SIGNATURE}",
                "requestBody": _body(_ref("WebhookBody")),
                "responses": _answers(
                    "400 403 404 408 413",
                    s201=("new", _ref("WebhookShown")),
                    s200=("replaced", _ref("WebhookShown")),
                ),
            },
            "get": {
                "summary": "A webhook and how far it is",
                "responses": _answers("400 403 404", s200=("it", _ref("WebhookShown"))),
            },
            "delete": {
                "summary": "Post no more",
                "responses": _answers("400 403 404", s204="it has ended"),
            },
        },
        "/v1/status": {
            "get": {
                "summary": "What the service is, and how it goes",
                "responses": _answers("", s200=("it", object_)),
            }
        },
        "/v1/run": {
            "get": {
                "summary": "What each shard does, and whose part of the map is whose",
                "responses": _answers("", s200=("it", object_)),
            }
        },
        "/v1/posts": {
            "get": {
                "summary": "Posts through this gateway as server-sent events, a sample of many",
                "responses": {
                    "200": {
                        "description": "a stream; the data of an event is an array of posts",
                        "content": {"text/event-stream": {"schema": {"type": "string"}}},
                    },
                    **_answers("403"),
                },
            }
        },
        "/v1/rejects": {
            "get": {
                "summary": "The latest events that the run refused, newest first",
                "parameters": [_query("limit", "at most so many", limit | {"default": 20})],
                "responses": _answers("400 403", s200=("they", object_)),
            }
        },
        "/healthz": {"get": {"summary": "Alive", "responses": _answers("", s200=("yes", object_))}},
        "/readyz": {
            "get": {
                "summary": "Caught up",
                "responses": _answers("", s200=("yes", object_), s503=("no, and why", object_)),
            }
        },
        "/metrics": {
            "get": {
                "summary": "For Prometheus",
                "responses": {
                    "200": {
                        "description": "text",
                        "content": {"text/plain": {"schema": {"type": "string"}}},
                    },
                    **_answers("403"),
                },
            }
        },
    }
