"""Which shards see what: one file (or folder) per strategy, planning and adjusting included.

Every router (`routing.base.Router`) places subscriptions and routes objects so that exactly one
copy of each subscription reports and none misses an object. `ROUTERS` is the registry:

- `broadcast`: everything everywhere (the null strategy);
- `hash`: subscriptions dealt by id, objects to every shard;
- `random`: `hash` with a random re-deal every other batch, to exercise moves;
- `kop`: subscriptions with a ball dealt by the frequency of their words (DkM-SKS 3.1);
- `sop`: the same dealt by subspaces of similar cost (DkM-SKS 3.2);
- `dkm-sks`: the same dealt by words and places at once (DkM-SKS 4);
- `ps2stream`: subscriptions of regions and objects by place, or by word where that costs less
  (PS2Stream IV);
- `text-frequency`: by word, words dealt by frequency (PS2Stream VI-B, as all that follow);
- `text-hypergraph`: by word, words that occur together dealt together;
- `text-metric`: by word, words dealt by the load a worker comes to;
- `space-grid`: by place, runs of cells of one size;
- `space-kd`: by place, leaves of a kd-tree;
- `space-r`: by place, runs of leaves of an R-tree;
- `tornado`: by place, one rectangle per shard, of equal cost (Tornado 3.1, 4.1);
- `tornado-text`: by word, words dealt by hash (Tornado 5.1);
- `tornado-uniform`: by place, one rectangle per shard, of equal size (Tornado 5.1);
- `sstd`: subscriptions by place, objects by place, or by words where that costs less, each object
  to one shard (SSTD 4);
- `sstd-quadtree`: by place, leaves of a quadtree (SSTD 7.1);
- `sstd-text`: objects by words, subscriptions to every shard (SSTD 7.1);
- `skype-hash`: subscriptions for the best objects dealt by id (DSkype 7.3.1);
- `skype-location`: the same dealt by place, one leaf of a kd-tree per shard (DSkype 7.3.2).

The engine calls the methods of `routing.base.Router` and never looks at a router's class. They
say who sees an object (`route`, `sees`), who reports a change (`reports`), what a plan needs and
is (`survey`, `join`, `plan`, `table_at`), what leaves a shard (`leaving`), what holds after a move
(`moved`), what a shard costs (`costs`, `adjusted`), what loads lead to (`look`, `gather`,
`decide`, `table_after`).

A kind (`nearcast.kinds`) says which routers can place it. A strategy is a router with an index:
`hash+pyramid`, or `hash` alone with its usual index (`kinds.strategies`).
"""

from __future__ import annotations

from nearcast.routing.base import Load, Placement, Router, Routes, Sample
from nearcast.routing.broadcast import Broadcast
from nearcast.routing.hash import Hash
from nearcast.routing.random import Random
from nearcast.routing.registry import ROUTERS

__all__ = [
    "ROUTERS",
    "Broadcast",
    "Hash",
    "Load",
    "Placement",
    "Random",
    "Router",
    "Routes",
    "Sample",
]
