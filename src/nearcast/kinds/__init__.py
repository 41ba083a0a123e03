"""The kinds of query: `KINDS` is the registry. A new kind is a folder here and a line below.

- `range`: every object inside a region that satisfies a condition on words;
- `knn`: the k nearest objects that satisfy one;
- `topk`: the k best objects of the run's window, by place and words;
- `terms`: the k keywords that most objects of a region hold, every so often.

A run may also use kinds of other packages (`RunOptions.plugins`): modules with a list `KINDS`.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from functools import lru_cache

from nearcast.kinds.base import Event, Examples, Kind, Needs, Story
from nearcast.kinds.knn import Knn
from nearcast.kinds.range import Range
from nearcast.kinds.terms import Terms
from nearcast.kinds.topk import Topk
from nearcast.model.errors import NearcastError

__all__ = ["KINDS", "Event", "Examples", "Kind", "Needs", "Story", "kinds_of"]

KINDS: Mapping[str, Kind] = {kind.name: kind for kind in (Range(), Knn(), Topk(), Terms())}


def kinds_of(plugins: Iterable[str], only: Iterable[str] = ()) -> Mapping[str, Kind]:
    """The kinds of nearcast, and those of the modules `plugins`; of these `only` some, if named."""
    kinds, chosen = _kinds_of(tuple(plugins)), tuple(only)
    for name in chosen:
        if name not in kinds:
            raise NearcastError(f"kinds: unknown kind {name!r}; there are {', '.join(kinds)}")
    return {name: kinds[name] for name in kinds if name in chosen} if chosen else kinds


@lru_cache
def _kinds_of(plugins: tuple[str, ...]) -> Mapping[str, Kind]:
    kinds = dict(KINDS)
    for module in plugins:
        try:
            found = importlib.import_module(module).KINDS
        except (ImportError, AttributeError) as error:
            raise NearcastError(
                f"plugins: {module!r} is no module with a list KINDS ({error}); it must be on the "
                "Python path of the driver and of all workers"
            ) from None
        for kind in found:
            taken = {k.name for k in kinds.values()} | {k.number for k in kinds.values()}
            if kind.name in taken or kind.number in taken:
                raise NearcastError(
                    f"plugins: the name or number of kind {kind.name!r} ({kind.number}) of "
                    f"{module} is taken"
                )
            kinds[kind.name] = kind
    return kinds
