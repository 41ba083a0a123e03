"""Live balance of SSTD's routers: section 5 on what shards count in a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np

from nearcast.routing.arrays import Arrays, reference
from nearcast.routing.balance import (
    AUTO,
    CELLS,
    GLOBAL,
    LOCAL,
    Balance,
    Change,
    Counts,
    Look,
    Picture,
    Rest,
    imbalance,
)
from nearcast.routing.base import Example, Seen
from nearcast.routing.sampling import sample_of
from nearcast.routing.sstd.adjustment import Settings
from nearcast.routing.sstd.draft import flattened
from nearcast.routing.sstd.drawing import drawn
from nearcast.routing.sstd.gather import draft_from, gather
from nearcast.routing.sstd.in_turn import FG, FM, PM, adjust
from nearcast.routing.sstd.qt_router import QtRouter
from nearcast.routing.sstd.qt_tree import pack
from nearcast.routing.sstd.reallocation import load_ratio
from nearcast.wire.tables import object_columns

_METHODS = {LOCAL: (PM,), GLOBAL: (FM, FG), AUTO: (PM, FM, FG)}
_COMMON = ("ratio", "least", "wait")


class Reallocating(QtRouter):
    """PM (`local`), FM and FG (`global`), or all three in turn (`auto`)."""

    balances: ClassVar[Mapping[str, tuple[str, ...]]] = {
        AUTO: (*_COMMON, "epsilon", "rounds"),
        LOCAL: _COMMON,
        GLOBAL: (*_COMMON, "epsilon", "rounds"),
    }

    def look(
        self, batch: int, counts: list[Counts], balance: Balance, rest: Rest | None
    ) -> Look | None:
        """Gather statistics if there is load imbalance (definition 4) and no recent look was in
        vain."""
        loads = [c.load for c in counts]
        resting = rest is not None and batch < rest.until and imbalance(loads) < 1.1 * rest.ratio
        uneven = max(loads) >= balance.least and load_ratio(np.array(loads)) > balance.ratio
        return Look(CELLS) if uneven and not resting else None

    def gather(self, question: str, shard: int, seen: Seen, balance: Balance) -> Arrays:
        """A part of the objects and queries of a shard."""
        del question, balance  # there is one question only, whatever the mode
        return gather(self, shard, seen)

    def decide(
        self, question: str, reported: list[Arrays], counts: list[Counts], balance: Balance
    ) -> Change | None:
        """The methods of the mode in turn."""
        del question  # there is one only
        root, workloads = draft_from(self, reported, counts, self.given({}))
        settings = Settings(balance.ratio, balance.epsilon, balance.rounds, self.methods)
        made = adjust(root, workloads, self.shards, settings, _METHODS[balance.mode])
        if made is None:
            return None
        assert self.tree is not None
        tree = flattened(root, self.tree.bounds, workloads.j.lengths)
        decision = {
            "kind": made.kind,
            "reason": made.reason,
            "splits": made.splits,
            "merges": made.merges,
            "before": made.before.tolist(),
            "after": made.after.tolist(),
        }
        picture = Picture(self.tree.bounds.tolist(), drawn(self.tree), drawn(tree))
        return Change([decision], made.before, made.after, picture, pack(tree))

    def table_after(self, change: Change, path: str, since: int) -> bytes:
        """What stands for the file of the new tree."""
        del change, since  # all of it is in the file
        return reference(path)

    def warm_up(self, example: Example, balance: Balance) -> None:
        """With a balance also statistics and an adjustment."""
        super().warm_up(example, balance)
        if not balance.on:
            return
        index, objects = example()
        every = np.arange(len(index))
        sample = sample_of(object_columns(objects))
        planned = self.with_table(self.planned(sample, index, every))
        seen = Seen(index, sample, every, every, every)
        reported = [gather(planned, shard, seen) for shard in range(planned.shards)]
        counts = [Counts(objects.num_rows * (shard + 1)) for shard in range(planned.shards)]
        planned.decide(CELLS, reported, counts, replace(balance, ratio=1.0))
