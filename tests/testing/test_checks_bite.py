"""Every check can fail: it is red for an index that is broken on purpose, green for the scan."""

from __future__ import annotations

from functools import cache, partial

import pytest
from tests.testing.broken import BROKEN

from nearcast.index import Scan
from nearcast.kinds import KINDS
from nearcast.testing.checks import check_story, yield_checks

SEED = 2
# The large one last: most indexes are bitten before it is their turn.
CHECKS = sorted(
    [(kind, name) for kind in KINDS for name, _ in yield_checks("scan", kind)],
    key=lambda check: check[1] == "check_grows",
)
STORIES = sorted(
    {(name, story.name) for name, kind in KINDS.items() for story in kind.examples.stories(SEED)}
)


@cache
def bites(kind: str, name: str, index: type[Scan]) -> bool:
    """Whether the check does not let the index pass."""
    try:
        dict(yield_checks(partial(index, KINDS[kind]), kind))[name](SEED)
    except AssertionError:  # an index that falls over would prove nothing
        return True
    return False


def story_bites(kind: str, name: str, index: type[Scan]) -> bool:
    """Whether the stories of that name do not let the index pass."""
    try:
        for story in KINDS[kind].examples.stories(SEED):
            if story.name == name:
                check_story(partial(index, KINDS[kind]), KINDS[kind], story)
    except AssertionError:
        return True
    return False


@pytest.mark.parametrize(("kind", "name"), CHECKS, ids=lambda part: part)
def test_every_check_bites(kind: str, name: str) -> None:
    assert any(bites(kind, name, index) for index in BROKEN)


@pytest.mark.parametrize(("kind", "name"), STORIES, ids=lambda part: part)
def test_every_story_bites(kind: str, name: str) -> None:
    assert any(story_bites(kind, name, index) for index in BROKEN)


@pytest.mark.parametrize("index", BROKEN, ids=lambda index: index.__name__)
def test_every_broken_index_is_bitten(index: type[Scan]) -> None:
    assert any(bites(kind, name, index) for kind, name in CHECKS)


@pytest.mark.parametrize(("kind", "name"), CHECKS, ids=lambda part: part)
def test_the_scan_is_not_bitten(kind: str, name: str) -> None:
    dict(yield_checks("scan", kind))[name](SEED)
