"""Conditions on words (`where`) as programs of tokens (`kernels.program`), and back."""

from __future__ import annotations

from typing import cast

from nearcast.kernels.program import TAG_AND, TAG_NOT, TAG_OR
from nearcast.model.expression import (
    And,
    Expression,
    Or,
    Word,
    cover,
    from_postfix,
    parse,
    plain,
    to_postfix,
)

_TAGS = {"and": int(TAG_AND), "or": int(TAG_OR), "not": int(TAG_NOT)}
_OPERATORS = {tag: name for name, tag in _TAGS.items()}
Token = str | int  # a keyword, to be hashed later, or an operator
Program = tuple[list[Token], list[Token], bool]


def compile_where(where: str) -> Program:
    """(program, cover, conjunction): see `kernels.program`; the cover of a conjunction is left
    to the index, which knows the rarest of its words. Raises `Invalid`."""
    found = plain(where)
    if found is None:
        return program_of(parse(where))
    conjunction, words = found
    return (words, [], True) if conjunction else _any_of(words)  # type: ignore[return-value]


def _any_of(words: list[str]) -> Program:
    return [*words, len(words) << 2 | _TAGS["or"]], [*sorted(set(words))], False


def program_of(where: Expression) -> Program:
    """The same of any expression."""
    if isinstance(where, Word):
        return [str(where.keyword)], [], True
    if isinstance(where, And | Or):
        words = [str(part.keyword) for part in where.parts if type(part) is Word]
        if len(words) == len(where.parts):
            return ([*words], [], True) if isinstance(where, And) else _any_of(words)
    tokens: list[Token] = [
        value if kind == "word" else value << 2 | _TAGS[kind] for kind, value in to_postfix(where)
    ]
    held = cast("frozenset[str]", cover(where) or frozenset())
    return tokens, sorted(held), False


def expression_of(program: list[int]) -> Expression:
    """The expression over word hashes that a program stands for."""
    if all(token & 3 == 0 for token in program):
        return And(tuple(Word(token) for token in program))
    return from_postfix(
        [(_OPERATORS[token & 3], token >> 2) if token & 3 else ("word", token) for token in program]
    )
