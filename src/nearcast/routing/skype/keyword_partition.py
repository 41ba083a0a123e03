"""Algorithm 4 of DSkype: the vocabulary cut into runs of words of similar cost.

Words are ordered by their frequency. A set W costs C(W) = N(W)·p(W) (equation 16): subscriptions
with a word of it times the share of messages with one. For sets that are no power of two, both
sides cost the same for each of their sets.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.routing.skype.words import Hashes, Longs, Ragged, WordSets, sets_of_rows


def vocabulary(subscriptions: Ragged, messages: Ragged) -> tuple[Hashes, Longs]:
    """(words, ascending; how many messages hold each)."""
    words = np.unique(np.concatenate([subscriptions.words, messages.words]))
    held, counts = np.unique(messages.words, return_counts=True)
    frequency = np.zeros(len(words), np.int64)
    frequency[np.searchsorted(words, held)] = counts
    return words, frequency


def keyword_partition(subscriptions: Ragged, messages: Ragged, sets: int) -> WordSets:
    """At most so many sets, by a sample of messages with each word once.

    By prefixes: `subscriptions` then have the words of their prefixes alone; give the vocabulary
    of whole ones by `messages`, or have what is missing dealt by hash.
    """
    words, frequency = vocabulary(subscriptions, messages)
    order = np.lexsort((words, frequency))
    place = np.empty(len(words), np.int64)
    place[order] = np.arange(len(words))
    held = _Side(place[np.searchsorted(words, subscriptions.words)], subscriptions.rows)
    seen = _Side(place[np.searchsorted(words, messages.words)], messages.rows)
    number = np.zeros(len(words), np.int64)  # by place
    total = max(len(messages.offsets) - 1, 1)

    def cut(low: int, high: int, first: int, sets: int) -> None:
        few = (sets + 1) // 2
        at = best_cut(held, seen, low, high, total, few, sets) if sets > 1 else None
        if at is None:
            number[low:high] = first
            return
        cut(low, at, first, few)
        cut(at, high, first + few, sets - few)

    cut(0, len(words), 0, sets)
    return WordSets(words, number[place], frequency)


class _Side:
    """Rows as places of words in the order of frequency."""

    def __init__(self, places: Longs, rows: Longs) -> None:
        order = np.lexsort((places, rows))
        self.places, self.rows = places[order], rows[order]

    def overlapping(self, low: int, high: int) -> tuple[Longs, Longs]:
        """For each cut behind low, low + 1, …: rows with a word before it, and behind it."""
        some = (self.places >= low) & (self.places < high)
        rows, places = self.rows[some], self.places[some] - low
        new = np.append(True, rows[1:] != rows[:-1]) if len(rows) else np.zeros(0, bool)
        first = np.bincount(places[new], minlength=high - low)
        last = np.bincount(places[np.append(new[1:], True)] if len(rows) else places,
                           minlength=high - low)  # fmt: skip
        return np.cumsum(first), np.sum(last) - np.cumsum(last)


def best_cut(
    held: _Side, seen: _Side, low: int, high: int, messages: int, few: int, sets: int
) -> int | None:
    """The place in [low, high) before which there is the cost of `few` of the sets, nearly.

    Each side keeps a word for each of its sets, if there are as many. None: there is one word.
    """
    if high - low < 2:
        return None
    (n_left, n_right), (m_left, m_right) = held.overlapping(low, high), seen.overlapping(low, high)
    left, right = n_left * (m_left / messages), n_right * (m_right / messages)
    uneven = np.abs((sets - few) * left - few * right)[:-1]
    first = min(few, high - low - 1) - 1
    last = max(high - low - (sets - few), first + 1)
    return low + 1 + first + int(np.argmin(uneven[first:last]))


def costs(
    sets: WordSets, subscriptions: Ragged, messages: Ragged, number: int
) -> NDArray[np.float64]:
    """Equation 16 for each of `number` sets: N(W)·p(W)."""
    n, m = (
        np.bincount(sets_of_rows(sets, side, number)[1], minlength=number)
        for side in (subscriptions, messages)
    )
    return np.asarray(n * (m / max(len(messages.offsets) - 1, 1)))


def variance(cost: NDArray[np.float64]) -> float:
    """Equation 17."""
    return float(np.mean((cost - np.mean(cost)) ** 2))
