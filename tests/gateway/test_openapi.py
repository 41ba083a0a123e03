"""The OpenAPI document against the application, and requests made from it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.routing import Route
from tests.gateway.running import Running

Json = dict[str, Any]


def document(service: Running) -> Json:
    found: Json = service.http.get("/openapi.json").json()
    return found


def test_it_describes_every_route_and_no_other(service: Running) -> None:
    described = {
        (path, method.upper())
        for path, item in document(service)["paths"].items()
        for method in item
        if method != "parameters"
    }
    there = {
        (route.path.replace(":path", ""), method)
        for route in service.server.app.routes
        if isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}
        if route.path != "/openapi.json"
    }
    assert described == there


def test_every_reference_leads_somewhere(service: Running) -> None:
    whole = document(service)
    assert whole["openapi"] == "3.1.0"

    def follow(value: Any) -> None:
        if isinstance(value, dict):
            if "$ref" in value:
                found: Any = whole
                for part in value["$ref"].removeprefix("#/").split("/"):
                    found = found[part]
            for text in (value.get("discriminator") or {}).get("mapping", {}).values():
                assert text.rpartition("/")[2] in whole["components"]["schemas"]
            for inner in value.values():
                follow(inner)
        elif isinstance(value, list):
            for inner in value:
                follow(inner)

    follow(whole)
    schemas = whole["components"]["schemas"]
    assert {"Publish", "Subscribe", "Unsubscribe", "Ask", "Query", "AskQuery"} <= set(schemas)
    assert set(schemas["Query"]["discriminator"]["mapping"]) == {"range", "knn", "topk", "terms"}
    assert "time" not in schemas["Publish"]["required"]


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["op", "id", "time", "at", "query", "kind", "k", "where", "region", "bbox", "last",
             "url", "owner", "subscriptions", "meta", "expires", "text", "keywords", "window"]
        ) | st.text(max_size=4),
        inner,
        max_size=5,
    ),
    max_leaves=12,
)  # fmt: skip
QUERIES: list[Json] = [
    {"kind": "range", "region": {"bbox": [0, 0, 1, 1]}}, {"kind": "knn", "at": [0, 0], "k": 1},
    {"kind": "topk", "at": [0, 0], "k": 1, "keywords": ["a"], "alpha": 0.5},
]  # fmt: skip


@st.composite
def bodies(draw: st.DrawFn) -> Any:
    """Bodies that are nearly right: a good one, with a part replaced by anything."""
    good: Json = draw(
        st.sampled_from(
            [
                {"op": "publish", "id": "o", "at": [0.5, 0.5], "text": "a"},
                *({"op": "subscribe", "id": "fuzz", "query": dict(q)} for q in QUERIES),
                {"op": "unsubscribe", "id": "fuzz"},
                *({"query": dict(q), "last": 1000} for q in QUERIES),
                {"url": "http://x.invalid/", "subscriptions": ["a"]},
            ]
        )
    )
    value = json.loads(json.dumps(good))
    where = value["query"] if "query" in value and draw(st.booleans()) else value
    name = draw(st.sampled_from(sorted(where)))
    where[name] = draw(ANY)
    return value


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    bodies() | ANY,
    st.sampled_from(
        [("POST", "/v1/events"), ("PUT", "/v1/subscriptions/fuzz"), ("PUT", "/v1/webhooks/fuzz")]
    ),
    st.text(max_size=3),
)
def test_no_body_breaks_it(
    service: Running, body: Any, request_: tuple[str, str], query: str
) -> None:
    method, path = request_
    whole = document(service)
    operation = whole["paths"][
        path.replace("subscriptions/fuzz", "subscriptions/{id}").replace("webhooks/fuzz",
                                                                       "webhooks/{name}")
    ][method.lower()]  # fmt: skip
    text = json.dumps(body)  # also with NaN and infinities, which are no JSON
    answer = service.http.request(
        method, path, content=text.encode("utf-8", "surrogatepass"), params={"x": query}
    )
    assert str(answer.status_code) in operation["responses"], (text, answer.text)
    if answer.status_code >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
        problem = msgspec.json.decode(answer.content)
        assert problem["status"] == answer.status_code
        assert "\n" not in problem["detail"]
