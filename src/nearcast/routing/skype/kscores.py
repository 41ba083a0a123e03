"""k-th scores of subscriptions over all messages, whichever shard holds them (DSkype, 7.2).

The paper's message bolts each give their best messages for a subscription, and an aggregation bolt
puts them together: so a new subscription gets its first result, and its prefix is known.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from nearcast.kernels.queries import Centres, Queries, Wishes
from nearcast.kernels.slots import CONJUNCTION
from nearcast.model.frame import Frame
from nearcast.objects.base import ObjectStore
from nearcast.routing.skype.kd_tree import Longs, Reals
from nearcast.wire.tables import FOREVER, NEVER, lists, numbers

_MOST = 1 << 21  # entries that one search fetches, about


def kscores(
    stores: Sequence[ObjectStore], frame: Frame, controls: pa.RecordBatch, published: int
) -> Reals:
    """Of rows of TOPS as they begin, when so many messages were published.

    Minus infinity: there are fewer than k. A message may rest in several stores.
    """
    k = np.minimum(numbers(controls["k"]), max(sum(map(len, stores)), 1))
    out = np.empty(len(k))
    step = max(_MOST // max(int(k.max(initial=1)), 1), 1)
    for first in range(0, len(k), step):
        some = slice(first, first + step)
        table = controls.slice(first, step)
        out[some] = _some(stores, frame, table, k[some], published)
    return np.where(numbers(controls["k"]) > k, -np.inf, out)


def _some(
    stores: Sequence[ObjectStore],
    frame: Frame,
    controls: pa.RecordBatch,
    k: Longs,
    published: int,
) -> Reals:
    n, window = len(k), frame.window
    after = numbers(controls["time"]) - window.span_ms
    queries = Queries(
        after if window.span_ms else np.full(n, NEVER),
        np.full(n, FOREVER),
        np.full(n, published),
        *lists(controls["program"], np.uint64),
        *lists(controls["cover"], np.uint64),
        numbers(controls["flags"]) & CONJUNCTION != 0,
        np.full(n, window.first_rank(published) if window.count else 0),
        np.full(n, FOREVER),
    )
    centres = Centres(numbers(controls["x"]), numbers(controls["y"]), k)
    offsets, words = lists(controls["keywords"], np.uint64)
    idf = frame.idf.hashed.of_words(words)
    alpha, maxdist = numbers(controls["alpha"]), numbers(controls["maxdist"])
    wishes = Wishes(offsets, words, idf, alpha, maxdist)
    found = [store.best(queries, centres, wishes) for store in stores if len(store)]
    rows = np.concatenate([np.empty(0, np.int64), *(np.repeat(np.arange(n), np.diff(f.offsets))
                                                    for f in found)])  # fmt: skip
    rank = np.concatenate([np.empty(0, np.int64), *(f.rank for f in found)])
    score = np.concatenate([np.empty(0), *(f.value for f in found)])
    order = np.lexsort((rank, rows))
    new = np.ones(len(order), bool)
    new[1:] = (np.diff(rows[order]) != 0) | (np.diff(rank[order]) != 0)
    kept = order[new]
    kept = kept[np.lexsort((-score[kept], rows[kept]))]
    ends = np.searchsorted(rows[kept], np.arange(n + 1))
    at = ends[:-1] + k - 1
    full = at < ends[1:]
    out = np.full(n, -np.inf)
    out[full] = score[kept[at[full]]]
    return out
