"""Objects and subscriptions of a corpus as the tables that indexes and routers read.

The same rows as decoding the events of `workload.events` gives, without a text in between: ten
million subscriptions are made in a minute instead of ten.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nearcast.kernels.program import TAG_OR
from nearcast.kernels.ragged import places
from nearcast.kernels.slots import CONJUNCTION, REPORTS, SUBSCRIBE, UNSUBSCRIBE
from nearcast.model.region import BBOX
from nearcast.model.standing import Needs
from nearcast.wire.carried import COUNT_COLUMNS, objects_with
from nearcast.wire.tables import OBJECTS, REGIONS, TOPS, filled_up, list_column
from nearcast.wire.words import hash_words
from nearcast.workload.corpus import Corpus, Objects
from nearcast.workload.ragged import Longs, offsets_of, positions_of, rows_of
from nearcast.workload.subscriptions import OR, Subscriptions

_WORDS, _REALS = REGIONS.field("program").type, REGIONS.field("region").type


@lru_cache(maxsize=4)
def word_hashes(corpus: Corpus) -> NDArray[np.uint64]:
    """The hash of every keyword of a corpus, uint64[vocabulary]."""
    return hash_words(corpus.words(np.arange(corpus.vocabulary, dtype=np.int32)))


def subscribe_rows(
    corpus: Corpus, queried: Subscriptions, first: int, times: Longs
) -> pa.RecordBatch:
    """REGIONS of subscriptions ``s{first}``, ``s{first + 1}``, … at these times."""
    if queried.bbox is None:
        raise ValueError("these subscriptions have no region")
    n = len(queried)
    words = word_hashes(corpus)[queried.keywords]
    counts = np.diff(queried.offsets)
    either = (queried.operator == OR) & (counts > 1)
    # The program of an OR ends with its operator; its words are its cover. An AND has words only.
    programs = np.insert(
        words,
        queried.offsets[1:][either],
        counts[either].astype(np.uint64) << np.uint64(2) | TAG_OR,
    )
    covered, at = places(queried.offsets[:-1], np.where(either, counts, 0))
    flags = np.where(either, BBOX | REPORTS, BBOX | REPORTS | CONJUNCTION).astype(np.int32)
    return controls(
        n,
        op=pa.array(np.full(n, SUBSCRIBE, np.uint8)),
        time=pa.array(times),
        flags=pa.array(flags),
        id=numbered("s", np.arange(first, first + n)),
        program=list_column(offsets_of(counts + either), programs, _WORDS),
        cover=list_column(covered, words[at], _WORDS),
        region=list_column(np.arange(0, 4 * n + 1, 4), queried.bbox.ravel(), _REALS),
    )


def unsubscribe_rows(subscribed: pa.RecordBatch, times: Longs) -> pa.RecordBatch:
    """REGIONS that end these subscriptions, rows of REGIONS.

    They keep words and region, as PS2Stream's requests do (section IV-C), so that a dispatcher
    finds the workers without having remembered them.
    """
    n = subscribed.num_rows
    changed = {
        "op": pa.array(np.full(n, UNSUBSCRIBE, np.uint8)),
        "time": pa.array(times),
    }
    columns = [changed.get(f.name, subscribed[f.name]) for f in REGIONS]
    return pa.RecordBatch.from_arrays(columns, schema=REGIONS)


def top_rows(
    corpus: Corpus, queried: Subscriptions, first: int, times: Longs, maxdist: float
) -> pa.RecordBatch:
    """TOPS of subscriptions with alpha, as `subscribe_rows`."""
    n = len(queried)
    words = word_hashes(corpus)[queried.keywords]
    given = {
        "pos": pa.array(np.arange(n)),
        "op": pa.array(np.full(n, SUBSCRIBE, np.uint8)),
        "time": pa.array(times),
        "flags": pa.array(np.full(n, REPORTS | CONJUNCTION, np.int32)),
        "id": numbered("s", np.arange(first, first + n)),
        "x": pa.array(queried.lon),
        "y": pa.array(queried.lat),
        "k": pa.array(queried.k),
        "keywords": list_column(queried.offsets, words, TOPS.field("keywords").type),
        "alpha": pa.array(queried.alpha),
        "maxdist": pa.array(np.full(n, maxdist)),
    }
    return filled_up(pa.RecordBatch.from_pydict(given), TOPS)


def publish_rows(
    corpus: Corpus, objects: Objects, first: int, times: Longs, needs: Needs = Needs.NOTHING
) -> pa.RecordBatch:
    """OBJECTS ``o{first}``, ``o{first + 1}``, … at these times; perhaps with their counts."""
    words = word_hashes(corpus)[objects.keywords]
    order = np.lexsort((words, rows_of(objects.offsets)))  # ascending within each row
    words = words[order]
    counted = []
    if Needs.COUNTS in needs:  # each word once, as it was drawn
        counts, firsts = np.ones(len(words), np.int32), positions_of(objects.offsets)[order]
        for f, values in zip(COUNT_COLUMNS, (counts, firsts.astype(np.int32)), strict=True):
            counted.append(list_column(objects.offsets, values, f.type))
    return pa.RecordBatch.from_arrays(
        [
            pa.array(np.arange(first, first + len(objects))),
            pa.array(times),
            pa.array(times),
            pa.array(objects.lon),
            pa.array(objects.lat),
            numbered("o", np.arange(first, first + len(objects))),
            list_column(objects.offsets, words, OBJECTS.field("words").type),
            *counted,
        ],
        schema=objects_with(needs & Needs.COUNTS),
    )


def controls(n: int, **columns: pa.Array) -> pa.RecordBatch:
    """REGIONS; columns that are not given have their usual value."""
    given = {"pos": pa.array(np.arange(n)), **columns}
    return filled_up(pa.RecordBatch.from_pydict(given), REGIONS)


def numbered(prefix: str, numbers: Longs) -> pa.Array:
    """Ids: the prefix with each number."""
    names = pc.binary_join_element_wise(prefix, pa.array(numbers).cast(pa.string()), "")
    return names.cast(pa.large_string()).cast(pa.large_binary())
