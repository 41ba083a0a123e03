"""`skype-location`: subscriptions dealt by place (DSkype, section 7.3.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from nearcast.index import LocalIndex
from nearcast.model.space import Space
from nearcast.routing.arrays import Arrays
from nearcast.routing.balance import (
    AUTO,
    CELLS,
    COMMON,
    LOCAL,
    Balance,
    Change,
    Counts,
    Look,
    Picture,
    Rest,
    imbalance,
)
from nearcast.routing.base import Hashes, Placement, Router, Sample, Seen
from nearcast.routing.grid.live import uneven
from nearcast.routing.hash import home_of
from nearcast.routing.orders import TABLE, Leaving, Order, Plan, Slots
from nearcast.routing.sampling import thinned
from nearcast.routing.skype.kd_tree import KdTree, Reals, pack, shard_of, unpack
from nearcast.routing.skype.spatial_partition import points, spatial_partition
from nearcast.routing.skype.upkeep import (
    adjusted,
    draft_of,
    drawn,
    flattened,
    loads_of,
    share_loads,
)
from nearcast.wire.tables import numbers

_PLACES = 65_536  # of subscriptions of each shard, and of objects; of more, every n-th


class SkypeLocation(Router):
    """One copy at the leaf of a kd-tree; objects to every shard, as any may be near enough.

    Subscriptions that are near each other share a shard, so that its index can leave out more of
    them at once. Before there is a plan an id's hash names the shard.
    """

    name = "skype-location"
    paper = "DSkype (Wang et al.)"
    about = "subscriptions dealt by place, one leaf of a kd-tree per shard; objects to every shard"
    plans = True
    plans_from = 50_000
    balances: ClassVar[Mapping[str, tuple[str, ...]]] = {
        AUTO: (*COMMON, "rounds"),
        LOCAL: (*COMMON, "rounds"),
    }

    def __init__(self, shards: int, table: bytes = b"") -> None:
        super().__init__(shards, table)
        self.tree: KdTree | None = unpack(table) if table else None

    def survey(self, index: LocalIndex, now: int, settled: int, space: Space) -> Arrays:
        """The places of all subscriptions."""
        del now, space  # places say all
        return dict(zip("xy", places_of(index, index.living(settled)), strict=True))

    def join(self, surveys: list[Arrays], sample: Sample) -> Any:
        """The places of all shards' subscriptions."""
        del sample  # where objects are is asked for by the plan
        return tuple(np.concatenate([s[name] for s in surveys]) for name in "xy")

    def plan(self, sample: Sample, survey: Any, parameters: Mapping[str, float]) -> Plan:
        """Algorithm 3."""
        self.given(parameters)  # there are none
        x, y = survey
        return Plan(pack(spatial_partition(points(x, y, sample.x, sample.y), self.shards)))

    def table_at(self, plan: Plan, path: str) -> bytes:
        """The tree itself: it is small."""
        del path
        return plan.data

    def place(self, controls: pa.RecordBatch, id_hash: Hashes) -> Placement:
        """One copy: by hash before a plan, then at the leaf of its place."""
        n = controls.num_rows
        if self.tree is None:
            shards = home_of(id_hash, self.shards)
        else:
            shards = shard_of(self.tree, numbers(controls["x"]), numbers(controls["y"]))
        return Placement(np.arange(n), shards, np.ones(n, bool))

    def leaving(self, order: Order, shard: int, index: LocalIndex, slots: Slots) -> Leaving:
        """What the tree of an order puts elsewhere."""
        target = shard_of(unpack(order[TABLE]), *places_of(index, slots))
        going = np.flatnonzero(target != shard)
        return Leaving(slots[going], slots[going], target[going])

    # -- balance -------------------------------------------------------------------------------

    def look(
        self, batch: int, counts: list[Counts], balance: Balance, rest: Rest | None
    ) -> Look | None:
        """Gather places if loads differ too much and no recent look was in vain."""
        loads = [c.load for c in counts]
        resting = rest is not None and batch < rest.until and imbalance(loads) < 1.1 * rest.ratio
        return None if resting or not uneven(loads, balance) else Look(CELLS)

    def gather(self, question: str, shard: int, seen: Seen, balance: Balance) -> Arrays:
        """Where its subscriptions are, and, once for all shards, where objects came."""
        del question, balance  # there is one question only
        x, y = places_of(seen.index, seen.held[:: -(-len(seen.held) // _PLACES) or 1])
        objects, _ = thinned(seen.objects, _PLACES if shard == 0 else 1)
        return {"x": x, "y": y, "object_x": objects.x, "object_y": objects.y}

    def decide(
        self, question: str, reported: list[Arrays], counts: list[Counts], balance: Balance
    ) -> Change | None:
        """Section 7.4: split overloaded leaves, merge idle ones."""
        del question
        assert self.tree is not None
        names = ("x", "y", "object_x", "object_y")
        of = points(*(np.concatenate([r[name] for r in reported]) for name in names))
        root = draft_of(self.tree, of)
        each = np.array([c.each for c in counts])
        share_loads(root, np.array([c.checks + c.updates for c in counts]))
        before = loads_of(root, each)
        decisions = adjusted(root, each, balance.threshold, balance.rounds)
        if not decisions:
            return None
        tree, after = flattened(root), loads_of(root, each)
        low, high = of.subscriptions.min(axis=1), of.subscriptions.max(axis=1)
        bounds = np.concatenate([low, high])
        picture = Picture(bounds.tolist(), drawn(self.tree, bounds), drawn(tree, bounds))
        return Change(decisions, before, after, picture, pack(tree))

    def table_after(self, change: Change, path: str, since: int) -> bytes:
        """The tree itself: it is small."""
        del path, since
        return change.data


def places_of(index: LocalIndex, slots: Slots) -> tuple[Reals, Reals]:
    """Where subscriptions are."""
    controls = index.rows(slots)[0]
    return numbers(controls["x"]), numbers(controls["y"])
