"""The engine asks a router what it does, never what class it is of."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import nearcast.engine
from nearcast.routing import ROUTERS, Router

ENGINE = Path(nearcast.engine.__file__).parent
SOURCES = sorted(ENGINE.rglob("*.py"))
# Classes of routers, those that they are made from included; the engine speaks to `Router` itself.
CLASSES = {c.__name__ for r in ROUTERS.values() for c in r.__mro__ if issubclass(c, Router)} - {
    "Router"
}


def class_checks(source: str) -> Iterator[str]:
    """Calls of isinstance or issubclass that name anything imported from routing."""
    tree = ast.parse(source)
    routing = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("nearcast.routing")
        for alias in node.names
    }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("isinstance", "issubclass")
        ):
            names = {
                n.id for arg in node.args[1:] for n in ast.walk(arg) if isinstance(n, ast.Name)
            }
            if names & routing:
                yield ast.unparse(node)


def imported(source: str) -> set[str]:
    return {
        alias.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("nearcast.routing")
        for alias in node.names
    }


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ENGINE)))
def test_no_class_of_a_router_is_asked_for(path: Path) -> None:
    assert list(class_checks(path.read_text())) == []
    assert not imported(path.read_text()) & CLASSES


def test_the_test_finds_what_it_looks_for() -> None:
    source = """
from nearcast.routing import Router as R
from nearcast.routing.grid.router import GridRouter
from nearcast.routing.base import Seen
isinstance(1, int | GridRouter)
issubclass(int, (str, R))
isinstance(1, int)
"""
    assert len(list(class_checks(source))) == 2
    assert imported(source) & CLASSES == {"GridRouter"}
    assert {type(r).__name__ for r in ROUTERS.values()} == {"ABCMeta"}
    assert {"GridRouter", "Hash", "DkmSks", "Tornado"} <= CLASSES
