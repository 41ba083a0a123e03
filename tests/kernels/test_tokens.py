"""Columns of text and keyword entries become the words that the model says."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nearcast.kernels.hashing import word_hash
from nearcast.kernels.tokens import word_columns
from nearcast.model.standing import Needs
from nearcast.model.words import keyword_counts
from nearcast.wire.carried import WordTexts
from nearcast.wire.words import carried_words, hash_words, object_words

quick = settings(max_examples=30)

Thing = tuple[str | None, list[str]]  # text, keywords of an object

ODD = ["ß", "ﬁ", "Ａ", "İ", "e\u0301", "é", "😀", "\0", " ", "_", "-", "A", "z", "9", "²", "٣"]
ODD += ["\u200d", "\u00a0", "\u3000", "\x1f", "ſ", "Ⅷ", "ǅ", "。", "K", "ﷺ", "\u0345", "ª"]

ascii_texts = st.text(st.characters(max_codepoint=127), max_size=30)
odd_texts = st.lists(st.sampled_from(ODD), max_size=10).map("".join)
any_texts = st.one_of(ascii_texts, odd_texts, st.text(max_size=10))


def things(texts: st.SearchStrategy[str]) -> st.SearchStrategy[list[Thing]]:
    one = st.tuples(st.one_of(st.none(), texts), st.lists(texts, max_size=4))
    return st.lists(one, max_size=5)


def wanted(objects: list[Thing]) -> list[list[int]]:
    return [sorted({word_hash(w) for w in keyword_counts(*o)}) for o in objects]


def columns(objects: list[Thing]) -> tuple[pa.Array, pa.Array, Any]:
    text = pa.array([text for text, _ in objects], pa.large_string())
    entries = pa.array([k for _, keywords in objects for k in keywords], pa.large_string())
    return text, entries, np.cumsum([0, *(len(k) for _, k in objects)]).astype(np.int64)


def flat(strings: list[str]) -> tuple[Any, Any]:
    encoded = [s.encode() for s in strings]
    offsets = np.cumsum([0, *(len(s) for s in encoded)]).astype(np.int64)
    return np.frombuffer(b"".join(encoded), np.uint8), offsets


@quick
@given(things(ascii_texts))
def test_ascii(objects: list[Thing]) -> None:
    text, text_offsets = flat([text or "" for text, _ in objects])
    entries, entry_offsets = flat([k for _, keywords in objects for k in keywords])
    lists = np.cumsum([0, *(len(k) for _, k in objects)]).astype(np.int64)
    offsets, words = word_columns(text, text_offsets, entries, entry_offsets, lists)
    cut = [words[a:b].tolist() for a, b in pairwise(offsets.tolist())]
    assert cut == wanted(objects)


@quick
@given(things(any_texts))
@example([("Straße ﬁ Ａ", ["STRASSE", " ß "]), (None, []), ("İ", ["i̇"])])
@example([("e\u0301 é É", ["\u3000É\u00a0"]), ("a\0b😀c", ["\0", "😀", ""])])
def test_any_text(objects: list[Thing]) -> None:
    assert object_words(*columns(objects)).to_pylist() == wanted(objects)


def counted(objects: list[Thing]) -> list[dict[str, int]]:
    """Keywords and counts by way of the columns, as they first occur in each object."""
    (words, counts, firsts), table = carried_words(*columns(objects), Needs.COUNTS | Needs.TEXTS)
    texts = WordTexts(table)
    assert words.to_pylist() == wanted(objects)
    assert list(texts) == sorted({w for own in words.to_pylist() for w in own})
    rows = zip(words.to_pylist(), counts.to_pylist(), firsts.to_pylist(), strict=True)
    in_order = [sorted(zip(f, w, c, strict=True)) for w, c, f in rows]
    assert all([f for f, _, _ in own] == list(range(len(own))) for own in in_order)
    return [{texts[w]: c for _, w, c in own} for own in in_order]


@quick
@given(things(any_texts))
@example([("Straße ﬁ Ａ", ["STRASSE", " ß "]), (None, []), ("İ", ["i̇"])])
@example([("b a b", ["A", " c ", "B", ""]), (None, ["c"]), ("", []), ("9", [])])
def test_counts_and_texts(objects: list[Thing]) -> None:
    right = [keyword_counts(*o) for o in objects]
    found = counted(objects)
    assert found == right
    assert [list(own) for own in found] == [list(own) for own in right]


@pytest.mark.parametrize("needs", [Needs.COUNTS, Needs.TEXTS])
def test_what_is_not_needed_is_not_there(needs: Needs) -> None:
    found, texts = carried_words(*columns([("a b a", ["c"])]), needs)
    assert len(found) == (3 if needs is Needs.COUNTS else 1)
    assert (texts is None) == (needs is Needs.COUNTS)


def test_a_word_without_a_text_is_missing() -> None:
    _, table = carried_words(*columns([("a b", [])]), Needs.TEXTS)
    texts = WordTexts(table)
    assert {texts[word] for word in texts} == {"a", "b"}
    for missing in (word_hash("c"), 0, 2**64 - 1):
        assert missing not in texts


@pytest.mark.parametrize("n", [24, 25, 26, 300])
def test_many_words_are_sorted_and_distinct(n: int, rng: np.random.Generator) -> None:
    words = [f"w{i}" for i in rng.integers(0, n, n)]
    objects: list[Thing] = [(" ".join(words), words[: n // 2]), ("a b a", ["A"])]
    assert object_words(*columns(objects)).to_pylist() == wanted(objects)
    assert counted(objects) == [keyword_counts(*o) for o in objects]


def test_one_letter_words_fill_all_the_room_there_is() -> None:
    objects: list[Thing] = [("a b c d e", ["f", "g"]), ("h", []), ("i j", ["k"])]
    assert object_words(*columns(objects)).to_pylist() == wanted(objects)
    assert counted(objects) == [keyword_counts(*o) for o in objects]


def test_a_part_of_a_column() -> None:
    objects: list[Thing] = [("x y", ["z"]), ("a ß", ["b"]), ("c", [])]
    text, entries, _ = columns(objects)
    found = object_words(text[1:], entries[1:], np.array([0, 1, 1]))
    assert found.to_pylist() == wanted(objects[1:])


def test_objects_without_any_text_column() -> None:
    nothing = pa.nulls(2, pa.large_string())
    found = object_words(nothing, pa.array(["a"], pa.large_string()), np.array([0, 0, 1]))
    assert found.to_pylist() == wanted([(None, []), (None, ["a"])])


@quick
@given(st.lists(any_texts, max_size=5))
def test_hash_words_is_word_hash_of_each(words: list[str]) -> None:
    assert hash_words(words).tolist() == [word_hash(w) for w in words]
