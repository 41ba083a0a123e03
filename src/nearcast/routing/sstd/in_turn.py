"""PM, then FM, then FG, until loads are in balance (SSTD, section 5.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.routing.sstd.adjustment import Settings, fg, flat
from nearcast.routing.sstd.draft import Node
from nearcast.routing.sstd.partitioning import Workloads
from nearcast.routing.sstd.reallocation import fm, load_ratio, pm, transfer_cost, worker_loads

PM, FM, FG = "PM", "FM", "FG"
IN_TURN = (PM, FM, FG)
WORTH = 0.05  # share by which the largest load must fall, or queries would move for nothing


class Adjustment(NamedTuple):
    """What was done to a tree: the last of the methods that were tried."""

    kind: str
    before: NDArray[np.float64]  # load of each worker
    after: NDArray[np.float64]
    moved: float  # continuous queries that change hands
    splits: int = 0
    merges: int = 0

    @property
    def reason(self) -> str:
        """What it did, for people."""
        text = (
            f"the largest load is {load_ratio(self.before):.2f} times the smallest; {self.kind}: "
            f"{load_ratio(self.after):.2f} times, {self.moved:.0f} queries move"
        )
        if self.kind == FG:
            text += f", {self.splits} splits and {self.merges} merges"
        return text


def adjust(
    root: Node,
    workloads: Workloads,
    workers: int,
    settings: Settings,
    methods: Sequence[str] = IN_TURN,
) -> Adjustment | None:
    """Change the tree and the workers of its leaves; None: loads are in balance, or stay as high.

    Each method begins with the tree as it is. The first that recovers the balance is the one that
    is done, or the last of them if none does.
    """
    leaves = flat(root, workers)
    before = worker_loads(leaves)
    if load_ratio(before) <= settings.ratio:
        return None
    made = None
    for kind in methods:
        if kind == FG:
            # The tree is changed in place, so FG comes last.
            done = fg(root, workloads, workers, settings)
            new = flat(root, workers)
            moved = transfer_cost(new, new.worker)
            made = Adjustment(kind, before, worker_loads(new), moved, *done)
            break
        mapped = pm(leaves) if kind == PM else fm(leaves)
        made = Adjustment(kind, before, worker_loads(leaves, mapped), transfer_cost(leaves, mapped))
        if load_ratio(made.after) <= settings.ratio or kind == methods[-1]:
            for leaf, worker in zip(list(root.leaves()), mapped.tolist(), strict=True):
                leaf.shard = worker
            break
    if made is None or made.after.max() > (1.0 - WORTH) * before.max():
        return None
    return made
