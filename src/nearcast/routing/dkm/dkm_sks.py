"""`dkm-sks`: subscriptions dealt by words and places at once (DkM-SKS section 4)."""

from __future__ import annotations

from math import ceil
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.model.jit import njit
from nearcast.routing.arrays import Arrays
from nearcast.routing.base import Sample
from nearcast.routing.dkm.assignment import subset_assignment
from nearcast.routing.dkm.costs import (
    Memo,
    begin_box,
    grown_costs,
    hybrid_cost,
    new_memo,
    per_object,
    young_costs,
)
from nearcast.routing.dkm.nearest import ball_box
from nearcast.routing.dkm.partitioning import subscription_partitioning
from nearcast.routing.dkm.places import Places
from nearcast.routing.dkm.plan import Costs, Numbers, PlannedRouter, points_of
from nearcast.routing.dkm.prepared import lay_out, restore
from nearcast.routing.dkm.rectangles import Rectangles, most_overlapped, rectangles_of
from nearcast.routing.dkm.space import subset_of
from nearcast.routing.dkm.survey import Survey
from nearcast.routing.dkm.vocabulary import WantedWords, wanted_by_controls

_YOUNG = "young"
_RECTANGLES = "rectangles_"  # before the names of their arrays in a plan


class DkmSks(PlannedRouter):
    """Costs by words within a rectangle (equations 4 to 6); subsets dealt out among all workers.

    `gamma1`: how many subsets per worker S is split into. The paper's 100,000 belong to its 20
    workers and 10,000,000 subscriptions: subsets of five on average. With fewer subscriptions it
    would mean subsets of one, and nothing left of Algorithm 3. So 0, the usual value, stands for
    that ratio: |S| / 5 subsets, but at least four per worker. There are never more than |S|.

    `gamma2`: a subset of at most so many subscriptions may be split by Hybrid-Partition.

    `young`: with 1, a new subscription is dealt by what it will change from now on, with no
    results yet (`costs.young_costs`), and one that ends is taken for a grown one
    (`costs.grown_costs`); with 0, both cost what equation (7) says, as if they had seen O_init.
    """

    name = "dkm-sks"
    about = "subscriptions dealt by words and places, neighbours apart; objects to every shard"
    parameters: ClassVar[dict[str, float]] = {"gamma1": 0, "gamma2": 20, "young": 1}

    def prepare(
        self, sample: Sample, survey: Survey, parameters: dict[str, float]
    ) -> tuple[Arrays, Numbers, Costs]:
        """Section 4.2: Algorithm 2, then Algorithm 3."""
        made = lay_out(sample, survey)
        v, p, s = made
        memo = new_memo(len(v.frequency))
        target = subsets_wanted(len(s.x), self.shards, parameters["gamma1"])
        c, costs = subscription_partitioning(s, p, memo, target, float(parameters["gamma2"]))
        workers, loads = subset_assignment(costs, subset_of(c), self.shards)
        space = np.array([np.inf, np.inf, -np.inf, -np.inf])
        if len(s.x):
            space[:2] = np.minimum(p.bounds[:2], [s.x.min(), s.y.min()])
            space[2:] = np.maximum(p.bounds[2:], [s.x.max(), s.y.max()])
        tree = rectangles_of(c.boxes[: len(c.first) if len(s.x) else 0], space)
        kept = {_RECTANGLES + name: array for name, array in tree._asdict().items()}
        kept[_YOUNG] = np.array([parameters["young"]])
        return made.arrays() | kept, workers, per_object(loads, v)

    def estimate(self, plan: Arrays, controls: pa.RecordBatch) -> Costs:
        """What subscriptions that end have cost: the paper's costs, or those that go with `young`.

        The paper's are of section 4.4: equation (5) with the R* of equation (7).
        """
        v, p = restore(plan)
        wanted = wanted_by_controls(v, controls)
        points, k = points_of(controls)
        if plan[_YOUNG][0]:
            return per_object(grown_costs(v, wanted, k), v)
        tree = Rectangles(*(plan[_RECTANGLES + name] for name in Rectangles._fields))
        memo = new_memo(len(v.frequency))
        return per_object(_costs(p, tree, memo, wanted, points, k), v)

    def estimate_new(self, plan: Arrays, controls: pa.RecordBatch) -> Costs:
        """Without results any object with one of its words is taken, however far away."""
        if not plan[_YOUNG][0]:
            return self.estimate(plan, controls)
        v, _ = restore(plan)
        _, k = points_of(controls)
        return per_object(young_costs(v, wanted_by_controls(v, controls), k), v)


def subsets_wanted(subscriptions: int, workers: int, gamma1: float) -> int:
    """How many subsets Algorithm 2 makes: gamma1 · m, see `DkmSks`."""
    wanted = gamma1 * workers if gamma1 > 0 else max(4 * workers, subscriptions / 5)
    return max(min(ceil(wanted), subscriptions), 1)


@njit
def _costs(
    p: Places,
    tree: Rectangles,
    memo: Memo,
    wanted: WantedWords,
    points: NDArray[np.float64],
    k: NDArray[np.int64],
) -> NDArray[np.float64]:
    costs = np.empty(len(k))
    box = np.empty(4)
    for s in range(len(k)):
        ball_box(p, wanted, s, k[s], points[s], box)
        star = most_overlapped(tree, box)
        if star >= 0:  # else it is a subset of its own
            box[:] = tree.boxes[star]
        begin_box(memo)
        costs[s] = hybrid_cost(p, memo, wanted, s, box)
    return costs
