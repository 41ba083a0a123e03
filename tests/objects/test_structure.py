"""What the indexes of slices hold: lists, tables and boxes, against plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.objects.making import (
    Post,
    Query,
    centres_of,
    excluded_of,
    objects_of,
    queries_of,
    regions_of,
    wishes_of,
)

from nearcast.index.arena import Memory
from nearcast.kernels.hashing import word_hash
from nearcast.model.region import Bbox
from nearcast.model.space import Space
from nearcast.objects.base import Slicing
from nearcast.objects.coded import Coded, coded, joined, plain, taken
from nearcast.objects.curve.index import attach_index as attach_curve
from nearcast.objects.curve.index import build_index as build_curve
from nearcast.objects.curve.order import hilbert_order
from nearcast.objects.curve.store import Curve
from nearcast.objects.rtree.index import attach_index as attach_rtree
from nearcast.objects.rtree.index import build_index as build_rtree
from nearcast.objects.rtree.order import str_order
from nearcast.objects.tree import FAN, LEAF, Tree, node_rows
from nearcast.objects.where import code_of

Order = Callable[[NDArray[np.float64]], NDArray[np.int64]]
N = 2500  # three levels: 40 leaves, 3 nodes, the root


def posts(rng: np.random.Generator, n: int = N) -> list[Post]:
    found = []
    for i in range(n):
        held = np.unique((500 * rng.random(rng.integers(0, 12)) ** 3).astype(int))
        words = {f"w{w}": int(rng.integers(1, 400)) for w in rng.permutation(held)}
        x, y = rng.normal(0, 1, 2)
        found.append(Post(float(x), float(y), i, words, f"o{i}"))
    return found


@pytest.fixture
def rows(rng: np.random.Generator) -> Coded:
    return coded(objects_of(posts(rng))[0])


def nodes(tree: Tree, n: int) -> list[tuple[int, int, int, int]]:
    """(level, number over all levels, first row, last row) of every node."""
    found = []
    for level, (first, last) in enumerate(pairwise(tree.firsts.tolist())):
        for node in range(last - first):
            found.append((level, first + node, *node_rows(level, node, n)))
    return found


def words_of(rows: Coded, first: int, last: int) -> Counter[int]:
    """How many rows hold each word."""
    return Counter(rows.codes[rows.starts[first] : rows.starts[last]].tolist())


@pytest.mark.parametrize("order", [hilbert_order, str_order])
@pytest.mark.parametrize("n", [1, 2, LEAF, LEAF + 1, LEAF * FAN, 5000])
def test_orders_hold_every_row_once(order: Order, n: int, rng: np.random.Generator) -> None:
    for at in (
        rng.normal(0, 1, (n, 2)),
        np.zeros((n, 2)),
        np.full((n, 2), 1e308) * rng.choice([-1, 1], (n, 2)),
        rng.choice([0.0, 1e-310], (n, 2)),
    ):
        assert sorted(order(at).tolist()) == list(range(n))


@pytest.mark.parametrize("order", [hilbert_order, str_order])
def test_orders_keep_neighbours_together(order: Order, rng: np.random.Generator) -> None:
    at = rng.random((LEAF * 256, 2))
    at[0] = 1e9  # one far away must not make all others one cell
    leaves = at[order(at)].reshape(-1, LEAF, 2)
    areas = np.prod(np.ptp(leaves, axis=1), axis=1)
    assert np.median(areas) < 3 / 256


def test_a_node_has_the_box_of_its_rows(rows: Coded) -> None:
    tree = attach_rtree(list(build_rtree(rows))).tree
    for _, number, first, last in nodes(tree, rows.size):
        own = rows.at[first:last]
        assert tree.boxes[number].tolist() == [*own.min(0), *own.max(0)]
    assert nodes(tree, rows.size)[-1][2:] == (0, rows.size)


def test_a_list_holds_exactly_the_rows_with_its_word(rows: Coded) -> None:
    ix = attach_curve(list(build_curve(rows, with_tables=True)))
    held: dict[int, list[int]] = {code: [] for code in range(len(rows.words))}
    for row in range(rows.size):
        for code in rows.codes[rows.starts[row] : rows.starts[row + 1]].tolist():
            held[code].append(row)
    for code, expected in held.items():
        assert ix.lists[ix.list_starts[code] : ix.list_starts[code + 1]].tolist() == expected


def test_a_table_has_all_words_above_its_rest(rows: Coded) -> None:
    ix = attach_curve(list(build_curve(rows, with_tables=True)))
    leaves = int(ix.tree.firsts[1])
    some_left_out = False
    for level, number, first, last in nodes(ix.tree, rows.size):
        if level == 0:
            continue
        table = number - leaves
        own = slice(ix.table_starts[table], ix.table_starts[table + 1])
        pairs = zip(ix.table_codes[own].tolist(), ix.table_counts[own].tolist(), strict=True)
        counts = words_of(rows, first, last)
        rest = int(ix.table_rest[table])
        assert dict(pairs) == {code: n for code, n in counts.items() if n > rest}
        some_left_out |= rest > 0
    assert some_left_out


def test_a_slice_that_is_not_sealed_has_no_tables(rows: Coded) -> None:
    ix = attach_curve(list(build_curve(rows, with_tables=False)))
    assert len(ix.table_rest) == len(ix.table_codes) == 0


def test_tables_of_the_r_tree_are_sums_of_those_below(rows: Coded) -> None:
    ix = attach_rtree(list(build_rtree(rows)))
    tables = {}
    for level, number, first, last in nodes(ix.tree, rows.size):
        own = slice(ix.table_starts[number], ix.table_starts[number + 1])
        codes = ix.table_codes[own].tolist()
        assert codes == sorted(set(codes))
        tables[level, number] = Counter(
            dict(zip(codes, ix.table_counts[own].tolist(), strict=True))
        )
        assert tables[level, number] == words_of(rows, first, last)
        if level:
            here = number - int(ix.tree.firsts[level])
            below = int(ix.tree.firsts[level - 1])
            children = [
                tables[level - 1, below + c]
                for c in range(here * FAN, (here + 1) * FAN)
                if (level - 1, below + c) in tables and below + c < ix.tree.firsts[level]
            ]
            assert tables[level, number] == sum(children, Counter())


def test_lists_of_leaves_hold_exactly_the_rows_with_the_word(rows: Coded) -> None:
    ix = attach_rtree(list(build_rtree(rows)))
    for leaf in range(int(ix.tree.firsts[1])):
        first, last = node_rows(0, leaf, rows.size)
        for entry in range(ix.table_starts[leaf], ix.table_starts[leaf + 1]):
            own = ix.lists[ix.list_starts[entry] : ix.list_starts[entry + 1]]
            held = [
                row - first
                for row in range(first, last)
                if ix.table_codes[entry] in rows.codes[rows.starts[row] : rows.starts[row + 1]]
            ]
            assert own.tolist() == held


def test_coded_objects_are_the_objects(rng: np.random.Generator) -> None:
    objects = objects_of(posts(rng, 300))[0]
    rows = coded(objects)
    assert np.all(rows.words[1:] > rows.words[:-1])
    for got, wanted in zip(plain(rows), objects, strict=True):
        np.testing.assert_array_equal(got, wanted)
    some = rng.permutation(300)
    again = joined([taken(rows, some[:100]), taken(rows, some[100:])])
    for got, wanted in zip(plain(taken(again, np.argsort(some))), objects, strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_a_word_is_found_in_any_dictionary(rng: np.random.Generator) -> None:
    hashed = np.unique(np.array([word_hash(f"w{i}") for i in range(500)], np.uint64))
    crowded = np.sort(rng.integers(0, 2000, 300).astype(np.uint64)) * np.uint64(4)
    top = np.uint64(2**64 - 4) - np.unique(rng.integers(0, 900, 200)).astype(np.uint64)
    for words in (hashed, np.unique(crowded), np.unique(top), hashed[:1], hashed[:0]):
        for i, word in enumerate(words):
            assert code_of(words, word) == i
        for word in (np.uint64(0), np.uint64(2**64 - 1), np.uint64(3), word_hash("other")):
            assert code_of(words, np.uint64(word)) == -1


def test_words_of_a_large_region_come_from_tables(rng: np.random.Generator) -> None:
    store = Curve(Space.PLANAR, Memory(), Slicing(delta_ms=10**6, least=1))
    store.add(*objects_of(posts(rng)))
    everywhere = Query(region=Bbox(-99, -99, 99, 99))
    common, regions = queries_of([everywhere]), regions_of([everywhere], Space.PLANAR)

    def examined(k: int) -> int:
        found = store.word_counts(common, regions, np.array([k]), *excluded_of([everywhere]))
        return found.examined

    assert examined(10) == N  # without tables
    store.seal(10**6)
    assert examined(10) == 0
    assert examined(0) == N


def test_lists_of_frequent_keywords_are_left_out_when_others_score_higher() -> None:
    store = Curve(Space.PLANAR, Memory())
    both, one = {"rare": 1, "often": 1}, {"often": 1}
    held = [both if i % 100 == 0 else one for i in range(500)]
    store.add(*objects_of([Post(i, i, i, words) for i, words in enumerate(held)]))
    query = Query(k=3, keywords={"often": 1.0, "rare": 1.0}, alpha=0.0)
    found = store.best(queries_of([query]), centres_of([query]), wishes_of([query]))
    assert found.rank.tolist() == [400, 300, 200]
    assert found.examined == 5
