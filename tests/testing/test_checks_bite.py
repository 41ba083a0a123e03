"""Every check can fail: it is red for an index that is broken on purpose, green for the scan."""

from __future__ import annotations

from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from nearcast.index import Scan
from nearcast.testing.checks import yield_checks

SEED = 2


def load_broken() -> list[type[Scan]]:
    """The classes of the file beside this one (test folders are no packages)."""
    spec = spec_from_file_location("broken", Path(__file__).with_name("broken.py"))
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    broken: list[type[Scan]] = module.BROKEN
    return broken


BROKEN = load_broken()
# The large one last: most indexes are bitten before it is their turn.
CHECKS = sorted(
    [(kind, name) for kind in Scan.kinds for name, _ in yield_checks(Scan, kind)],
    key=lambda check: check[1] == "check_grows",
)


@cache
def bites(kind: str, name: str, index: type[Scan]) -> bool:
    """Whether the check does not let the index pass."""
    try:
        dict(yield_checks(index, kind))[name](SEED)
    except AssertionError:  # an index that falls over would prove nothing
        return True
    return False


@pytest.mark.parametrize(("kind", "name"), CHECKS, ids=lambda part: part)
def test_every_check_bites(kind: str, name: str) -> None:
    assert any(bites(kind, name, index) for index in BROKEN)


@pytest.mark.parametrize("index", BROKEN, ids=lambda index: index.__name__)
def test_every_broken_index_is_bitten(index: type[Scan]) -> None:
    assert any(bites(kind, name, index) for kind, name in CHECKS)


@pytest.mark.parametrize(("kind", "name"), CHECKS, ids=lambda part: part)
def test_the_scan_is_not_bitten(kind: str, name: str) -> None:
    dict(yield_checks(Scan, kind))[name](SEED)
