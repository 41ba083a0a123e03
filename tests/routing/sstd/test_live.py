"""SSTD's balance on the verbs of a router: look, gather, decide, and what leaves."""

from __future__ import annotations

import numpy as np
import pytest
from tests.routing.sstd.sstd_twins import town
from tests.routing.sstd.test_qt_tree import check_tree

from nearcast.routing.arrays import Arrays
from nearcast.routing.balance import CELLS, Balance, Counts, Rest
from nearcast.routing.base import Sample
from nearcast.routing.grid.survey import RegionSurvey, take
from nearcast.routing.sampling import taken
from nearcast.routing.sstd.draft import draft_of
from nearcast.routing.sstd.gather import draft_from
from nearcast.routing.sstd.leaving import changed_leaves
from nearcast.routing.sstd.live import Reallocating
from nearcast.routing.sstd.object_routing import lists_of, route_objects
from nearcast.routing.sstd.qt_tree import LEAF, TEXTUAL, leaves_of, unpack
from nearcast.routing.sstd.query_routing import queries_at, query_leaves
from nearcast.routing.sstd.reallocation import load_ratio
from nearcast.routing.sstd.router import Sstd
from nearcast.routing.sstd.sstd_quadtree import SstdQuadtree
from nearcast.routing.sstd.sstd_text import SstdText

SHARDS = 4
by_router = pytest.mark.parametrize("kind", [Sstd, SstdQuadtree, SstdText], ids=lambda r: r.name)


def planned(
    kind: type[Reallocating], rng: np.random.Generator
) -> tuple[Reallocating, Sample, RegionSurvey]:
    sample, survey = town(rng)
    router = kind(SHARDS)
    return router.with_table(router.plan(sample, survey, {"theta": 22.0}).data), sample, survey


def reports(router: Reallocating, sample: Sample, survey: RegionSurvey) -> list[Arrays]:
    """What shards gather: each has the objects that are sent to it and the queries placed there."""
    assert router.tree is not None
    shard = router.tree.shard[route_objects(router.tree, lists_of(router.tree), *sample)]
    rows, shards = router.copies(survey)
    first = np.full(len(survey.conjunction), SHARDS)
    np.minimum.at(first, rows, shards)
    out = []
    for s in range(SHARDS):
        objects = taken(sample, np.flatnonzero(shard == s))
        mine = take(survey, np.flatnonzero(first == s))
        named = {f"object_{name}": array for name, array in objects._asdict().items()}
        out.append({**named, **mine._asdict(), "weights": np.array([1.0, 1.0])})
    return out


def crowd(sample: Sample, rng: np.random.Generator) -> Sample:
    """Most objects near one point."""
    near = rng.random(len(sample.x)) < 0.8
    x, y = (np.where(near, rng.normal(0.2, 0.01, len(near)), a) for a in (sample.x, sample.y))
    return sample._replace(x=x, y=y)


def counted(reported: list[Arrays]) -> list[Counts]:
    return [Counts(objects=len(t["object_x"]), scanned=40 * len(t["object_x"])) for t in reported]


def test_a_look_goes_by_the_largest_and_the_smallest_load(rng: np.random.Generator) -> None:
    router, _, _ = planned(Sstd, rng)
    even, uneven = ([Counts(objects=n) for n in of] for of in ((600, 101, 300), (600, 99, 300)))
    balance = Balance("auto", least=0)
    assert router.look(3, even, balance, None) is None
    look = router.look(3, uneven, balance, None)
    assert look is not None
    assert look.question == CELLS
    assert router.look(3, uneven, Balance("auto", least=10**9), None) is None
    assert router.look(3, uneven, balance, Rest(9, 3.0)) is None
    assert router.look(9, uneven, balance, Rest(9, 3.0)) is not None


@by_router
def test_the_draft_has_the_counted_loads(
    kind: type[Reallocating], rng: np.random.Generator
) -> None:
    router, sample, survey = planned(kind, rng)
    assert router.tree is not None
    reported = reports(router, crowd(sample, rng), survey)
    counts = counted(reported)
    root, workloads = draft_from(router, reported, counts, router.given({}))
    loads = np.zeros(SHARDS)
    for leaf in root.leaves():
        loads[leaf.shard] += leaf.load
    assert loads.tolist() == pytest.approx([c.load for c in counts])
    assert sorted(r for leaf in root.leaves() for r in leaf.rows.tolist()) == list(range(600))
    _, at = query_leaves(router.tree, survey)
    held = np.bincount(at, minlength=len(router.tree.kind))[leaves_of(router.tree)]
    by_key = dict(zip(router.tree.key[leaves_of(router.tree)].tolist(), held, strict=True))
    asks = router.given({})["asks"]
    for leaf in root.leaves():  # |P.Q|, of which a part is taken to be asks
        assert leaf.queries == pytest.approx((1 - asks) * by_key[leaf.key])
        assert leaf.at == {leaf.shard: leaf.queries}
    assert workloads.j.share.sum() == pytest.approx(1.0)


