"""Every token of texts and keyword entries and where it stands, for kinds that need more of
objects than the set of their words: how often each occurs, in which order, and its text.

The strings are those of `kernels.tokens`, by the same rules.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.hashing import HASH_START, hash_step, word_of
from nearcast.kernels.tokens import ALNUM, LOWER, SPACE, Bytes, Offsets
from nearcast.model.jit import njit

Words = NDArray[np.uint64]
Numbers = NDArray[np.int32]


@njit
def _split_text(
    data: Bytes, first: int, last: int, words: Words, start: Offsets, stop: Offsets, top: int
) -> int:
    """Append every token of `data[first:last]`; the new top."""
    h = HASH_START
    begin = -1
    for i in range(first, last + 1):
        if i < last and ALNUM[data[i]]:
            h = hash_step(h, LOWER[data[i]])
            begin = i if begin < 0 else begin
        elif begin >= 0:
            words[top], start[top], stop[top] = word_of(h), begin, i
            top += 1
            h = HASH_START
            begin = -1
    return top


@njit
def _trim(data: Bytes, first: int, last: int) -> tuple[int, int]:
    """`first:last` without outer white space."""
    while first < last and SPACE[data[first]]:
        first += 1
    while last > first and SPACE[data[last - 1]]:
        last -= 1
    return first, last


@njit
def _hash_lower(data: Bytes, first: int, last: int) -> np.uint64:
    h = HASH_START
    for i in range(first, last):
        h = hash_step(h, LOWER[data[i]])
    return word_of(h)


@njit
def token_places(
    text: Bytes,
    text_offsets: Offsets,
    entries: Bytes,
    entry_offsets: Offsets,
    list_offsets: Offsets,
) -> tuple[Offsets, Words, Offsets, Offsets]:
    """Tokens of n objects as they occur: offsets int64[n+1], hashes, and where each stands.

    The arguments are those of `tokens.word_columns`. Token t is at `start[t]:stop[t]`, counted
    through `text` and on through `entries`.
    """
    n = len(text_offsets) - 1
    most = (text_offsets[n] - text_offsets[0]) // 2 + n + len(entry_offsets)
    words = np.empty(most, np.uint64)
    start, stop = np.empty(most, np.int64), np.empty(most, np.int64)
    offsets = np.zeros(n + 1, np.int64)
    top = 0
    for i in range(n):
        top = _split_text(text, text_offsets[i], text_offsets[i + 1], words, start, stop, top)
        for j in range(list_offsets[i], list_offsets[i + 1]):
            first, last = _trim(entries, entry_offsets[j], entry_offsets[j + 1])
            if first < last:
                words[top] = _hash_lower(entries, first, last)
                start[top], stop[top] = first + len(text), last + len(text)
                top += 1
        offsets[i + 1] = top
    return offsets, words[:top].copy(), start[:top].copy(), stop[:top].copy()


@njit
def count_words(
    token_offsets: Offsets, tokens: Words, word_offsets: Offsets, words: Words
) -> tuple[Numbers, Numbers]:
    """(how often, as which of its object's words it comes first), for each of `words`.

    `words` are the distinct tokens of each object, ascending, as `tokens.word_columns` has them.
    """
    counts, firsts = np.zeros(len(words), np.int32), np.zeros(len(words), np.int32)
    for i in range(len(token_offsets) - 1):
        distinct = 0
        own = words[word_offsets[i] : word_offsets[i + 1]]
        for t in range(token_offsets[i], token_offsets[i + 1]):
            at = word_offsets[i] + np.searchsorted(own, tokens[t])
            if counts[at] == 0:
                firsts[at] = distinct
                distinct += 1
            counts[at] += 1
    return counts, firsts


@njit
def copy_lower(text: Bytes, entries: Bytes, start: Offsets, stop: Offsets) -> tuple[Offsets, Bytes]:
    """(offsets, bytes) of the tokens at `start:stop` (`token_places`), in lower case."""
    offsets = np.zeros(len(start) + 1, np.int64)
    for t in range(len(start)):
        offsets[t + 1] = offsets[t] + stop[t] - start[t]
    data = np.empty(offsets[-1], np.uint8)
    for t in range(len(start)):
        for i in range(stop[t] - start[t]):
            at = start[t] + i
            data[offsets[t] + i] = LOWER[text[at] if at < len(text) else entries[at - len(text)]]
    return offsets, data
