"""Routing objects by the QT-tree (SSTD, section 4.2): each to one leaf.

By place at a spatial node; at a textual one to the child that has the smallest workload increment
by it, whose keyword list it may change.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.hashing import mix64
from nearcast.kernels.ragged import frozen
from nearcast.model.jit import njit
from nearcast.routing.sstd.cells import LEVELS, unit_of
from nearcast.routing.sstd.cost_model import covered
from nearcast.routing.sstd.qt_tree import LEAF, SPATIAL, Numbers, QtTree, Reals, Words

_ONE = np.uint8(1)


class Lists(NamedTuple):
    """One router's copy of what changes as objects are routed, with a directory of the words.

    Hashes of words are spread evenly: of n ascending ones, the highest log n bits of a hash lead
    to within a few of its place.
    """

    objects: Reals
    h_srq: Reals
    h_skq: Reals
    held: NDArray[np.uint8]
    directory: Numbers  # where the words begin that have these highest bits; behind them, the end
    first: Numbers  # [n]: where the directory of a node begins
    shift: Words  # [n]: how many bits are not looked at


def lists_of(tree: QtTree) -> Lists:
    """A copy that may change."""
    bits = np.maximum(np.diff(tree.word_offsets), 2) - 1
    bits = np.array([int(n).bit_length() for n in bits])
    parts = []
    for node, width in enumerate(bits.tolist()):
        begin, end = tree.word_offsets[node : node + 2].tolist()
        lowest = np.arange(1 << width, dtype=np.uint64) << np.uint64(64 - width)
        parts.append(begin + np.searchsorted(tree.words[begin:end], lowest))
        parts.append(np.array([end]))
    first = np.concatenate([[0], np.cumsum((1 << bits) + 1)[:-1]])
    return Lists(
        tree.objects.copy(),
        tree.h_srq.copy(),
        tree.h_skq.copy(),
        tree.held.copy(),
        np.concatenate(parts).astype(np.int64),
        first.astype(np.int64),
        (64 - bits).astype(np.uint64),
    )


@njit(lean=True)
def _find(t: QtTree, s: Lists, node: int, word: np.uint64) -> int:
    """Where a word of a textual node stands; -1: no query there has it."""
    bucket = s.first[node] + np.int64(word >> s.shift[node])
    for at in range(s.directory[bucket], s.directory[bucket + 1]):
        if t.words[at] == word:
            return at
    return -1


def route_objects(
    tree: QtTree,
    lists: Lists,
    x: Reals,
    y: Reals,
    word_offsets: Numbers,
    words: Words,
    learn: bool = False,
) -> Numbers:
    """The leaf of each object; with `learn`, each object changes the keyword lists on its way."""
    return _route(tree, lists, frozen(x), frozen(y), frozen(word_offsets), frozen(words), learn)


@njit
def _route(
    t: QtTree, s: Lists, x: Reals, y: Reals, offsets: Numbers, words: Words, learn: bool
) -> Numbers:
    out = np.empty(len(x), np.int64)
    bring = np.empty((2, 4))
    for i in range(len(x)):
        across = unit_of(x[i], t.bounds[0], t.bounds[2])
        up = unit_of(y[i], t.bounds[1], t.bounds[3])
        spread = mix64(np.uint64(across) << np.uint64(LEVELS) | np.uint64(up))
        node = 0
        while t.kind[node] != LEAF:
            if t.kind[node] == SPATIAL:
                shift = LEVELS - 1 - np.int64(t.level[node])
                node = t.child[node] + 2 * ((up >> shift) & 1) + ((across >> shift) & 1)
                continue
            first, stop = offsets[i], offsets[i + 1]
            spread = _spread(spread, words, first, stop)
            c = _least_increment(t, s, node, words, first, stop, spread, bring)
            if learn:
                _take_in(t, s, node, c, words, first, stop, bring)
            node = t.child[node] + c
        out[i] = node
    return out


@njit(lean=True)
def _spread(seed: np.uint64, words: Words, first: int, stop: int) -> np.uint64:
    """Bits that decide between equal children, by the object alone; others at each node."""
    for at in range(first, stop):
        seed = mix64(seed ^ words[at])
    return mix64(seed)


@njit(lean=True)
def _least_increment(
    t: QtTree,
    s: Lists,
    node: int,
    words: Words,
    first: int,
    stop: int,
    spread: np.uint64,
    bring: Reals,
) -> int:
    """The child of a textual node whose workload grows least by an object (4.1.2).

    Of equal ones that whose H grows least, since it holds most of the object's words already; of
    those one that the object's own bits choose. `bring` is filled with what the object adds to
    H_srq and H_skq of each child.
    """
    for c in range(4):
        bring[0, c] = 0.0
        bring[1, c] = 0.0
    for at in range(first, stop):
        w = _find(t, s, node, words[at])
        if w < 0:
            continue
        for c in range(4):
            if not s.held[w] >> c & _ONE:
                bring[0, c] += t.p_srq[w]
                bring[1, c] += t.p_skq[w]
    ties, best, growth = 0, np.inf, np.inf
    which = 0
    for c in range(4):
        more = _increment(t, s, node, t.child[node] + c, bring[0, c], bring[1, c])
        grown = bring[0, c] + bring[1, c]
        if more < best or (more == best and grown < growth):
            best, growth, ties, which = more, grown, 0, 0
        if more == best and grown == growth:
            which |= c << (2 * ties)
            ties += 1
    chosen = np.int64(spread % np.uint64(ties))
    return which >> (2 * chosen) & 3


@njit(lean=True)
def _increment(t: QtTree, s: Lists, node: int, c: int, srq: float, skq: float) -> float:
    """By how much equation 2 grows for child `c`, but for what is the same for all children."""
    more = 0.0
    if t.price_srq[node] > 0.0:
        more += t.price_srq[node] * _grown(s.objects[c], s.h_srq[c], srq, t.lengths[0])
    if t.price_skq[node] > 0.0:
        more += t.price_skq[node] * _grown(s.objects[c], s.h_skq[c], skq, t.lengths[1])
    return more


@njit(lean=True)
def _grown(n: float, h: float, more: float, lengths: Reals) -> float:
    """(n + 1)·covered(h + more) - n·covered(h), exact where `more` is 0."""
    old = covered(h, lengths)
    new = covered(min(h + more, 1.0), lengths) if more > 0.0 else old
    return new + n * (new - old)


@njit(lean=True)
def _take_in(
    t: QtTree, s: Lists, node: int, c: int, words: Words, first: int, stop: int, bring: Reals
) -> None:
    """Update the keyword list of child `c` by an object."""
    child = t.child[node] + c
    s.objects[child] += 1.0
    s.h_srq[child] = min(s.h_srq[child] + bring[0, c], 1.0)
    s.h_skq[child] = min(s.h_skq[child] + bring[1, c], 1.0)
    for at in range(first, stop):
        w = _find(t, s, node, words[at])
        if w >= 0:
            s.held[w] |= _ONE << c
