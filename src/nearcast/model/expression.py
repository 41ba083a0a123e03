"""`where`: a boolean expression over keywords, its truth, and the keywords that cover it.

The nodes live in `nodes`, the notation in `grammar`; this module adds what an expression means, and
is the one to import from.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable
from typing import Any, TypeAlias

from nearcast.model.grammar import parse, plain, render
from nearcast.model.nodes import (
    TRUE,
    And,
    Expression,
    Not,
    Or,
    Postfix,
    Word,
    flatten,
    from_postfix,
    map_words,
    to_postfix,
)

__all__ = [
    "TRUE",
    "And",
    "Expression",
    "Not",
    "Or",
    "Postfix",
    "Word",
    "cover",
    "evaluate",
    "flatten",
    "from_postfix",
    "map_words",
    "parse",
    "plain",
    "render",
    "to_postfix",
]

Keywords: TypeAlias = frozenset[Hashable]


def evaluate(expression: Expression, keywords: Container[Any]) -> bool:
    """Whether an object with these keywords makes the expression true."""
    if isinstance(expression, Word):
        return expression.keyword in keywords
    values: list[bool] = []
    for kind, value in to_postfix(expression):
        if kind == "word":
            values.append(value in keywords)
        elif kind == "not":
            values[-1] = not values[-1]
        else:
            first = len(values) - value
            operands = values[first:]
            del values[first:]
            values.append(all(operands) if kind == "and" else any(operands))
    return values[0]


def cover(expression: Expression, cost: Callable[[Keywords], float] = len) -> Keywords | None:
    """A cheapest set of keywords of which every satisfying object holds at least one.

    `cost` prices a set; by default, the number of its keywords. Cheapest among the sets that the
    shape offers: one part of each And, all parts of each Or. None means that there is no such set:
    an object without any keyword may satisfy the expression. An expression that cannot be true may
    have the empty set.
    """
    values: list[Keywords | None] = []
    for kind, value in _negations_inward(expression):
        if kind == "word":
            values.append(frozenset((value,)))
        elif kind == "absent":
            values.append(None)
        else:
            first = len(values) - value
            operands = values[first:]
            del values[first:]
            covers = [operand for operand in operands if operand is not None]
            if kind == "and":
                values.append(min(covers, key=cost) if covers else None)
            elif len(covers) < len(operands):
                values.append(None)
            else:
                values.append(frozenset().union(*covers))
    return values[0]


def _negations_inward(expression: Expression) -> Postfix:
    """Postfix tokens of the flat negation normal form; ("absent", w) stands for NOT w.

    By De Morgan a negated And is an Or of negated parts, and the other way round. Flat, so that the
    union of a deep Or is made once and not again at each level.
    """
    tokens: Postfix = []
    stack: list[tuple[Expression, bool]] = [(expression, True)]
    while stack:
        node, wanted = stack.pop()
        while isinstance(node, Not):
            node, wanted = node.part, not wanted
        if isinstance(node, Word):
            tokens.append(("word" if wanted else "absent", node.keyword))
        else:
            parts = _signed_parts(node, wanted)
            tokens.append(("and" if isinstance(node, And) is wanted else "or", len(parts)))
            stack.extend(parts)
    tokens.reverse()
    return tokens


def _signed_parts(node: And | Or, wanted: bool) -> list[tuple[Expression, bool]]:
    """The parts of the node, each with the truth wanted of it, its own kind taken apart."""
    is_and = isinstance(node, And) is wanted
    found: list[tuple[Expression, bool]] = []
    stack: list[tuple[Expression, bool]] = [(node, wanted)]
    while stack:
        part, sign = stack.pop()
        while isinstance(part, Not):
            part, sign = part.part, not sign
        if not isinstance(part, Word) and (isinstance(part, And) is sign) is is_and:
            stack.extend((child, sign) for child in reversed(part.parts))
        else:
            found.append((part, sign))
    return found