@by_router
@pytest.mark.parametrize("mode", ["auto", "local", "global"])
def test_a_decision_lowers_the_largest_load(
    kind: type[Reallocating], mode: str, rng: np.random.Generator
) -> None:
    router, sample, survey = planned(kind, rng)
    assert router.tree is not None
    reported = reports(router, crowd(sample, rng), survey)
    counts = counted(reported)
    # Shard 0 is four times as slow as it should be, for no reason that statistics show.
    counts[0] = Counts(objects=counts[0].objects, scanned=4 * counts[0].scanned + 1000)
    change = router.decide(CELLS, reported, counts, Balance(mode, ratio=1.2, least=0))
    if change is None:
        assert mode == "local"
        return
    tree = unpack(change.data)
    check_tree(tree, len(leaves_of(tree)))
    assert change.after.max() < 0.95 * change.before.max()
    [decision] = change.decisions
    assert decision["kind"] in {"local": ["PM"], "global": ["FM", "FG"]}.get(
        mode, ["PM", "FM", "FG"]
    )
    if decision["kind"] != "FG":
        assert np.array_equal(tree.key, router.tree.key)
    methods = {int(k) for k in tree.kind if k != LEAF}
    assert methods <= set(router.methods)
    assert change.picture.bounds == tree.bounds.tolist()
    # It is a function of its arguments: a repeated batch decides the same.
    again = router.decide(CELLS, reported, counts, Balance(mode, ratio=1.2, least=0))
    assert again is not None
    assert again.data == change.data


def test_loads_in_balance_are_left_alone(rng: np.random.Generator) -> None:
    router, sample, survey = planned(Sstd, rng)
    reported = reports(router, sample, survey)
    even = [Counts(objects=100) for _ in range(SHARDS)]
    assert router.decide(CELLS, reported, even, Balance("auto", ratio=1.2)) is None


def test_a_new_version_learns_new_words(rng: np.random.Generator) -> None:
    """Words stay on the lists of children; those of new objects come to them."""
    router, sample, survey = planned(SstdText, rng)
    assert router.tree is not None
    later, _ = town(rng)
    reported = reports(router, later, survey)
    root, workloads = draft_from(router, reported, counted(reported), router.given({}))
    before = draft_of(router.tree)[0]
    assert before.kind == root.kind == TEXTUAL
    grown = 0
    for c, child in enumerate(root.children):
        new, old = (set(n.lists.words[n.lists.held >> c & 1 > 0].tolist()) for n in (root, before))
        known = set(root.lists.words.tolist())
        brought = set(taken(workloads.objects, child.rows).words.tolist()) & known
        assert new == (old & known) | brought
        grown += len(new - old)
        mine = np.isin(root.lists.words, list(new))
        assert child.h_srq == pytest.approx(root.lists.p_srq[mine].sum())
    assert grown > 0
    del sample


@by_router
def test_only_queries_at_changed_leaves_are_dealt_anew(
    kind: type[Reallocating], rng: np.random.Generator
) -> None:
    """All others have their copies where they were."""
    router, sample, survey = planned(kind, rng)
    reported = reports(router, crowd(sample, rng), survey)
    counts = counted(reported)
    counts[0] = Counts(objects=counts[0].objects, scanned=9 * counts[0].scanned + 1000)
    change = router.decide(CELLS, reported, counts, Balance("auto", ratio=1.2, least=0))
    assert change is not None
    following = router.with_table(change.data)
    assert router.tree is not None
    assert following.tree is not None
    gone = changed_leaves(router.tree, following.tree)
    assert gone.any()
    _, small = town(rng, 500, 0.004)
    for queries in (survey, small):
        near = queries_at(router.tree, gone, queries.box_offsets, queries.boxes)
        rows, leaves = query_leaves(router.tree, queries)
        assert near.tolist() == np.isin(np.arange(len(near)), rows[gone[leaves]]).tolist()
        before, after = (
            set(zip(*(c.tolist() for c in r.copies(queries)), strict=True))
            for r in (router, following)
        )
        assert {row for row, _ in before ^ after} <= set(np.flatnonzero(near).tolist())


@pytest.mark.parametrize("kind", [Sstd, SstdQuadtree], ids=lambda r: r.name)
@pytest.mark.parametrize("seed", range(3))
def test_loads_become_what_was_expected(kind: type[Reallocating], seed: int) -> None:
    """The paper's imbalance: a region gets most objects. Counted again under the new tree."""
    rng = np.random.default_rng(seed)
    router, sample, survey = planned(kind, rng)
    sample = crowd(sample, rng)
    reported = reports(router, sample, survey)
    change = router.decide(CELLS, reported, counted(reported), Balance("auto", ratio=1.5))
    assert change is not None
    following = router.with_table(change.data)
    after = np.array([c.load for c in counted(reports(following, sample, survey))])
    assert after.max() < change.before.max()
    assert load_ratio(after) < load_ratio(change.before)
    assert after.max() < 1.3 * change.after.max()
