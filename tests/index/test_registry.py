"""The registry is complete: a class a file, every one of them registered and exported."""

import inspect
import pkgutil
from importlib import import_module

import nearcast.index
from nearcast.index import INDEXES, LocalIndex, Scan
from nearcast.wire.tables import BALLS, BEST, NEAREST, NO_RESULTS, REGIONS, TOPS

# Subscriptions and results of each shape.
SHAPES = {"regions": (REGIONS, NO_RESULTS), "balls": (BALLS, NEAREST), "tops": (TOPS, BEST)}


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


def registered() -> set[type[LocalIndex]]:
    """All with a shape, and the scan, which takes any."""
    return {Scan, *(index for fit in INDEXES.values() for index in fit.values())}


def test_every_index_is_registered_under_its_shape_and_its_name() -> None:
    assert registered() == {c for classes in classes_by_module().values() for c in classes}
    assert list(INDEXES) == list(SHAPES)
    for shape, fit in INDEXES.items():
        assert {name: i.name for name, i in fit.items()} == {name: name for name in fit}
        assert [i for i in registered() if i.shape == shape and i not in fit.values()] == []
        assert [i for i in fit.values() if i.shape != shape] == []
        assert [i for i in fit.values() if (i.controls, i.results) != SHAPES[shape]] == []
    assert Scan.shape == ""


def test_every_index_is_exported() -> None:
    exported = {
        getattr(nearcast.index, name) for name in nearcast.index.__all__ if not name.isupper()
    }
    assert exported == {LocalIndex, *registered()}


def test_the_file_has_the_name_of_the_index() -> None:
    for index in registered():
        module = index.__module__.removesuffix(".index").split(".")[-1]
        assert module.replace("_", "-") == index.name


def test_every_index_says_what_it_is() -> None:
    for index in registered():
        assert (index.shape in SHAPES) == (index is not Scan)
        assert index.about
        assert index.paper
        assert "\n" not in index.about


def test_the_package_says_what_there_is_to_choose() -> None:
    text = nearcast.index.__doc__ or ""
    assert [i.name for i in registered() if f"- `{i.name}`:" not in text] == []
