"""How text and keyword lists become keywords (docs/spec.md section 2)."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

__all__ = ["keyword_counts", "normalise", "tokenise"]

# In a str pattern `\w` is exactly "str.isalnum or underscore", so that this is a run of characters
# for which str.isalnum holds; a test walks through all of Unicode to keep it so.
_RUN = re.compile(r"[^\W_]+")


def _fold(text: str) -> str:
    # For ASCII, NFKC is the identity and casefold is lower: most text takes this path.
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", text).casefold()


def normalise(word: str) -> str:
    """The keyword that a whole entry of `keywords` (or a quoted word) stands for; may be empty."""
    return _fold(word).strip()


def tokenise(text: str) -> list[str]:
    """The keywords of free text, in order, repeats kept."""
    return _RUN.findall(_fold(text))


def keyword_counts(text: str | None, keywords: Iterable[str]) -> dict[str, int]:
    """How often each keyword occurs in an object's text and keyword list together (its tf)."""
    counts = Counter(() if text is None else tokenise(text))
    for entry in keywords:
        keyword = normalise(entry)
        if keyword:
            counts[keyword] += 1
    return dict(counts)
