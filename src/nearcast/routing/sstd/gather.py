"""What shards report of a batch for the balance of SSTD (section 5.1), and what is made of it.

The paper collects statistics of leaves from workers. Here each shard sends a part of its objects
and queries: from these J, the workloads of leaves, and those of leaves yet to be made, follow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from nearcast.routing.arrays import Arrays
from nearcast.routing.balance import Counts
from nearcast.routing.base import Sample, Seen
from nearcast.routing.grid.survey import RegionSurvey, survey_at, take
from nearcast.routing.sampling import thinned
from nearcast.routing.sstd.draft import Node, draft_of
from nearcast.routing.sstd.object_routing import lists_of, route_objects
from nearcast.routing.sstd.partitioning import Workloads
from nearcast.routing.sstd.qt_tree import LEAF, Reals
from nearcast.routing.sstd.upkeep import renewed

if TYPE_CHECKING:
    from nearcast.routing.sstd.qt_router import QtRouter

OBJECTS = 4096  # that each shard sends; of more, every n-th stands for n
QUERIES = 65_536  # likewise, before copies that are counted elsewhere are left out


def gather(router: QtRouter, shard: int, seen: Seen) -> Arrays:
    """Objects that came to a shard, and queries whose first copy is there."""
    objects, step = thinned(seen.objects, OBJECTS)
    every = -(-len(seen.held) // QUERIES) or 1
    survey = survey_at(seen.index, seen.held[::every])
    first = np.full(len(survey.conjunction), router.shards)
    np.minimum.at(first, *router.copies(survey))
    mine = take(survey, np.flatnonzero(first == shard))
    return {
        **{f"object_{name}": array for name, array in objects._asdict().items()},
        **mine._asdict(),
        "weights": np.array([step, every], np.float64),
    }


def draft_from(
    router: QtRouter,
    reported: Sequence[Arrays],
    counts: Sequence[Counts],
    given: Mapping[str, float],
) -> tuple[Node, Workloads]:
    """The present tree with loads as counted, statistics J as they are now, and who has what.

    Equation 2 divides the counted load of a shard among its leaves: what objects cost as such by
    their number, the rest by their workloads.
    """
    tree = router.tree
    assert tree is not None
    objects, weight = _objects(reported)
    surveys = [RegionSurvey(**{n: t[n] for n in RegionSurvey._fields}) for t in reported]
    parts = [(s, float(t["weights"][1])) for s, t in zip(surveys, reported, strict=True)]
    j = router.statistics(tree.bounds, parts, given)
    nodes = draft_of(tree)
    leaf_of = route_objects(tree, lists_of(tree), *objects)
    order = np.argsort(leaf_of, kind="stable")
    ends = np.searchsorted(leaf_of[order], np.arange(len(nodes) + 1))
    for n, node in enumerate(nodes):
        node.rows = order[ends[n] : ends[n + 1]]
    root = nodes[0]
    workloads = Workloads(j, objects, weight)
    renewed(root, workloads)
    leaves = [node for node in nodes if node.kind == LEAF]
    _calibrate(workloads, leaves, counts)
    for leaf in leaves:
        leaf.queries = j.continuous(leaf.cell)
        leaf.at = {leaf.shard: leaf.queries}
    return root, workloads


def _objects(reported: Sequence[Arrays]) -> tuple[Sample, Reals]:
    """The objects of all shards, and how many each stands for."""
    parts = [Sample(*(t[f"object_{name}"] for name in Sample._fields)) for t in reported]
    lengths = np.concatenate([np.diff(p.word_offsets) for p in parts])
    sample = Sample(
        np.concatenate([p.x for p in parts]),
        np.concatenate([p.y for p in parts]),
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.concatenate([p.words for p in parts]),
    )
    steps = [np.full(len(p.x), t["weights"][0]) for p, t in zip(parts, reported, strict=True)]
    return sample, np.concatenate(steps)


def _calibrate(workloads: Workloads, leaves: list[Node], counts: Sequence[Counts]) -> None:
    """Bring equation 2 to the unit of counted loads, and each shard's leaves to its load."""
    objects, total = sum(n.count for n in leaves), sum(n.load for n in leaves)
    workloads.each = sum(c.each for c in counts) / objects if objects > 0 else 0.0
    rest = sum(c.checks + c.updates for c in counts)
    workloads.scale = rest / total if total > 0 else 0.0
    for leaf in leaves:
        workloads.price(leaf)
    estimated = np.zeros(len(counts))
    for leaf in leaves:
        estimated[leaf.shard] += leaf.load
    for leaf in leaves:
        if estimated[leaf.shard] > 0:
            leaf.factor = counts[leaf.shard].load / estimated[leaf.shard]
        workloads.price(leaf)
