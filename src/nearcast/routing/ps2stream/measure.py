"""c1 to c4 of Definition 1, measured on this machine with a worker's index."""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
import pyarrow as pa

from nearcast.index import INDEXES, LocalIndex
from nearcast.index.arena import Memory
from nearcast.model.space import Space
from nearcast.routing.grid.survey import Reals
from nearcast.routing.ps2stream.load import Constants
from nearcast.wire.tables import ObjectColumns, object_columns

_SHARES = (0.01, 0.25, 0.5, 1.0)  # of the queries: objects are matched with so many
_PASSES = 3
LEAST = 20_000  # objects: with a thousand, c2 was too small for the clock


def measure_constants(
    index: str, inserted: pa.RecordBatch, deleted: pa.RecordBatch, objects: pa.RecordBatch
) -> Constants:
    """The constants, in microseconds, for an index and a workload.

    `inserted` are subscribes, `deleted` unsubscribes of some of them (both CONTROLS), `objects`
    OBJECTS; of few objects the first are taken again, until they are `LEAST`. c1 is how much an
    object's cost grows with one more query, c2 what is left without any (least squares over
    several numbers of queries), and no less than it costs with a hundredth of the queries: an
    index without any returns at once. Seconds are those of the processor.
    """
    columns = object_columns(_enough(objects))
    n = inserted.num_rows
    cuts = [0, *(max(int(share * n), i + 1) for i, share in enumerate(_SHARES))]
    worker = INDEXES["regions"][index](Space.GEOGRAPHIC, Memory())
    _warm(index, inserted.slice(0, min(n, 200)), deleted.slice(0, 1), columns)
    inserting, each = 0.0, []
    for first, stop in pairwise(cuts):
        inserting += _apply(worker, inserted.slice(first, stop - first))
        each.append(min(_match(worker, columns) for _ in range(_PASSES)) / len(columns.x))
    c1, c2 = _line(np.array(cuts[1:], np.float64), np.array(each))
    deleting = _apply(worker, deleted)
    deleting += max(_match(worker, columns) - each[-1] * len(columns.x), 0.0)  # lists are tidied
    return Constants(
        c1=c1 * 1e6,
        c2=c2 * 1e6,
        c3=inserting / n * 1e6,
        c4=deleting / max(deleted.num_rows, 1) * 1e6,
        deletions=1.0,
    )


def _line(queries: Reals, seconds: Reals) -> tuple[float, float]:
    """(c1, c2) of an object's seconds at several numbers of queries, the first of them small."""
    _, rest = np.polyfit(queries[1:], seconds[1:], 1)
    c2 = max(float(rest), float(seconds[0]))
    return max(float(queries @ (seconds - c2) / (queries @ queries)), 0.0), c2


def _enough(objects: pa.RecordBatch) -> pa.RecordBatch:
    """At least `LEAST` objects: some are there again, next to themselves, for times must ascend."""
    if objects.num_rows >= LEAST:
        return objects
    return objects.take(pa.array(np.sort(np.arange(LEAST) % objects.num_rows)))


def _apply(worker: LocalIndex, controls: pa.RecordBatch) -> float:
    started = time.thread_time()
    worker.apply(controls, np.zeros(controls.num_rows, np.int32))
    worker.close()
    return time.thread_time() - started


def _match(worker: LocalIndex, columns: ObjectColumns) -> float:
    started = time.thread_time()
    worker.match(columns, columns.clock, int(columns.time[-1]))
    worker.close()
    return time.thread_time() - started


def _warm(index: str, inserted: pa.RecordBatch, deleted: pa.RecordBatch, o: ObjectColumns) -> None:
    """Compile what is needed, so that no compiler is measured."""
    worker = INDEXES["regions"][index](Space.GEOGRAPHIC, Memory())
    _apply(worker, inserted)
    _match(worker, o)
    _apply(worker, deleted)
