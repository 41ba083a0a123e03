"""The registry is complete: a router a file, every one of them registered and exported."""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module

import nearcast.routing
from nearcast.kinds import KINDS
from nearcast.routing import ROUTERS, Router


def classes_by_module() -> dict[str, list[type[Router]]]:
    """The routers that each file of the package defines."""
    found: dict[str, list[type[Router]]] = {}
    for module in pkgutil.walk_packages(nearcast.routing.__path__, "nearcast.routing."):
        members = vars(import_module(module.name)).values()
        found[module.name] = [
            c
            for c in members
            if isinstance(c, type)
            and issubclass(c, Router)
            and c.__module__ == module.name
            and not inspect.isabstract(c)
        ]
    return found


def test_one_router_a_file() -> None:
    assert {m: c for m, c in classes_by_module().items() if len(c) > 1} == {}


def test_every_router_is_registered_under_its_name() -> None:
    defined = {c for classes in classes_by_module().values() for c in classes}
    assert set(ROUTERS.values()) == defined
    assert [name for name, router in ROUTERS.items() if router.name != name] == []


def test_the_file_has_the_name_of_the_router() -> None:
    for name, router in ROUTERS.items():
        path = router.__module__.removeprefix("nearcast.routing.").split(".")
        assert name.replace("-", "_") in path  # a file, or a folder


def test_every_router_of_no_paper_is_exported() -> None:
    """Those of papers are in `ROUTERS` alone: only the registry imports their folders."""
    exported = [getattr(nearcast.routing, name) for name in nearcast.routing.__all__]
    own = {r for r in ROUTERS.values() if r.__module__.count(".") == 2}
    assert {r.name for r in own} == {"broadcast", "hash", "random"}
    assert own <= {c for c in exported if inspect.isclass(c)}


def test_every_router_says_what_it_is() -> None:
    for router in ROUTERS.values():
        assert router.about
        assert "\n" not in router.about
        assert router.paper


def test_every_router_places_a_kind() -> None:
    assert {router for kind in KINDS.values() for router in kind.routers} == set(ROUTERS)


def test_every_router_has_an_index_for_each_of_its_kinds() -> None:
    for kind in KINDS.values():
        for index in kind.routers.values():
            assert index in kind.indexes


def test_every_kind_has_a_default_and_a_reason() -> None:
    for name, kind in KINDS.items():
        router, _, index = kind.default.partition("+")
        assert name == kind.name
        assert router in kind.routers
        assert index in kind.indexes
        assert kind.reason


def test_the_package_says_what_there_is_to_choose() -> None:
    text = nearcast.routing.__doc__ or ""
    assert [name for name in ROUTERS if f"- `{name}`:" not in text] == []
