"""Hashes against FNV-1a and the finaliser of MurmurHash3, written out in plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nearcast.kernels.hashing import (
    hash_bytes,
    hash_ids,
    hash_word_column,
    mix64,
    mix64_array,
    word_hash,
)

quick = settings(max_examples=30)

MASK = 2**64 - 1
# FNV-1a of these bytes is 0, and mixing keeps 0.
ZERO = bytes([0xD5, 0x6B, 0xB9, 0x53, 0x42, 0x87, 0x08, 0x36])

texts = st.text(max_size=12)
numbers64 = st.integers(0, MASK)


def plain_mix(h: int) -> int:
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        h = ((h ^ (h >> 33)) * factor) & MASK
    return h ^ (h >> 33)


def plain_hash(data: bytes) -> int:
    h = 0xCBF29CE484222325
    for byte in data:
        h = ((h ^ byte) * 0x100000001B3) & MASK
    return plain_mix(h)


def column(strings: list[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    offsets = np.cumsum([0, *(len(s) for s in strings)]).astype(np.int64)
    return np.frombuffer(b"".join(strings), np.uint8), offsets


@quick
@given(numbers64)
def test_mix64(value: int) -> None:
    assert int(mix64(np.uint64(value))) == plain_mix(value)


@quick
@given(st.lists(numbers64, max_size=5))
def test_mix64_array(values: list[int]) -> None:
    mixed = mix64_array(np.array(values, np.uint64))
    assert mixed.dtype == np.uint64
    assert mixed.tolist() == [plain_mix(v) for v in values]


@quick
@given(st.binary(max_size=20), st.integers(0, 5), st.integers(0, 5))
def test_hash_of_a_part(data: bytes, before: int, after: int) -> None:
    padded = np.frombuffer(b"x" * before + data + b"y" * after, np.uint8)
    assert int(hash_bytes(padded, before, before + len(data))) == plain_hash(data)


@quick
@given(texts)
def test_word_hash_clears_the_tag_bits(word: str) -> None:
    hashed = word_hash(word)
    assert hashed == (plain_hash(word.encode()) & ~3 or 4)
    assert hashed & 3 == 0
    assert hashed != 0


@quick
@given(st.lists(texts, max_size=6))
def test_a_column_hashes_like_its_words(words: list[str]) -> None:
    hashed = hash_word_column(*column([w.encode() for w in words]))
    assert hashed.tolist() == [word_hash(w) for w in words]


@quick
@given(st.lists(texts, max_size=6))
def test_ids_hash_to_all_64_bits(ids: list[str]) -> None:
    hashed = hash_ids(*column([i.encode() for i in ids]))
    assert hashed.tolist() == [plain_hash(i.encode()) or 1 for i in ids]


def test_no_word_and_no_id_hashes_to_zero() -> None:
    assert plain_hash(ZERO) == 0
    assert hash_ids(*column([ZERO])).tolist() == [1]
    assert hash_word_column(*column([ZERO])).tolist() == [4]


def test_half_a_surrogate_pair_has_a_hash() -> None:
    assert word_hash("\ud800") == word_hash("\ud800")


@pytest.mark.parametrize("word", ["", "a", "ab", "ba", "ß", "hot dog"])
def test_short_words_spread(word: str) -> None:
    others = {word_hash(w) for w in ("", "a", "ab", "ba", "ß", "hot dog") if w != word}
    assert word_hash(word) not in others
