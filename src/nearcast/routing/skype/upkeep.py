"""Maintenance of a location-based distribution (DSkype, section 7.4).

An overloaded leaf is split by Algorithm 3's line, by what is in it now. The half that goes is taken
by a shard that two idle leaves give free: leaves of one parent, which become one leaf of the
other's shard. Where that would leave a larger load, the shard with the least takes it, and then has
several leaves; such a one gives one away before any is split.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nearcast.routing.balance import imbalance
from nearcast.routing.skype.kd_tree import LEAF, KdTree, Longs, Reals, leaf_of
from nearcast.routing.skype.spatial_partition import Points, cut_of, tree_of

SPLIT, MERGE, GIVE = "split", "merge", "give"
_WORTH = 0.98  # of the largest load must be left at most by a step


@dataclass(slots=True, eq=False)
class Node:
    """A node of a tree that may change."""

    depth: int
    shard: int  # of a leaf
    here: Points
    load: float = 0.0
    axis: int = LEAF
    value: float = 0.0
    lower: Node | None = None
    upper: Node | None = None

    def leaves(self) -> list[Node]:
        """All leaves below, itself included."""
        if self.lower is None or self.upper is None:
            return [self]
        return [*self.lower.leaves(), *self.upper.leaves()]

    def pairs(self) -> list[Node]:
        """Nodes whose children both are leaves."""
        if self.lower is None or self.upper is None:
            return []
        own = [self] if self.lower.axis == self.upper.axis == LEAF else []
        return own + self.lower.pairs() + self.upper.pairs()


def draft_of(tree: KdTree, of: Points) -> Node:
    """The tree with the subscriptions and objects that are in each leaf."""
    at = [leaf_of(tree, *points) for points in of]

    def grow(n: int, depth: int) -> Node:
        inside = Points(*(p[:, leaf == n] for p, leaf in zip(of, at, strict=True)))
        node = Node(depth, int(tree.shard[n]), inside)
        if tree.axis[n] != LEAF:
            node.axis, node.value = int(tree.axis[n]), float(tree.value[n])
            node.lower = grow(int(tree.lower[n]), depth + 1)
            node.upper = grow(int(tree.upper[n]), depth + 1)
        return node

    return grow(0, 0)


def flattened(root: Node) -> KdTree:
    """The tree as routers have it."""
    rows: list[tuple[int, float, int, int, int]] = []

    def add(node: Node) -> int:
        number = len(rows)
        rows.append((LEAF, 0.0, -1, -1, node.shard))
        if node.lower is not None and node.upper is not None:
            lower, upper = add(node.lower), add(node.upper)
            rows[number] = (node.axis, node.value, lower, upper, -1)
        return number

    add(root)
    return tree_of(rows)


def share_loads(root: Node, movable: Reals) -> None:
    """Divide what each shard's subscriptions cost it among its leaves, by equation 15."""
    leaves = root.leaves()
    for shard, load in enumerate(movable.tolist()):
        mine = [leaf for leaf in leaves if leaf.shard == shard]
        # Objects elsewhere are checked too: a leaf without any of its own still costs something.
        weight = np.array([x.here.subscriptions.shape[1] * (1.0 + x.here.objects.shape[1])
                           for x in mine])  # fmt: skip
        total = weight.sum()
        for leaf, w in zip(mine, weight.tolist(), strict=True):
            leaf.load = load * (w / total if total else 1.0 / len(mine))


def loads_of(root: Node, each: Reals) -> Reals:
    """The load of each shard: what its leaves cost, and what objects cost as such."""
    loads = each.copy()
    for leaf in root.leaves():
        loads[leaf.shard] += leaf.load
    return loads


def halves(leaf: Node, shard: int) -> tuple[Node, Node] | None:
    """A leaf split in two, the upper half for another shard; None: all are at one place."""
    cut = cut_of(leaf.here, leaf.depth % 2, leaf.here.objects.shape[1])
    if cut is None:
        return None
    parts = [leaf.here.part(cut.axis, cut.value, below) for below in (True, False)]
    weights = [p.subscriptions.shape[1] * (1.0 + p.objects.shape[1]) for p in parts]
    low, high = (leaf.load * w / sum(weights) for w in weights)
    leaf.axis, leaf.value = cut.axis, cut.value
    lower = Node(leaf.depth + 1, leaf.shard, parts[0], low)
    upper = Node(leaf.depth + 1, shard, parts[1], high)
    return lower, upper


