"""Every index keeps every promise of every kind it takes."""

import pytest

from nearcast.index import INDEXES
from nearcast.testing.checks import Check, yield_checks

CASES = [
    pytest.param(check, id=f"{index.name}-{kind}:{name}")
    for index in INDEXES.values()
    for kind in index.kinds
    for name, check in yield_checks(index, kind)
]


@pytest.mark.parametrize("check", CASES)
def test_conformance(check: Check, request: pytest.FixtureRequest) -> None:
    check(request.config.getoption("--seed"))
