"""`kop`: keyword-oriented partition, the first baseline of DkM-SKS (section 3.1)."""

from __future__ import annotations

import pyarrow as pa

from nearcast.routing.arrays import Arrays
from nearcast.routing.base import Sample
from nearcast.routing.dkm.assignment import subscription_assignment
from nearcast.routing.dkm.costs import keyword_costs, per_object
from nearcast.routing.dkm.plan import Costs, Numbers, PlannedRouter
from nearcast.routing.dkm.survey import Survey
from nearcast.routing.dkm.vocabulary import (
    Vocabulary,
    vocabulary_of,
    wanted_by_controls,
    wanted_by_survey,
)


class Kop(PlannedRouter):
    """Costs by words alone (equation 1), dealt greedily (Algorithm 1)."""

    name = "kop"
    about = "subscriptions dealt by the frequency of their words, objects to every shard"

    def prepare(
        self, sample: Sample, survey: Survey, parameters: dict[str, float]
    ) -> tuple[Arrays, Numbers, Costs]:
        """Section 3.1: C(s) of every s by equation (1), then Algorithm 1."""
        del parameters  # the paper has none here
        v = vocabulary_of(sample)
        costs = keyword_costs(v, wanted_by_survey(v, survey))
        workers, loads = subscription_assignment(costs, self.shards)
        return v._asdict(), workers, per_object(loads, v)

    def estimate(self, plan: Arrays, controls: pa.RecordBatch) -> Costs:
        """Section 3.1: a new subscription costs what an old one does, by equation (1)."""
        v = Vocabulary(**plan)
        return per_object(keyword_costs(v, wanted_by_controls(v, controls)), v)
