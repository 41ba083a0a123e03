"""Merging many small files of a state into few: each start reads them, each batch names them.

Files are merged by levels: as soon as there are `MANY` of one level at the end of the list, they
become one of the next. So there are never more than that of each level, and what a batch wrote is
copied once per level.
"""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["MANY", "is_merged", "merge"]

MANY = 64
"""Files of one level that become one of the next."""
_MERGED = re.compile(r"-merged(\d+)\.bin")


def _level(name: str) -> int:
    found = _MERGED.search(name)
    return int(found[1]) if found else 0


def is_merged(name: str) -> bool:
    """Whether a file was merged of others."""
    return _level(name) > 0


def merge(names: list[str], write: Callable[[list[str], str], str]) -> list[str]:
    """Merge what is due at the end of `names`, in place; the names that are replaced.

    The first of all stays: it may be large. `write` merges files, and names the one that it makes
    with the end that it is given.
    """
    replaced: list[str] = []
    level = 0
    while True:
        first = len(names)
        while first > 1 and _level(names[first - 1]) == level:
            first -= 1
        if len(names) - first < MANY:
            return replaced
        some = names[first:]
        names[first:] = [write(some, f"-merged{level + 1}.bin")]
        replaced += some
        level += 1
