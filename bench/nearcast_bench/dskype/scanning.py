"""What a scan of the whole window says of some subscriptions, by the definition in plain Python."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from nearcast.kinds import KINDS
from nearcast.model.space import Space
from nearcast.model.standing import Seen
from nearcast_bench.dskype.load import Load


def scanned(load: Load, controls: pa.RecordBatch, published: int) -> list[list[tuple[float, int]]]:
    """(score, rank) of the k best of each row of TOPS, best first, after so many messages."""
    kind = KINDS["topk"].of_run(load.frame)
    o, first = load.objects, max(published - load.window, 0)
    words = o.words[o.word_offsets[first] : o.word_offsets[published]]
    owner = np.repeat(np.arange(first, published), np.diff(o.word_offsets[first : published + 1]))
    found = []
    for row in controls.to_pylist():
        best = kind.standing(row, Space.PLANAR)
        rows = np.unique(owner[np.isin(words, np.array(row["keywords"], np.uint64))]).tolist()
        scored = []
        for rank in rows:
            held = o.words[o.word_offsets[rank] : o.word_offsets[rank + 1]].tolist()
            x, y, at = float(o.x[rank]), float(o.y[rank]), int(o.time[rank])
            seen = Seen(rank, at, x, y, dict.fromkeys(held, 1), at, rank)
            scored.append((best.score(seen), rank))  # type: ignore[attr-defined]
        found.append(sorted(scored, reverse=True)[: row["k"]])
    return found
