"""Errors as clients see them: `application/problem+json` (RFC 9457) with one clear `detail`."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.responses import Response

__all__ = ["Problem", "as_response", "problem"]


class Problem(Exception):
    """A request that is not answered as its client hoped."""

    def __init__(
        self, status: int, detail: str, headers: Mapping[str, str] | None = None, **more: Any
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.more = status, detail, more
        self.headers = dict(headers or {})


def problem(status: int, detail: str, **more: Any) -> dict[str, Any]:
    """The body of an error."""
    title = HTTPStatus(status).phrase
    return {"type": "about:blank", "title": title, "status": status, "detail": detail, **more}


def as_response(error: Problem) -> Response:
    """The whole answer."""
    body = msgspec.json.encode(problem(error.status, error.detail, **error.more))
    return Response(body, error.status, error.headers, "application/problem+json")
