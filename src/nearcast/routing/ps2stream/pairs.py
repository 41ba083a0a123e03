"""How much is looked at for an object: queries posted under one of its words that surround it.

Definition 1 has |O|·|Q|, every object against every query of a worker. An index looks at those
that share a word and a place with it, and these are many in a city and few elsewhere: workers with
equal products had up to 2.8 times the mean to read. So objects are drawn anew from the sample, each
as often as it costs in proportion; then |O| alone counts what is read, and c1 is not needed.
"""

from __future__ import annotations

import numpy as np

from nearcast.kernels.ragged import frozen
from nearcast.model.jit import njit
from nearcast.routing.grid.survey import Numbers, Reals

_LEAST = 0.05  # of the mean weight: a drawn object stands for at most 20
_GOLDEN = (5.0**0.5 - 1.0) / 2.0  # its multiples are spread evenly


def pairs_of(
    x: Reals, y: Reals, held: tuple[Numbers, Numbers], boxes: Reals, terms: Numbers
) -> Numbers:
    """Of each object, how many of `boxes` are posted under one of its terms and hold it.

    `held`: (offsets, terms) of the objects; `boxes[i]` is posted under `terms[i]`.
    """
    order = np.argsort(terms, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(terms, minlength=_most(held, terms)))])
    return _count(frozen(x), frozen(y), *held, frozen(boxes[order]), starts.astype(np.int64))


def _most(held: tuple[Numbers, Numbers], terms: Numbers) -> int:
    return int(max(held[1].max(initial=-1), terms.max(initial=-1))) + 1


@njit
def _count(
    x: Reals, y: Reals, offsets: Numbers, terms: Numbers, boxes: Reals, starts: Numbers
) -> Numbers:
    out = np.zeros(len(x), np.int64)
    for i in range(len(x)):
        for at in range(offsets[i], offsets[i + 1]):
            term = terms[at]
            for b in range(starts[term], starts[term + 1]):
                across = boxes[b, 0] <= x[i] and x[i] <= boxes[b, 2]
                out[i] += across and boxes[b, 1] <= y[i] and y[i] <= boxes[b, 3]
    return out


def weights_of(costs: Reals) -> Reals:
    """Weights to draw by: what each costs, but none less than `_LEAST` of the mean.

    One that weighs next to nothing is seldom drawn, but then stands for so many that it alone
    decides what words the sample has.
    """
    mean = float(costs.mean())
    return np.maximum(costs, _LEAST * mean) if mean > 0.0 else np.ones(len(costs))


def drawn(weights: Reals) -> Numbers:
    """As many rows as there are, each about as often as its weight says, the same every time.

    One in each of n equal parts of the sum, at a place that differs from part to part: always in
    the middle would miss rows of small weight that alternate with others.
    """
    n = len(weights)
    if n == 0:
        return np.empty(0, np.int64)
    ends = np.cumsum(weights)
    within = (np.arange(n) + 0.5) * _GOLDEN % 1.0  # never at an end, or row 0 is always drawn
    at = (np.arange(n) + within) * (ends[-1] / n)
    return np.minimum(np.searchsorted(ends, at, side="right"), n - 1).astype(np.int64)
