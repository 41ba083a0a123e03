"""`sop`: space-oriented partition, the second baseline of DkM-SKS (section 3.2)."""

from __future__ import annotations

from math import ceil
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.model.jit import njit
from nearcast.routing.arrays import Arrays
from nearcast.routing.base import Sample
from nearcast.routing.dkm.assignment import subscription_assignment
from nearcast.routing.dkm.costs import per_object, space_cost
from nearcast.routing.dkm.nearest import ball_box
from nearcast.routing.dkm.places import Places
from nearcast.routing.dkm.plan import Costs, Numbers, PlannedRouter, points_of
from nearcast.routing.dkm.prepared import lay_out, restore
from nearcast.routing.dkm.space import space_oriented_partition, subset_of
from nearcast.routing.dkm.survey import Survey
from nearcast.routing.dkm.vocabulary import WantedWords, wanted_by_controls


class Sop(PlannedRouter):
    """Costs by place alone (equations 2 and 3); whole subspaces are dealt.

    `theta`: how many subspaces per worker the space is split into.
    """

    name = "sop"
    about = "subspaces with their subscriptions dealt by cost, objects to every shard"
    parameters: ClassVar[dict[str, float]] = {"theta": 20}

    def prepare(
        self, sample: Sample, survey: Survey, parameters: dict[str, float]
    ) -> tuple[Arrays, Numbers, Costs]:
        """Section 3.2: quadtree splits until n >= theta · m, then Algorithm 1 on the subsets."""
        made = lay_out(sample, survey)
        target = max(ceil(parameters["theta"] * self.shards), 1)
        c = space_oriented_partition(made.subscriptions, made.places, target)
        workers, loads = subscription_assignment(c.costs, self.shards)
        return made.arrays(), workers[subset_of(c)], per_object(loads, made.vocabulary)

    def estimate(self, plan: Arrays, controls: pa.RecordBatch) -> Costs:
        """Section 3.2: the box around the ball of the kNN among O_init, by equation (2)."""
        v, p = restore(plan)
        points, k = points_of(controls)
        return per_object(_costs(p, wanted_by_controls(v, controls), points, k), v)


@njit
def _costs(
    p: Places, wanted: WantedWords, points: NDArray[np.float64], k: NDArray[np.int64]
) -> NDArray[np.float64]:
    costs = np.empty(len(k))
    box = np.empty(4)
    for s in range(len(k)):
        ball_box(p, wanted, s, k[s], points[s], box)
        costs[s] = space_cost(p, box)
    return costs
