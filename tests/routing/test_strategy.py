"""Strategies by name: a router, its index, and one clear line for what there is not."""

from __future__ import annotations

import pytest

from nearcast.index import LocalIndex
from nearcast.index.arena import Memory
from nearcast.kinds import KINDS, Kind
from nearcast.kinds.strategies import choose, parse_strategy
from nearcast.model.errors import NearcastError
from nearcast.model.space import Space
from nearcast.routing import ROUTERS

PAIRS = [
    (kind.name, router, index)
    for kind in KINDS.values()
    for router in kind.routers
    for index in kind.index_classes()
]


@pytest.mark.parametrize(("kind", "router", "index"), PAIRS, ids=lambda p: getattr(p, "name", p))
def test_a_router_and_an_index(kind: str, router: str, index: type[LocalIndex]) -> None:
    strategy = parse_strategy(KINDS[kind], f"{router}+{index.name}")
    assert (strategy.kind, strategy.router, strategy.index) == (
        KINDS[kind],
        ROUTERS[router],
        index.name,
    )
    assert type(strategy.make_index(Space.PLANAR, Memory())) is index
    assert strategy.name == f"{router}+{index.name}"
    assert parse_strategy(KINDS[kind], strategy.name) == strategy


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda k: k.name)
def test_a_router_alone_takes_its_usual_index(kind: Kind) -> None:
    for router, index in kind.routers.items():
        assert parse_strategy(kind, router).index == index


@pytest.mark.parametrize(
    ("kind", "name", "reason"),
    [
        (
            "range",
            "hsah",
            "strategy: no router 'hsah' for range; there are broadcast, hash, random",
        ),
        ("range", "", "strategy: no router '' for range"),
        ("range", "+scan", "strategy: no router '' for range"),
        (
            "range",
            "hash+tree",
            "strategy: no index 'tree' for range; there are scan, inverted, gi2, fast, pyr",
        ),
        (
            "range",
            "hash+grid-inverted",
            "strategy: no index 'grid-inverted' for range; there are scan, inverted, gi2, fast",
        ),
        ("range", "hash+scan+scan", "strategy: no index 'scan+scan' for range"),
    ],
)
def test_what_there_is_not(kind: str, name: str, reason: str) -> None:
    with pytest.raises(NearcastError) as caught:
        parse_strategy(KINDS[kind], name)
    assert str(caught.value).startswith(reason)
    assert "\n" not in str(caught.value)
    with pytest.raises(NearcastError) as caught:
        choose({kind: name}, KINDS)
    assert str(caught.value).startswith(reason)


def test_there_is_no_such_kind() -> None:
    with pytest.raises(NearcastError) as caught:
        choose({"circle": "hash"}, KINDS)
    assert str(caught.value) == "strategy: unknown kind 'circle'; there are range, knn, topk, terms"


def test_defaults_where_nothing_is_wanted() -> None:
    chosen = choose({"range": "broadcast"}, KINDS)
    assert list(chosen) == list(KINDS)
    assert chosen["range"].name == "broadcast+scan"
    assert chosen["knn"].name == KINDS["knn"].default
