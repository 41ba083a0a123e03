"""Scratch of a round of matching, and what several of its steps share (`index.regions.match`)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.index.regions.lists import ROOT
from nearcast.wire.tables import ObjectColumns

LOOKUPS_PER_ROUND = 1024
_HITS = 2048  # of one list, at a time: they and their entries stay in the second cache
SEEN = 4096  # places for subscriptions that one object has met, a power of two
MASK = 8  # words of 64 bits, a power of two
ZERO, ONE = np.uint64(0), np.uint64(1)
# bits of `Search.unsure`: what is still to be done with the matches of an object
EXACT = 1  # some need the exact check
TWICE = 2  # some may be there twice


class Search(NamedTuple):
    """Scratch for a round: the words of its objects, their look-ups, and what these meet."""

    word: NDArray[np.uint64]
    ordinal: NDArray[np.int32]  # the number of that word here; -1: no subscription uses it
    levels: NDArray[np.uint64]  # bits of the levels where it has lists
    start: NDArray[np.int64]  # the first word of each object, and the end of the last
    number: NDArray[np.int32]  # per look-up: which object of the visit
    key: NDArray[np.uint64]
    row: NDArray[np.int64]  # of the list found
    cell: NDArray[np.uint64]  # of one object, at each level in use
    level: NDArray[np.uint64]
    hit: NDArray[np.uint64]  # entries of one list whose box holds the object: places in the pool
    seen: NDArray[np.uint64]  # subscriptions that the object in hand has met: `hits.is_new`
    stamp: NDArray[np.uint64]  # [1]: of that object in `seen`
    mask: NDArray[np.uint64]  # a bit for each word of that object, by their numbers
    begin: NDArray[np.int64]  # the first match of each object, and the end of the last
    unsure: NDArray[np.int64]  # per object: EXACT, TWICE


class Visit(NamedTuple):
    """Objects in the order in which they are matched, which may be any."""

    objects: ObjectColumns  # in that order
    number: NDArray[np.int64]  # of each of them in the log


class Entries(NamedTuple):
    """The entries of all lists, as one run of numbers."""

    pool: NDArray[np.int32]
    boxes: NDArray[np.float32]  # the same memory


class Round(NamedTuple):
    """The objects [first, stop) of the visit, and how many lists their words lead to."""

    first: int
    stop: int
    lists: int


class Found(NamedTuple):
    """Matches; a slot that needs the exact check is written as ~slot until then."""

    order: NDArray[np.int64]  # numbers of objects
    slot: NDArray[np.int64]


def make_search(longest: int) -> Search:
    """Scratch for objects of up to `longest` words."""
    words = LOOKUPS_PER_ROUND + longest + 1
    lookups = LOOKUPS_PER_ROUND + (longest + 1) * (ROOT + 1)
    return Search(
        np.empty(words, np.uint64),
        np.empty(words, np.int32),
        np.empty(words, np.uint64),
        np.empty(words + 1, np.int64),
        np.empty(lookups, np.int32),
        np.empty(lookups, np.uint64),
        np.empty(lookups, np.int64),
        np.empty(ROOT + 1, np.uint64),
        np.empty(ROOT + 1, np.uint64),
        np.empty(_HITS, np.uint64),
        np.zeros(SEEN, np.uint64),
        np.zeros(1, np.uint64),
        np.zeros(MASK, np.uint64),
        np.empty(words + 1, np.int64),
        np.empty(words, np.int64),
    )
