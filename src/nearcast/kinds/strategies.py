"""Strategies: for one kind, a router and the index that it works with, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nearcast.index.arena import Storage
from nearcast.index.base import LocalIndex
from nearcast.kinds.base import Kind
from nearcast.model.errors import NearcastError
from nearcast.model.space import Space
from nearcast.routing import ROUTERS, Router

__all__ = ["Strategy", "choose", "parse_strategy"]


@dataclass(frozen=True, slots=True)
class Strategy:
    """How subscriptions of one kind are dealt to shards and found there."""

    kind: Kind
    router: type[Router]
    index: str

    @property
    def name(self) -> str:
        """As `parse_strategy` reads it."""
        return f"{self.router.name}+{self.index}"

    def make_index(self, space: Space, storage: Storage) -> LocalIndex:
        """Its index in a storage."""
        return self.kind.index(self.index)(space, storage)


def parse_strategy(kind: Kind, name: str) -> Strategy:
    """`ROUTER` or `ROUTER+INDEX` for a kind; a router alone takes its usual index."""
    router_name, _, index_name = name.partition("+")
    if router_name not in kind.routers:
        raise NearcastError(
            f"strategy: no router {router_name!r} for {kind.name}; there are "
            f"{', '.join(kind.routers)}"
        )
    index = index_name or kind.routers[router_name]
    kind.index(index)  # refuses what there is not
    return Strategy(kind, ROUTERS[router_name], index)


def choose(wanted: Mapping[str, str], kinds: Mapping[str, Kind]) -> dict[str, Strategy]:
    """The strategy of every kind, the defaults where nothing is wanted."""
    for name in wanted:
        if name not in kinds:
            there = ", ".join(kinds)
            raise NearcastError(f"strategy: unknown kind {name!r}; there are {there}")
    return {
        name: parse_strategy(kind, wanted.get(name, kind.default)) for name, kind in kinds.items()
    }
