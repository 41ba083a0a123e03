"""What a split sends to shards beside its objects, for kinds that need it.

A shard may get only some of the objects. Where a kind in use needs ranks (the number of an object
in object order over the whole run, the same on every shard) it therefore learns of the others too:
by position, and by time in a replay, which is handled by time.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.engine.route.envelope import Extras
from nearcast.model.standing import Needs
from nearcast.wire.decode import Decoded
from nearcast.wire.tables import lists, numbers, to_bytes


def extras_for(
    decoded: Decoded, wanted: NDArray[np.bool_] | None, shards: int, by_time: bool
) -> list[Extras]:
    """What goes to each shard beside its objects; `wanted[shard]`: those; None: all of them."""
    published = decoded.objects.num_rows
    if not decoded.needs:
        return [Extras(published)] * shards
    if wanted is None:
        return [_extras(decoded, None, by_time)] * shards
    return [_extras(decoded, None if mask.all() else mask, by_time) for mask in wanted]


def _extras(decoded: Decoded, mask: NDArray[np.bool_] | None, by_time: bool) -> Extras:
    """For a shard that gets the objects of `mask`; None: all."""
    extras = Extras(decoded.objects.num_rows, decoded.needs.value)
    if decoded.texts is not None:
        texts = decoded.texts
        if mask is not None:
            _, words = lists(decoded.objects.filter(pa.array(mask))["words"], np.uint64)
            texts = texts.filter(pa.array(np.isin(numbers(texts["word"]), words)))
        extras.texts = to_bytes(texts)
    if mask is not None and Needs.RANK in decoded.needs:
        extras.order = to_bytes(decoded.objects.select(["pos", "time"] if by_time else ["pos"]))
    return extras
