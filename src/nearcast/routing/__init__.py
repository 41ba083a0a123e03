"""Which shards see what: one file (or folder) a strategy, planning and adjusting included.

Every router (`routing.base.Router`) places subscriptions and routes objects so that exactly one
copy of each subscription reports and none misses an object. `ROUTERS` is the registry:

- `broadcast`: everything everywhere (the null strategy);
- `hash`: subscriptions dealt by id, objects to every shard;
- `random`: `hash` with a random re-deal every other batch, to exercise moves.

A strategy is a router with an index: `hash+pyramid`, or `hash` alone with its usual index.
"""

from __future__ import annotations

from nearcast.routing.base import CanMove, Load, Placement, Router, Routes
from nearcast.routing.broadcast import Broadcast
from nearcast.routing.hash import Hash
from nearcast.routing.random import Random
from nearcast.routing.strategy import DEFAULTS, ROUTERS, Strategy, choose, parse_strategy

__all__ = [
    "DEFAULTS",
    "ROUTERS",
    "Broadcast",
    "CanMove",
    "Hash",
    "Load",
    "Placement",
    "Random",
    "Router",
    "Routes",
    "Strategy",
    "choose",
    "parse_strategy",
]
