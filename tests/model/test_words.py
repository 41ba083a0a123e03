"""Text to keywords."""

import sys
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from nearcast.model.words import keyword_counts, normalise, tokenise


def split_by_definition(text: str) -> list[str]:
    """docs/spec.md section 2, character by character."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(c if c.isalnum() else " " for c in folded).split(" ")


@given(st.text())
def test_tokens_are_what_the_definition_says(text: str) -> None:
    assert tokenise(text) == [token for token in split_by_definition(text) if token]


def test_the_pattern_agrees_with_isalnum_on_all_of_unicode() -> None:
    differ = [
        hex(code)
        for code in range(sys.maxunicode + 1)
        if tokenise(chr(code)) != [token for token in split_by_definition(chr(code)) if token]
    ]
    assert differ == []


def test_normalise_takes_an_entry_whole() -> None:
    assert normalise("  Open\u00a0Late! ") == "open late!"
    assert normalise("\uff32\uff21\uff2d\uff25\uff2e") == "ramen"
    assert normalise("Stra\u00dfe") == "strasse"
    assert normalise(" \u3000 ") == ""


def test_tokenise_splits_at_underscore_and_keeps_digits() -> None:
    assert tokenise("Ramen_42, open\u2014late; ramen") == ["ramen", "42", "open", "late", "ramen"]


def test_counts_add_text_and_entries() -> None:
    counts = keyword_counts("Ramen, ramen late", ["RAMEN", "Open late", "", "  ", "open late"])
    assert counts == {"ramen": 3, "late": 1, "open late": 2}


def test_counts_of_nothing() -> None:
    assert keyword_counts(None, []) == {}
    assert keyword_counts("", ["!"]) == {"!": 1}
