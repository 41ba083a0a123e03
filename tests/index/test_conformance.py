"""Every index keeps every promise of every kind it takes."""

import pytest

from nearcast.kinds import KINDS
from nearcast.testing.checks import Check, yield_checks

CASES = [
    pytest.param(check, id=f"{index}-{kind.name}:{name}")
    for kind in KINDS.values()
    for index in kind.indexes
    for name, check in yield_checks(index, kind)
]


@pytest.mark.parametrize("check", CASES)
def test_conformance(check: Check, request: pytest.FixtureRequest) -> None:
    check(request.config.getoption("--seed"))
