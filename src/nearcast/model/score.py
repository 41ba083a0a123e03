"""The score of an object for a `topk` subscription, operation by operation (SPEC section 4).

`near` and `blend` are the score; plain Python and kernels call them. `cosine` is the definition of
the other part in plain Python; kernels have the same sums over their own columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from nearcast.model.jit import njit

__all__ = ["blend", "cosine", "near", "plain_sum"]


@njit(lean=True, forceinline=True)
def near(distance: float, maxdist: float) -> float:
    """How near: 1 at the place itself, 0 from `maxdist` on."""
    return min(max(1.0 - distance / maxdist, 0.0), 1.0)


@njit(lean=True, forceinline=True)
def blend(alpha: float, near: float, cosine: float) -> float:
    """The score."""
    return alpha * near + (1.0 - alpha) * cosine


def cosine(wanted: Mapping[Any, float], held: Mapping[Any, float]) -> float:
    """The cosine of two weighted sets of keywords: a subscription's, as listed, and an object's.

    `wanted` holds idf, `held` tf·idf in the order of first occurrence.
    """
    wanted_norm = math.sqrt(plain_sum(w * w for w in wanted.values()))
    held_norm = math.sqrt(plain_sum(w * w for w in held.values()))
    return plain_sum(
        (weight / wanted_norm) * (held[word] / held_norm)
        for word, weight in wanted.items()
        if word in held
    )


def plain_sum(values: Iterable[float]) -> float:
    """The plain sum, in order: `sum` of newer Pythons makes up for what rounding lost."""
    total = 0.0
    for value in values:
        total += value
    return total
