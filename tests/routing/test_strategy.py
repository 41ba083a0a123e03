"""Strategies by name: a router, its index, and one clear line for what there is not."""

from __future__ import annotations

import pytest

from nearcast.index import INDEXES
from nearcast.model.errors import NearcastError
from nearcast.routing import DEFAULTS, ROUTERS, choose, parse_strategy

PAIRS = [
    (kind, router.name, index.name)
    for kind in DEFAULTS
    for router in ROUTERS.values()
    if kind in router.kinds
    for index in INDEXES.values()
    if kind in index.kinds
]


@pytest.mark.parametrize(("kind", "router", "index"), PAIRS)
def test_a_router_and_an_index(kind: str, router: str, index: str) -> None:
    strategy = parse_strategy(kind, f"{router}+{index}")
    assert (strategy.kind, strategy.router, strategy.index) == (
        kind,
        ROUTERS[router],
        INDEXES[index],
    )
    assert strategy.name == f"{router}+{index}"
    assert parse_strategy(kind, strategy.name) == strategy


@pytest.mark.parametrize("kind", DEFAULTS)
def test_a_router_alone_takes_its_usual_index(kind: str) -> None:
    for router in ROUTERS.values():
        if kind in router.kinds:
            assert parse_strategy(kind, router.name).index.name == router.indexes[kind]


@pytest.mark.parametrize(
    ("kind", "name", "reason"),
    [
        ("circle", "hash", "strategy: unknown kind 'circle'; there are range, knn"),
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
        parse_strategy(kind, name)
    assert str(caught.value).startswith(reason)
    assert "\n" not in str(caught.value)


def test_defaults_where_nothing_is_wanted() -> None:
    chosen = choose({"range": "broadcast"})
    assert list(chosen) == list(DEFAULTS)
    assert chosen["range"].name == "broadcast+scan"
    assert chosen["knn"].name == parse_strategy("knn", DEFAULTS["knn"][0]).name
