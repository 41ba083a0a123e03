"""Text and keyword columns to sorted, distinct word hashes, straight from Arrow's buffers.

The compiled step knows ASCII only, where NFKC changes nothing and casefold is `lower`. Callers
replace other strings by their normal form first (`wire.words`): letters and digits beyond ASCII
are then marked by being non-ASCII bytes, which count as part of a word.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.hashing import HASH_START, hash_step, word_of
from nearcast.model.jit import njit

Bytes = NDArray[np.uint8]
Offsets = NDArray[np.int64]


def _char_classes() -> tuple[Bytes, Bytes]:
    lower = np.arange(256, dtype=np.uint8)
    lower[ord("A") : ord("Z") + 1] += 32
    alnum = np.zeros(256, np.uint8)
    for c in range(128):
        alnum[c] = chr(c).isalnum()
    alnum[128:] = 1
    return lower, alnum


LOWER, ALNUM = _char_classes()
SPACE = np.array([c < 128 and chr(c).isspace() for c in range(256)], np.uint8)


@njit
def _close(words: NDArray[np.uint64], start: int, stop: int) -> int:
    """Sort `words[start:stop]` and drop repeats; the new stop."""
    if stop - start > 24:
        words[start:stop] = np.sort(words[start:stop])
    else:
        for i in range(start + 1, stop):
            w = words[i]
            j = i - 1
            while j >= start and words[j] > w:
                words[j + 1] = words[j]
                j -= 1
            words[j + 1] = w
    kept = start
    for i in range(start, stop):
        if i == start or words[i] != words[kept - 1]:
            words[kept] = words[i]
            kept += 1
    return kept


@njit
def _split_text(data: Bytes, start: int, stop: int, words: NDArray[np.uint64], top: int) -> int:
    """Append the hash of every token of `data[start:stop]`; the new top of `words`."""
    h = HASH_START
    inside = False
    for i in range(start, stop):
        c = data[i]
        if ALNUM[c]:
            h = hash_step(h, LOWER[c])
            inside = True
        elif inside:
            words[top] = word_of(h)
            top += 1
            h = HASH_START
            inside = False
    if inside:
        words[top] = word_of(h)
        top += 1
    return top


@njit
def _whole(data: Bytes, start: int, stop: int) -> np.uint64:
    """Hash of `data[start:stop]` in lower case without outer white space; 0 if nothing is left."""
    while start < stop and SPACE[data[start]]:
        start += 1
    while stop > start and SPACE[data[stop - 1]]:
        stop -= 1
    if start == stop:
        return np.uint64(0)
    h = HASH_START
    for i in range(start, stop):
        h = hash_step(h, LOWER[data[i]])
    return word_of(h)


@njit
def word_columns(
    text: Bytes,
    text_offsets: Offsets,
    entries: Bytes,
    entry_offsets: Offsets,
    list_offsets: Offsets,
) -> tuple[Offsets, NDArray[np.uint64]]:
    """Distinct words of n objects: offsets int64[n+1] and hashes uint64, ascending in each object.

    `text` holds n strings; `entries` holds the keyword entries, object i having the entries
    `list_offsets[i]:list_offsets[i+1]`.
    """
    n = len(text_offsets) - 1
    most = (text_offsets[n] - text_offsets[0]) // 2 + n + len(entry_offsets)
    words = np.empty(most, np.uint64)
    offsets = np.empty(n + 1, np.int64)
    offsets[0] = 0
    top = 0
    for i in range(n):
        first = top
        top = _split_text(text, text_offsets[i], text_offsets[i + 1], words, top)
        for j in range(list_offsets[i], list_offsets[i + 1]):
            word = _whole(entries, entry_offsets[j], entry_offsets[j + 1])
            if word:
                words[top] = word
                top += 1
        top = _close(words, first, top)
        offsets[i + 1] = top
    return offsets, words[:top].copy()
