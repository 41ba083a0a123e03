"""Which shards see what: one file (or folder) a strategy, planning and adjusting included.

Every router (`routing.base.Router`) places subscriptions and routes objects so that exactly one
copy of each subscription reports and none misses an object. `ROUTERS` is the registry:

- `broadcast`: everything everywhere (the null strategy);
- `hash`: subscriptions dealt by id, objects to every shard;
- `random`: `hash` with a random re-deal every other batch, to exercise moves;
- `kop`: knn subscriptions dealt by the frequency of their words (DkM-SKS 3.1);
- `sop`: knn subscriptions dealt by subspaces of similar cost (DkM-SKS 3.2);
- `dkm-sks`: knn subscriptions dealt by words and places at once (DkM-SKS 4).

A strategy is a router with an index: `hash+pyramid`, or `hash` alone with its usual index.
"""

from __future__ import annotations

from nearcast.routing.base import CanMove, CanPlan, Load, Placement, Router, Routes, Sample, Survey
from nearcast.routing.broadcast import Broadcast
from nearcast.routing.dkm.dkm_sks import DkmSks
from nearcast.routing.dkm.kop import Kop
from nearcast.routing.dkm.plan import table_of_plan
from nearcast.routing.dkm.sop import Sop
from nearcast.routing.hash import Hash
from nearcast.routing.random import Random
from nearcast.routing.strategy import DEFAULTS, ROUTERS, Strategy, choose, parse_strategy

__all__ = [
    "DEFAULTS",
    "ROUTERS",
    "Broadcast",
    "CanMove",
    "CanPlan",
    "DkmSks",
    "Hash",
    "Kop",
    "Load",
    "Placement",
    "Random",
    "Router",
    "Routes",
    "Sample",
    "Sop",
    "Strategy",
    "Survey",
    "choose",
    "parse_strategy",
    "table_of_plan",
]
