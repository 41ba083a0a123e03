"""`rect-inverted`: subsets by place, each with an inverted file, as SOP keeps it (section 3.2)."""

from __future__ import annotations

import numpy as np

from nearcast.index.balls.groups import GROUPS, NODES, THETA, Groups, forget_boxes
from nearcast.index.balls.index import BallIndex
from nearcast.index.balls.post import GROUPED, Scratch
from nearcast.index.posting import DIVIDED, POSTED
from nearcast.kernels import results as rs
from nearcast.kernels import slots as sl
from nearcast.kernels.quarters import Quarters, divide

_GROWN = 4  # times as many subscriptions are divided anew


class RectInverted(BallIndex):
    """A quadtree divides the subscriptions into subsets S_r, with one inverted file per subset.

    An object in R, the rectangle around the balls of S_r, looks up its words in I(S_r). As
    published, lists have no boxes: every subscription found is examined. R is the whole space
    while a subscription of S_r has fewer than k results, or a window.
    """

    name = "rect-inverted"
    paper = "DkM-SKS 3.2"
    about = "20 subsets by place, each with a rectangle around its balls and an inverted file"
    layout = GROUPED

    def load(self) -> None:
        """Attach what the storage holds, the subsets too."""
        super().load()
        self._groups()  # a storage clears the arrays that were mapped once

    def _groups(self) -> Groups:
        get = self.storage.array
        tree = Quarters(
            get("groups.centres", np.float64, 2, NODES)[:NODES],
            get("groups.parts", np.int32, 4, NODES)[:NODES],
        )
        return Groups(get("groups.boxes", np.float64, 4, GROUPS)[:GROUPS], tree)

    def _post_balls(self, scratch: Scratch) -> None:
        if len(self) >= _GROWN * int(self._post_meta[DIVIDED]):
            self._divide()
        super()._post_balls(scratch)

    def _divide(self) -> None:
        """Divide the subscriptions anew; none is posted after that."""
        if self._post_meta[POSTED]:
            self._forget_lists()
        n = len(self)
        groups = self._groups()
        at = self._results.state.reals[:n][self._slots.half[:n, sl.FLAGS] & sl.LIVE != 0]
        divide(groups.tree, at[:, rs.X].copy(), at[:, rs.Y].copy(), THETA)
        forget_boxes(groups)
        self._post_meta[DIVIDED] = n
