"""Which side lengths give a wanted number of matches per object: found by sampling."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nearcast.workload.corpus import Corpus, Objects
from nearcast.workload.places import units_a_metre
from nearcast.workload.ragged import Floats, Longs, expand, offsets_of, rows_of
from nearcast.workload.subscriptions import Subscriptions, range_and_subscriptions

_WANTED_PAIRS = 4_000
_MAX_SAMPLE = 30_000
_CHUNK = 2_000
SIDE_RATIO = 10.0


def calibrated_sides(
    corpus: Corpus, n_subscriptions: int, rng: np.random.Generator, matches_per_object: float = 1.0
) -> tuple[float, float]:
    """The side range (low, high) in metres, 1 : 10, for about this many matches per object.

    It holds for `range_and_subscriptions`. A pair of a subscription and an object that agree in
    keywords matches from a certain ``high`` on; the answer is the quantile of these thresholds
    over all pairs of two samples, so no search over side lengths is needed.
    """
    if n_subscriptions < 1 or matches_per_object <= 0:
        raise ValueError("n_subscriptions must be at least 1 and matches_per_object positive")
    size = int(np.sqrt(_WANTED_PAIRS * n_subscriptions / matches_per_object))
    size = min(max(size, 1_000), _MAX_SAMPLE)
    objects = corpus.objects(size, rng)
    # Unit squares: only centre and keywords count here, the side is drawn as a share of high.
    subscriptions = range_and_subscriptions(corpus, size, rng, (1.0, 1.0))
    share = rng.uniform(1.0 / SIDE_RATIO, 1.0, size)
    postings = _Postings.of(objects, corpus.vocabulary)
    found = []
    for start in range(0, size, _CHUNK):
        rows = np.arange(start, min(start + _CHUNK, size), dtype=np.int64)
        pairs = postings.agreeing(subscriptions, rows)
        found.append(_sides(corpus, subscriptions, objects, *pairs) / share[pairs[0]])
    thresholds = np.concatenate(found)
    wanted = round(matches_per_object * size * size / n_subscriptions)
    if wanted > len(thresholds):
        most = len(thresholds) * n_subscriptions / size / size
        raise ValueError(
            f"{n_subscriptions} subscriptions on {corpus.name} cannot give {matches_per_object} "
            f"matches an object: boxes of any size give {most:.3g}; use more subscriptions"
        )
    high = float(np.partition(thresholds, max(wanted, 1) - 1)[max(wanted, 1) - 1])
    return high / SIDE_RATIO, high


def _sides(corpus: Corpus, subs: Subscriptions, objects: Objects, s: Longs, o: Longs) -> Floats:
    """The side in metres from which on subscription ``s[i]``'s square holds object ``o[i]``."""
    east, north = units_a_metre(corpus.planar, subs.lat[s])
    dx = np.abs(objects.lon[o] - subs.lon[s]) / east
    dy = np.abs(objects.lat[o] - subs.lat[s]) / north
    return 2.0 * np.maximum(dx, dy)


@dataclass(frozen=True, slots=True, eq=False)
class _Postings:
    """The objects of a sample by keyword: word w is in ``rows[starts[w] : starts[w + 1]]``."""

    starts: Longs
    rows: Longs
    pairs: Longs  # object * vocabulary + word, ascending: "does the object hold the word?"

    @staticmethod
    def of(objects: Objects, vocabulary: int) -> _Postings:
        rows = rows_of(objects.offsets)
        starts = offsets_of(np.bincount(objects.keywords, minlength=vocabulary))
        order = np.argsort(objects.keywords, kind="stable")
        return _Postings(starts, rows[order], np.sort(rows * vocabulary + objects.keywords))

    def agreeing(self, subs: Subscriptions, rows: Longs) -> tuple[Longs, Longs]:
        """All pairs (subscription of ``rows``, object) where the object holds every keyword.

        Candidates come from the shortest list among a subscription's keywords.
        """
        counts = np.diff(subs.offsets)[rows]
        local = offsets_of(counts)
        words = subs.keywords[expand(subs.offsets[rows], counts)]
        lengths = np.diff(self.starts)[words]
        shortest = np.lexsort((lengths, rows_of(local)))[local[:-1]]
        found = lengths[shortest]
        sub = np.repeat(np.arange(len(rows), dtype=np.int64), found)
        obj = self.rows[expand(self.starts[words[shortest]], found)]
        vocabulary = len(self.starts) - 1
        for place in range(int(counts.max(initial=0))):
            # A row without this many keywords is checked for its last one again.
            word = words[local[sub] + np.minimum(place, counts[sub] - 1)]
            wanted = obj * vocabulary + word
            at = np.minimum(np.searchsorted(self.pairs, wanted), len(self.pairs) - 1)
            held = self.pairs[at] == wanted
            sub, obj = sub[held], obj[held]
        return rows[sub], obj
