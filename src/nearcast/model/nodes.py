"""The tree that a `where` expression is, and its flat twin in postfix order.

Nothing here recurses, comparing, hashing, printing and pickling included: an expression may be as
deep as a line is long, and a deep one must not take a worker down.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from nearcast.model.errors import Invalid

__all__ = [
    "TRUE",
    "And",
    "Expression",
    "Not",
    "Or",
    "Postfix",
    "Word",
    "flatten",
    "from_postfix",
    "map_words",
    "to_postfix",
]

Postfix: TypeAlias = list[tuple[str, Any]]
"""Tokens `("word", keyword)`, `("and", n)`, `("or", n)`, `("not", 1)`, operands first."""


class _Node:
    """What all nodes share, by way of the postfix form because that needs no recursion."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Node):
            return NotImplemented
        return to_postfix(self) == to_postfix(other)

    def __hash__(self) -> int:
        return hash(tuple(to_postfix(self)))

    def __repr__(self) -> str:
        tokens = (repr(v) if kind == "word" else f"{kind}/{v}" for kind, v in to_postfix(self))
        return f"<where {' '.join(tokens)}>"

    def __reduce__(self) -> tuple[Callable[[Postfix], _Node], tuple[Postfix]]:
        return from_postfix, (to_postfix(self),)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Word(_Node):
    """True for objects that hold the keyword: a normalised string, or a hash that stands for it."""

    keyword: Hashable


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class And(_Node):
    """True when all parts are; with no part at all, always."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Or(_Node):
    """True when one part is; with no part at all, never."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Not(_Node):
    """True when its part is not."""

    part: Expression


Expression: TypeAlias = Word | And | Or | Not

TRUE = And(())
"""The expression of a query without `where`."""


def to_postfix(expression: _Node) -> Postfix:
    """The tokens of the tree, operands before their operator."""
    # Operator first and operands from the last to the first, then the whole list turned around.
    tokens: Postfix = []
    stack: list[Any] = [expression]
    while stack:
        node = stack.pop()
        kind = type(node)
        if kind is Word:
            tokens.append(("word", node.keyword))
        elif kind is Not:
            tokens.append(("not", 1))
            stack.append(node.part)
        else:
            tokens.append(("and" if kind is And else "or", len(node.parts)))
            stack.extend(node.parts)
    tokens.reverse()
    return tokens


def from_postfix(tokens: Iterable[tuple[str, Any]]) -> Expression:
    """The tree of postfix tokens, shaped as they say."""
    values: list[Expression] = []
    for kind, value in tokens:
        if kind == "word":
            values.append(Word(value))
            continue
        first = len(values) - (1 if kind == "not" else value)
        if kind not in ("and", "or", "not") or not 0 <= first <= len(values):
            raise Invalid(f"where: postfix token {(kind, value)!r} has no operands to work on")
        operands = tuple(values[first:])
        del values[first:]
        if kind == "not":
            values.append(Not(operands[0]))
        else:
            values.append(And(operands) if kind == "and" else Or(operands))
    if len(values) != 1:
        raise Invalid(f"where: postfix tokens make {len(values)} expressions instead of one")
    return values[0]


def map_words(expression: Expression, f: Callable[[Any], Hashable]) -> Expression:
    """The same expression with each keyword replaced by `f(keyword)`."""
    return from_postfix(
        (kind, f(value) if kind == "word" else value) for kind, value in to_postfix(expression)
    )


def flatten(expression: Expression) -> Expression:
    """The same expression with no And directly in an And and no Or directly in an Or."""
    tokens: Postfix = []
    stack: list[Expression] = [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, Word):
            tokens.append(("word", node.keyword))
        elif isinstance(node, Not):
            tokens.append(("not", 1))
            stack.append(node.part)
        else:
            parts = _joined_parts(node)
            tokens.append(("and" if isinstance(node, And) else "or", len(parts)))
            stack.extend(parts)
    tokens.reverse()
    return from_postfix(tokens)


def _joined_parts(node: And | Or) -> list[Expression]:
    """The parts of the node, those of its own kind replaced by their parts, in order."""
    found: list[Expression] = []
    stack: list[Expression] = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, And | Or) and type(part) is type(node):
            stack.extend(reversed(part.parts))
        else:
            found.append(part)
    return found
