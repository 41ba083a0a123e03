"""`where` expressions as flat programs over word hashes, and their evaluation.

A program is uint64 tokens in postfix order; the two lowest bits are the tag: 0 a word (its hash),
1 AND of n, 2 OR of n, 3 NOT, n standing in the other bits. An empty program is true. A program of
words only (no operator) is their conjunction: the common case, checked without a stack.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.model.jit import njit

Words = NDArray[np.uint64]

TAG_WORD = np.uint64(0)
TAG_AND = np.uint64(1)
TAG_OR = np.uint64(2)
TAG_NOT = np.uint64(3)
TAG_MASK = np.uint64(3)
_TWO = np.uint64(2)


@njit(lean=True)
def holds(words: Words, start: int, stop: int, word: np.uint64) -> bool:
    """Whether the ascending `words[start:stop]` hold `word`."""
    if stop - start <= 16:
        for i in range(start, stop):
            if words[i] == word:
                return True
        return False
    lo, hi = start, stop
    while lo < hi:
        mid = (lo + hi) >> 1
        if words[mid] < word:
            lo = mid + 1
        else:
            hi = mid
    return lo < stop and words[lo] == word


@njit(lean=True)
def all_held(heap: Words, first: int, length: int, words: Words, start: int, stop: int) -> bool:
    """Whether every word of the program `heap[first:first+length]` is in `words[start:stop]`."""
    for i in range(first, first + length):
        if not holds(words, start, stop, heap[i]):
            return False
    return True


@njit(lean=True)
def satisfied(
    heap: Words,
    first: int,
    length: int,
    words: Words,
    start: int,
    stop: int,
    stack: NDArray[np.uint8],
) -> bool:
    """Evaluate any program; `stack` is scratch at least as long as the program."""
    top = 0
    plain = True
    for i in range(first, first + length):
        token = heap[i]
        tag = token & TAG_MASK
        if tag == TAG_WORD:
            stack[top] = holds(words, start, stop, token)
            top += 1
            continue
        plain = False
        if tag == TAG_NOT:
            stack[top - 1] = 1 - stack[top - 1]
            continue
        n = np.int64(token >> _TWO)
        value = np.uint8(tag == TAG_AND)
        for j in range(top - n, top):
            if tag == TAG_AND:
                value &= stack[j]
            else:
                value |= stack[j]
        top = top - n
        stack[top] = value
        top += 1
    if plain:
        for j in range(top):
            if not stack[j]:
                return False
        return True
    return stack[0] == 1