def adjusted(root: Node, each: Reals, threshold: float, rounds: int) -> list[dict[str, Any]]:
    """Change the tree while the largest load is above `threshold` times the mean; decisions."""
    made: list[dict[str, Any]] = []
    for _ in range(rounds):
        before = loads_of(root, each)
        if imbalance(before.tolist()) <= threshold:
            break
        step = _step(root, each, before)
        if step is None:
            break
        made += step
        after = loads_of(root, each).tolist()
        for decision in step:
            decision |= {"before": before.tolist(), "after": after}
    return made


def _step(root: Node, each: Reals, loads: Reals) -> list[dict[str, Any]] | None:
    """One leaf given away, or one split; the best of what there is, or None."""
    hot, cold = int(np.argmax(loads)), int(np.argmin(loads))
    own = sorted((leaf for leaf in root.leaves() if leaf.shard == hot), key=lambda x: x.load)
    ratio = f"shard {hot} has {imbalance(loads.tolist()):.2f} times the mean"
    if len(own) > 1:
        best = min(own, key=lambda x: max(loads[hot] - x.load, loads[cold] + x.load))
        if max(loads[hot] - best.load, loads[cold] + best.load) <= _WORTH * loads[hot]:
            best.shard = cold
            why = f"{ratio}: one of its {len(own)} leaves goes to shard {cold}"
            return [{"kind": GIVE, "reason": why, "from": hot, "to": cold}]
    leaf = own[-1]
    children = halves(leaf, cold)
    if children is None:
        return None
    lower, upper = children
    smaller = min(children, key=lambda x: x.load)
    rest = loads[hot] - smaller.load
    idle = _idle_pair(root, loads, hot, leaf)
    direct = max(rest, loads[cold] + smaller.load)
    freed = np.inf
    if idle is not None:
        pair, kept, gone = idle
        merged = loads[kept] + loads[gone] - each[gone]
        freed = max(rest, merged, each[gone] + smaller.load)
    if min(direct, freed) > _WORTH * loads[hot]:
        leaf.axis = LEAF
        return None
    target, decisions = cold, []
    if freed <= direct and idle is not None:  # each shard then has one leaf, as before
        pair, kept, target = idle
        assert pair.lower is not None
        assert pair.upper is not None
        why = f"the leaves of shards {kept} and {target} are idle and become one of shard {kept}"
        decisions.append({"kind": MERGE, "reason": why, "from": target, "to": kept})
        pair.load, pair.shard = pair.lower.load + pair.upper.load, kept
        pair.axis, pair.lower, pair.upper = LEAF, None, None
    lower.shard = upper.shard = hot
    smaller.shard = target
    leaf.lower, leaf.upper = lower, upper
    why = f"{ratio}: a leaf is split, the half with {smaller.load:.0f} goes to shard {target}"
    return [*decisions, {"kind": SPLIT, "reason": why, "from": hot, "to": target}]


def _idle_pair(root: Node, loads: Reals, hot: int, leaf: Node) -> tuple[Node, int, int] | None:
    """The two leaves of one parent with the least load: (parent, the shard that keeps both, the
    shard that is free then, as it has no other leaf)."""
    number = np.bincount([x.shard for x in root.leaves()], minlength=len(loads))
    found: list[tuple[float, int, Node, int, int]] = []
    for n, pair in enumerate(root.pairs()):
        assert pair.lower is not None
        assert pair.upper is not None
        one, other = pair.lower, pair.upper
        if leaf in (one, other) or one.shard == other.shard or hot in (one.shard, other.shard):
            continue
        for kept, gone in ((one.shard, other.shard), (other.shard, one.shard)):
            if number[gone] == 1:
                found.append((float(loads[kept] + loads[gone]), n, pair, kept, gone))
    return min(found, key=lambda f: f[:2])[2:] if found else None


def drawn(tree: KdTree, bounds: Longs | Reals, side: int = 32) -> list[list[int]]:
    """The shard of each cell of a picture, lowest line first."""
    west, south, east, north = (float(b) for b in bounds)
    x = west + (np.arange(side) + 0.5) / side * (east - west)
    y = south + (np.arange(side) + 0.5) / side * (north - south)
    at = leaf_of(tree, np.tile(x, side), np.repeat(y, side))
    cells: list[list[int]] = tree.shard[at].reshape(side, side).tolist()
    return cells
