"""The registry is complete: a class a file, every one of them registered and exported."""

import inspect
import pkgutil
from importlib import import_module

import nearcast.index
from nearcast.index import INDEXES, LocalIndex
from nearcast.wire.tables import KINDS


def classes_by_module() -> dict[str, list[type[LocalIndex]]]:
    """The index classes that each module of the folder defines and that can be made."""
    found = {}
    for module in pkgutil.walk_packages(nearcast.index.__path__, "nearcast.index."):
        members = vars(import_module(module.name)).values()
        found[module.name] = [
            c
            for c in members
            if isinstance(c, type)
            and issubclass(c, LocalIndex)
            and c.__module__ == module.name
            and not inspect.isabstract(c)
            and "name" in vars(c)
        ]
    return found


def test_one_index_a_file() -> None:
    assert {m: c for m, c in classes_by_module().items() if len(c) > 1} == {}


def test_every_index_is_registered_under_its_name() -> None:
    defined = {c for classes in classes_by_module().values() for c in classes}
    assert set(INDEXES.values()) == defined
    assert {name: c.name for name, c in INDEXES.items()} == {name: name for name in INDEXES}


def test_every_index_is_exported() -> None:
    exported = {
        getattr(nearcast.index, name) for name in nearcast.index.__all__ if name != "INDEXES"
    }
    assert exported == {LocalIndex, *INDEXES.values()}


def test_the_file_has_the_name_of_the_index() -> None:
    for name, index in INDEXES.items():
        module = index.__module__.removeprefix("nearcast.index.").split(".")[0]
        assert module.replace("_", "-") == name


def test_every_index_says_what_it_is() -> None:
    for index in INDEXES.values():
        assert set(index.kinds) <= set(KINDS)
        assert index.kinds
        assert index.about
        assert index.paper
        assert "\n" not in index.about


def test_the_package_says_what_there_is_to_choose() -> None:
    text = nearcast.index.__doc__ or ""
    assert [name for name in INDEXES if f"- `{name}`:" not in text] == []
