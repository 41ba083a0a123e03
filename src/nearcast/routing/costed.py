"""Which subscriptions count in the costs that a table keeps of each shard."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.index import LocalIndex


def counted(index: LocalIndex, now: int) -> NDArray[np.int64]:
    """Slots that see what comes after a batch that reached `now`.

    A replayed log has also begun the next instant, which may not be over (`batch.in_order`).
    """
    return index.living(now + 1)
