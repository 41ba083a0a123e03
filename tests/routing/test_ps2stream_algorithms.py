"""The algorithms of PS2Stream: the compiled ones are the plain ones of `ps2stream_twins`."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.routing import ps2stream_twins as twins
from tests.routing.grid_twins import plain_of
from tests.routing.ps2stream_twins import ANY, Leaf, Obj, Sub, World, sample_of, survey_of

from nearcast.routing.ps2stream import nodes as nd
from nearcast.routing.ps2stream.grid_t import coarsest, grid_t
from nearcast.routing.ps2stream.load import Constants, balance, load
from nearcast.routing.ps2stream.merge_nodes import merge_nodes_into_partitions
from nearcast.routing.ps2stream.number_partitions import compute_number_partitions
from nearcast.routing.ps2stream.partition_node import partition_node, text_partition
from nearcast.routing.ps2stream.partition_workload import (
    Thresholds,
    identify_subspaces,
    partition_workload,
)
from nearcast.routing.ps2stream.similarity import text_similarity
from nearcast.routing.ps2stream.space_partition import load_cut, median_cut, space_partition
from nearcast.routing.ps2stream.text_frequency import frequency_partition
from nearcast.routing.ps2stream.text_hypergraph import SLACK, hypergraph_partition
from nearcast.routing.ps2stream.text_metric import metric_partition
from nearcast.routing.ps2stream.workload import Workload, lay_out

usual = settings(max_examples=50, deadline=None)

WORDS = [4 * i for i in range(1, 8)]
coordinates = st.integers(0, 8).map(float)
boxes = st.tuples(coordinates, coordinates, coordinates, coordinates).map(
    lambda b: (min(b[0], b[2]), min(b[1], b[3]), max(b[0], b[2]), max(b[1], b[3]))
)
objects = st.builds(
    Obj, coordinates, coordinates, st.frozensets(st.sampled_from(WORDS), max_size=4)
)
subs = st.builds(
    Sub,
    st.lists(boxes, min_size=1, max_size=2).map(tuple),
    st.lists(st.sampled_from(WORDS), unique=True, max_size=3).map(tuple),
    st.booleans(),
)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Workload, World]:
    all_objects = draw(st.lists(objects, max_size=30))
    all_subs = draw(st.lists(subs, max_size=20))
    side, discard = draw(st.sampled_from((1, 4, 8))), draw(st.booleans())
    return both(all_objects, all_subs, side, discard)


def both(
    all_objects: list[Obj], all_subs: list[Sub], side: int = 8, discard: bool = True
) -> tuple[Workload, World]:
    c = dict(zip(("c1", "c2", "c3", "c4"), twins.C, strict=True))
    rest = {"deletions": 1.0, "insertions": 0.0, "pairs": 0.0, "queries": 1e6}
    parameters = c | rest | {"side": side, "discard": discard}
    w = lay_out(sample_of(all_objects), survey_of(all_subs), parameters)
    return w, World(all_objects, all_subs, side, discard)


def like(w: Workload, node: nd.Node, twin: Leaf) -> bool:
    terms = None if node.terms is None else frozenset(w.vocabulary[node.terms].tolist())
    return (
        node.region == twin.region
        and terms == twin.terms
        and node.text == twin.text
        and set(node.inside.tolist()) == twin.inside
        and set(node.objects.tolist()) == twin.sent
        and set(node.queries.tolist()) == twin.queries
        and node.load == twin.load
    )


def same(w: Workload, nodes: list[nd.Node], leaves: list[Leaf]) -> bool:
    return len(nodes) == len(leaves) and all(like(w, n, t) for n, t in zip(nodes, leaves))


def parts_of(w: Workload, part: np.ndarray) -> dict[int, int]:
    return {int(w.vocabulary[t]): int(part[t]) for t in np.flatnonzero(part >= 0)}


# -- definitions ---------------------------------------------------------------------------------


def test_definition_1() -> None:
    assert load(Constants(1, 10, 100, 1000, 0.5), 2, 3) == 1 * 6 + 10 * 2 + 100 * 3 + 1000 * 1.5
    assert [balance([2.0, 1.0]), balance([0.0, 0.0]), balance([1.0, 0.0])] == [2.0, 1.0, inf]


@usual
@given(worlds())
def test_the_whole_workload_is_one_node(made: tuple[Workload, World]) -> None:
    w, world = made
    root = nd.root(w)
    assert like(w, root, world.root())
    assert text_similarity(w, root) == twins.similarity(world, world.root())
    assert w.frequency.tolist() == [
        sum(t in held for held in world.held) for t in w.vocabulary.tolist()
    ]


def test_similarity_of_a_hand_made_node() -> None:
    where = ((0.0, 0.0, 8.0, 8.0),)
    things = [Obj(0, 0, frozenset((4, 8))), Obj(8, 8, frozenset((4,)))]
    w, _ = both(things, [Sub(where, (4, 12), True), Sub(where, (), False)])
    assert text_similarity(w, nd.root(w)) == 2 / np.sqrt((4 + 1) * (1 + 1))
    w, _ = both(things, [Sub(where, (), False)])
    assert text_similarity(w, nd.root(w)) == 1.0


# -- partitions of a node ------------------------------------------------------------------------


@usual
@given(worlds(), st.integers(1, 4))
def test_terms_are_dealt_by_metric_and_by_frequency(made: tuple[Workload, World], p: int) -> None:
    w, world = made
    root = nd.root(w)
    for ours, twin in (
        (metric_partition, twins.metric_parts),
        (frequency_partition, twins.frequency_parts),
    ):
        assert parts_of(w, ours(w, root, p)) == twin(world, world.root(), p)


@usual
@given(worlds(), st.integers(2, 4))
def test_nodes_are_divided(made: tuple[Workload, World], p: int) -> None:
    w, world = made
    root, twin = nd.root(w), world.root()
    for axis in range(2):
        assert median_cut(w, root, axis) == twins.median_at(world, twin, axis)
        assert load_cut(w, root, axis, p // 2, p - p // 2) == twins.load_at(
            world, twin, axis, p // 2, p - p // 2
        )
    assert same(w, space_partition(w, root, p), twins.space_split(world, twin, p))
    once, twin_once = text_partition(w, root, p), twins.text_split(world, twin, p)
    assert same(w, once, twin_once)
    for n, t in zip(once, twin_once):
        assert same(w, partition_node(w, n, 2), twins.node_split(world, t, 2))
    assert same(w, partition_node(w, root, p), twins.node_split(world, twin, p))


@usual
@given(worlds(), st.integers(1, 4))
def test_hypergraph_parts_are_even_and_terms_that_meet_stay_together(
    made: tuple[Workload, World], p: int
) -> None:
    w, world = made
    twin = world.root()
    part = parts_of(w, hypergraph_partition(w, nd.root(w), p))
    assert sorted(part) == world.terms(twin)
    weight = {t: len(world.holders(twin, t)) + len(world.askers(twin, t)) for t in part}
    sums = [sum(weight[t] for t in part if part[t] == i) for i in range(p)]
    limit = (1 + SLACK) * sum(weight.values()) / p
    # Over the limit only by a term that fitted nowhere.
    assert max(sums) <= limit + max(weight.values(), default=0)
    assert (
        hypergraph_partition(w, nd.root(w), p).tolist()
        == hypergraph_partition(w, nd.root(w), p).tolist()
    )


def test_hypergraph_finds_two_topics() -> None:
    topics = [frozenset(WORDS[:3]), frozenset(WORDS[3:6])]
    things = [Obj(i, i, topics[i % 2]) for i in range(8)]
    w, _ = both(things, [])
    part = parts_of(w, hypergraph_partition(w, nd.root(w), 2))
    assert len({part[t] for t in topics[0]}) == len({part[t] for t in topics[1]}) == 1
    assert part[WORDS[0]] != part[WORDS[3]]


# -- Algorithm 1 ---------------------------------------------------------------------------------

costs = st.lists(
    st.lists(st.one_of(st.integers(0, 9).map(float), st.just(inf)), max_size=3).map(
        lambda rest: [1.0, *rest]
    ),
    min_size=1,
    max_size=4,
)


@usual
@given(costs, st.integers(0, 4))
def test_numbers_of_partitions_have_the_least_sum(each: list[list[float]], more: int) -> None:
    m = len(each) + more
    found = compute_number_partitions(each, m)
    assert sum(c[k - 1] for c, k in zip(each, found, strict=True)) == twins.best_numbers(each, m)


@usual
@given(worlds(), st.integers(1, 4), st.integers(1, 8))
def test_nodes_are_merged(made: tuple[Workload, World], m: int, p: int) -> None:
    w, world = made
    nodes, leaves = partition_node(w, nd.root(w), p), twins.node_split(world, world.root(), p)
    assert merge_nodes_into_partitions(w, nodes, m) == twins.merge(leaves, m)


@usual
@given(
    worlds(),
    st.integers(1, 4),
    st.sampled_from((0.0, 0.3, 0.6, 1.1)),
    st.sampled_from((1.0, 1.2, 3.0)),
    st.integers(1, 12),
)
def test_algorithm_1(
    made: tuple[Workload, World], m: int, delta: float, sigma: float, theta: int
) -> None:
    w, world = made
    t = Thresholds(delta, sigma, theta, 0.05)
    assert same(w, identify_subspaces(w, t), twins.subspaces(world, delta, theta, 0.05))
    found = partition_workload(w, m, t)
    nodes, workers, loads = twins.algorithm_1(world, m, delta, sigma, theta, 0.05)
    assert same(w, found.nodes, nodes)
    assert (found.workers, found.loads) == (workers, loads)


@pytest.mark.parametrize("m", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("delta", [0.0, 1.1])
def test_load_is_balanced_where_it_can_be(m: int, delta: float) -> None:
    rng = np.random.default_rng(m)
    at = rng.random((400, 2)) * 8
    words = rng.integers(1, 60, (400, 4)) * 4
    things = [Obj(x, y, frozenset(w)) for (x, y), w in zip(at.tolist(), words.tolist())]
    asks = []
    for x, y, a, b in zip(*(rng.random((4, 300)) * 8).tolist()):
        word = 4 * int(rng.integers(1, 60))
        box = (x, y, x + a / 20, y + b / 20)
        asks.append(Sub((box,), (word,), True))
    w, _ = both(things, asks, side=64)
    found = partition_workload(w, m, Thresholds(delta, 1.2, 16 * m, 0.05))
    assert balance(found.loads) <= 1.2
    assert set(found.workers) == set(range(m))


# -- grid^t --------------------------------------------------------------------------------------


def test_the_kdt_tree_of_figure_3_becomes_the_grid_of_figure_4() -> None:
    """N1 and N3 divided by text, N2 and N4 not; {N12, N31} to w2 (here 1), and so on."""
    everywhere = ((0.0, 0.0, 4.0, 4.0),)
    w, _ = both(
        [Obj(0, 0, frozenset(WORDS)), Obj(4, 4, frozenset(WORDS))],
        [Sub(everywhere, tuple(WORDS), False)],
        side=4,
    )
    left_low, left_high, right_low, right_high = (
        nd.space_node(w, region)
        for region in ((0, 0, 2, 2), (0, 2, 2, 4), (2, 0, 4, 2), (2, 2, 4, 4))
    )
    part = np.arange(len(w.vocabulary))
    n1 = nd.text_nodes(w, left_low, part % 2, 2)
    n3 = nd.text_nodes(w, right_high, part % 3, 3)
    table = grid_t(w, [*n1, left_high, *n3, right_low], [0, 1, 2, 1, 2, 3, 3])
    plain = plain_of(table)
    assert plain.cells == [[-1, 3], [2, -2]]
    assert plain.workers == [[0, 1], [1, 2, 3]]
    known = w.vocabulary.tolist()
    assert {known.index(t): s for t, s in plain.maps[0].items()} == {
        t: t % 2 for t in range(len(known)) if known[t] != ANY or ANY in plain.maps[0]
    }
    assert all(plain.maps[1][t] == 1 + known.index(t) % 3 for t in plain.maps[1])


@usual
@given(worlds(), st.integers(1, 4))
def test_grid_t_is_the_tree(made: tuple[Workload, World], m: int) -> None:
    w, _ = made
    found = partition_workload(w, m, Thresholds(0.5, 1.0, 8, 0.05))
    plain = plain_of(grid_t(w, found.nodes, found.workers))
    scale = w.side // len(plain.cells)
    for node, worker in zip(found.nodes, found.workers):
        a, b, c, d = node.region
        for line in range(b, d):
            for column in range(a, c):
                cell = plain.cells[line // scale][column // scale]
                words = [ANY] if node.terms is None else w.vocabulary[node.terms].tolist()
                assert {plain.owner_in(cell, t) for t in words} == {worker}


@given(st.integers(0, 3), st.integers(0, 3), st.data())
def test_grids_are_as_coarse_as_they_can_be(fine: int, side: int, data: st.DataObject) -> None:
    n = 2**side
    line = st.lists(st.integers(0, 2), min_size=n, max_size=n)
    cells = np.array(data.draw(st.lists(line, min_size=n, max_size=n)), np.int32)
    made = coarsest(np.kron(cells, np.ones((2**fine, 2**fine), np.int32)))
    assert len(made) <= n
    assert np.kron(made, np.ones((n // len(made),) * 2, np.int32)).tolist() == cells.tolist()
