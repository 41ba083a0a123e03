"""The k nearest objects of O_init, for the ball B(s) of a new subscription (DkM-SKS 3.2, 4.4)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.model.jit import njit
from nearcast.routing.dkm.counting import first_from
from nearcast.routing.dkm.places import Box, Places
from nearcast.routing.dkm.vocabulary import WantedWords


@njit
def _offer(
    distances: NDArray[np.float64], items: NDArray[np.int32], found: int, d: float, item: int
) -> int:
    """Put an object into the ascending k best unless it is there or too far; how many there are."""
    k = len(distances)
    for t in range(found):
        if items[t] == item:
            return found
    at = found if found < k else k - 1
    while at > 0 and distances[at - 1] > d:
        distances[at], items[at] = distances[at - 1], items[at - 1]
        at -= 1
    distances[at], items[at] = d, item
    return min(found + 1, k)


@njit
def reach(p: Places, words: NDArray[np.int32], k: int, x: float, y: float) -> float:
    """Distance of the k-th nearest object that has one of `words`; infinite if there are fewer.

    Each list is walked from x outwards, to both sides, while |dx| alone is less than the k-th
    distance so far: about sqrt(k n) of n objects. Euclidean in the coordinates, in any space: it
    makes a cost, never an answer.
    """
    if k > p.offsets[-1] - p.offsets[-2]:
        return np.inf
    distances, items = np.full(k, np.inf), np.empty(k, np.int32)
    found = 0
    for word in words:
        first, last = p.offsets[word], p.offsets[word + 1]
        right = first_from(p.x, first, last, x)
        left = right - 1
        while True:
            dl = x - p.x[left] if left >= first else np.inf
            dr = p.x[right] - x if right < last else np.inf
            if min(dl, dr) >= distances[k - 1]:
                break
            t = left if dl <= dr else right
            left, right = left - (t == left), right + (t == right)
            d = np.hypot(p.x[t] - x, p.y[t] - y)
            if d < distances[k - 1]:
                found = _offer(distances, items, found, d, p.items[t])
    return distances[k - 1]


@njit
def ball_box(
    p: Places, wanted: WantedWords, s: int, k: int, point: NDArray[np.float64], box: Box
) -> None:
    """Write the rectangle R_n around B(s), by the kNN of s among O_init, to `box`."""
    words = wanted.words[wanted.offsets[s] : wanted.offsets[s + 1]]
    radius = reach(p, words, max(k, 1), point[0], point[1])
    box[0], box[1] = point[0] - radius, point[1] - radius
    box[2], box[3] = point[0] + radius, point[1] + radius
