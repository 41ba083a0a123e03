"""What the packages export is there and is complete."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from types import ModuleType

import pytest

import nearcast
import nearcast.index
import nearcast.routing
import nearcast_bench
from nearcast.index import INDEXES, LocalIndex
from nearcast.routing import ROUTERS, Router

MODULES = [
    m.name
    for package in (nearcast, nearcast_bench)
    for m in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not m.name.endswith("__main__")
]


@pytest.mark.parametrize("name", MODULES)
def test_exported_names_exist(name: str) -> None:
    module = import_module(name)
    exported = getattr(module, "__all__", [])
    assert len(set(exported)) == len(exported)
    assert [n for n in exported if not hasattr(module, n)] == []
    assert module.__doc__, f"{name} does not say what it is for"


def own_names(package: ModuleType) -> set[str]:
    """The public names that a package has from its own modules (those modules left out)."""
    return {
        name
        for name, value in vars(package).items()
        if not name.startswith("_")
        and not isinstance(value, ModuleType)
        and (name.isupper() or getattr(value, "__module__", "").startswith(package.__name__))
    }


@pytest.mark.parametrize("package", [nearcast.index, nearcast.routing], ids=lambda p: p.__name__)
def test_packages_export_all_that_they_have(package: ModuleType) -> None:
    assert set(package.__all__) == own_names(package)


def test_registered_indexes_are_exported() -> None:
    exported = [getattr(nearcast.index, name) for name in nearcast.index.__all__]
    assert [c for fit in INDEXES.values() for c in fit.values() if c not in exported] == []
    assert LocalIndex in exported


def test_every_router_is_registered() -> None:
    """Papers' routers are reached by the registry alone, so it must have all that there are."""
    for module in pkgutil.walk_packages(nearcast.routing.__path__, "nearcast.routing."):
        import_module(module.name)
    there, known = {Router}, set(ROUTERS.values())
    while more := {c for r in there for c in r.__subclasses__()} - there:
        there |= more
    ours = {c for c in there if c.__module__.startswith("nearcast.")}
    assert {c for c in ours if "name" in vars(c)} == known
    assert Router in [getattr(nearcast.routing, name) for name in nearcast.routing.__all__]


def test_the_package_exports_the_engine_and_the_version() -> None:
    assert set(nearcast.__all__) == {"Engine", "__version__"}
    from nearcast.engine import Engine

    assert nearcast.Engine is Engine
    assert isinstance(nearcast.__version__, str)
    with pytest.raises(AttributeError, match="has no attribute 'Motor'"):
        _ = nearcast.Motor
