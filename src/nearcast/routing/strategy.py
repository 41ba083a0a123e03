"""Strategies: a router and the index it works with, by name."""

from __future__ import annotations

from dataclasses import dataclass

from nearcast.index import INDEXES, LocalIndex
from nearcast.model.errors import NearcastError
from nearcast.routing.base import Router
from nearcast.routing.broadcast import Broadcast
from nearcast.routing.dkm.dkm_sks import DkmSks
from nearcast.routing.dkm.kop import Kop
from nearcast.routing.dkm.sop import Sop
from nearcast.routing.hash import Hash
from nearcast.routing.ps2stream.hybrid import Ps2Stream
from nearcast.routing.ps2stream.space_grid import SpaceGrid
from nearcast.routing.ps2stream.space_kd import SpaceKd
from nearcast.routing.ps2stream.space_r import SpaceR
from nearcast.routing.ps2stream.text_frequency import TextFrequency
from nearcast.routing.ps2stream.text_hypergraph import TextHypergraph
from nearcast.routing.ps2stream.text_metric import TextMetric
from nearcast.routing.random import Random
from nearcast.routing.tornado.router import Tornado
from nearcast.routing.tornado.tornado_text import TornadoText
from nearcast.routing.tornado.tornado_uniform import TornadoUniform

_PS2STREAM = (Ps2Stream, TextFrequency, TextHypergraph, TextMetric, SpaceGrid, SpaceKd, SpaceR)
_TORNADO = (Tornado, TornadoText, TornadoUniform)
ROUTERS: dict[str, type[Router]] = {
    r.name: r for r in (Broadcast, Hash, Random, Kop, Sop, DkmSks, *_PS2STREAM, *_TORNADO)
}

# What runs unless something else is asked for, and why: `nearcast strategies` prints it.
DEFAULTS = {
    "range": (
        "hash+pyramid",
        "needs no plan, 372,624 tuples/s through Spark at 1,000,000 Q2 on two cores; tornado "
        "249,134, ps2stream 204,841 with their plans (bench range-index --spark); pyramid alone "
        "1.72 million objects/s, 291 bytes; gi2 0.26, 266; fast 0.05, 215 (bench range-index)",
    ),
    "knn": ("hash+pyramid", "fewest candidates an object of the indexes here (bench dkm-sks)"),
}


@dataclass(frozen=True, slots=True)
class Strategy:
    """How one kind of subscription is dealt and found."""

    kind: str
    router: type[Router]
    index: type[LocalIndex]

    @property
    def name(self) -> str:
        """As `parse_strategy` reads it."""
        return f"{self.router.name}+{self.index.name}"


def parse_strategy(kind: str, name: str) -> Strategy:
    """`ROUTER` or `ROUTER+INDEX` for a kind; a router alone takes its usual index."""
    if kind not in DEFAULTS:
        raise NearcastError(f"strategy: unknown kind {kind!r}; there are {', '.join(DEFAULTS)}")
    router_name, _, index_name = name.partition("+")
    router = ROUTERS.get(router_name)
    if router is None or kind not in router.kinds:
        fit = [r.name for r in ROUTERS.values() if kind in r.kinds]
        raise NearcastError(
            f"strategy: no router {router_name!r} for {kind}; there are {', '.join(fit)}"
        )
    index = INDEXES.get(index_name or router.indexes[kind])
    if index is None or kind not in index.kinds:
        fit = [i.name for i in INDEXES.values() if kind in i.kinds]
        raise NearcastError(
            f"strategy: no index {index_name!r} for {kind}; there are {', '.join(fit)}"
        )
    return Strategy(kind, router, index)


def choose(wanted: dict[str, str]) -> dict[str, Strategy]:
    """The strategy of every kind, the defaults where nothing is wanted."""
    names = {kind: name for kind, (name, _) in DEFAULTS.items()} | wanted
    return {kind: parse_strategy(kind, name) for kind, name in names.items()}
