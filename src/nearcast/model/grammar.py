"""How a `where` expression is written: text to tree and back (docs/spec.md section 2).

    either   = both { "OR" both }
    both     = negated { ["AND"] negated }
    negated  = { "NOT" } operand
    operand  = "(" either ")" | '"' characters '"' | word

Operators are capitals only: `and` is a keyword. In quotes, `\\"` and `\\\\` stand for a quote and a
backslash; any other backslash stands for itself.
"""

from __future__ import annotations

import re

from nearcast.model.errors import Invalid
from nearcast.model.nodes import TRUE, And, Expression, Not, Or, Word, flatten
from nearcast.model.words import normalise, tokenise

__all__ = ["parse", "plain", "render"]

_OPERATORS = frozenset({"AND", "OR", "NOT"})

# A quote without its partner is the only character the first three groups cannot take.
_TOKEN = re.compile(r'([()])|"([^"\\]*+(?:\\.[^"\\]*+)*+)"|([^\s()"]+)|(")', re.DOTALL)
_BRACKET, _QUOTED, _WORD = 1, 2, 3
_ESCAPE = re.compile(r'\\(["\\])')


def parse(text: str) -> Expression:
    """The expression that `text` means; blank text is always true. Raises Invalid."""
    if found := plain(text):
        words = [Word(word) for word in found[1]]
        return words[0] if len(words) == 1 else (And if found[0] else Or)(tuple(words))
    parser = _Parser()
    for match in _TOKEN.finditer(text):
        group = match.lastindex or 0
        token = match[group]
        position = match.start() + 1
        if group == _WORD:
            if token in _OPERATORS:
                parser.operator(token, position)
            else:
                parser.operand(_word(token, position))
        elif group == _BRACKET:
            if token == "(":
                parser.open(position)
            else:
                parser.close(position)
        elif group == _QUOTED:
            parser.operand(_quoted(token, position))
        else:
            raise Invalid(f"where: the quote at character {position} is never closed")
    return parser.finish()


def plain(text: str) -> tuple[bool, list[str]] | None:
    """(whether all of them are wanted, or any; words), where `text` is no more than that.

    ASCII words, quoted or not, joined by only AND or only OR: most need no scanner, and no tree.
    """
    if not text.isascii():
        return None
    parts = text.split(" OR ")
    either = len(parts) > 1
    if not either:
        parts = text.split(" AND ")
    words = []
    for part in parts:
        if part.isalnum() and part not in _OPERATORS:
            words.append(part.lower())
            continue
        # A quoted word that holds the operator was split: its pieces have one quote each.
        held = normalise(part[1:-1])
        if not held or part.count('"') != 2 or part[0] + part[-1] != '""' or "\\" in part:
            return None
        words.append(held)
    return not either, words


def _word(token: str, position: int) -> Expression:
    keywords = tokenise(token)
    if not keywords:
        raise Invalid(
            f"where: {token!r} at character {position} holds no letter or digit; "
            "write AND, OR, NOT, or quote it"
        )
    if len(keywords) == 1:
        return Word(keywords[0])
    return And(tuple([Word(keyword) for keyword in keywords]))


def _quoted(token: str, position: int) -> Word:
    keyword = normalise(_ESCAPE.sub(r"\1", token))
    if not keyword:
        raise Invalid(f"where: the quoted keyword at character {position} is empty")
    return Word(keyword)


class _Level:
    """What is open between one pair of parentheses (or outside all of them)."""

    __slots__ = ("both", "either", "negate", "opened")

    def __init__(self, opened: int) -> None:
        self.opened = opened
        self.either: list[Expression] = []
        self.both: list[Expression] = []
        self.negate = False


class _Parser:
    """The open levels, innermost last; each token changes the innermost one only."""

    __slots__ = ("level", "levels", "nested", "pending", "pending_at")

    def __init__(self) -> None:
        self.level = _Level(0)
        self.levels = [self.level]
        # The operator that waits for what comes after it, or nothing.
        self.pending = ""
        self.pending_at = 0
        self.nested = False

    def operator(self, token: str, position: int) -> None:
        level = self.level
        if token == "NOT":
            level.negate = not level.negate
        elif self.pending or not level.both:
            raise Invalid(f"where: {token} at character {position} has nothing before it to join")
        elif token == "OR":
            level.either.append(self._join(And, level.both))
            level.both = []
        self.pending = token
        self.pending_at = position

    def operand(self, value: Expression) -> None:
        level = self.level
        level.both.append(Not(value) if level.negate else value)
        level.negate = False
        self.pending = ""

    def open(self, position: int) -> None:
        self.level = _Level(position)
        self.levels.append(self.level)
        self.pending = ""

    def close(self, position: int) -> None:
        if len(self.levels) == 1:
            raise Invalid(f"where: the ')' at character {position} closes nothing")
        self._no_operator_pending()
        closed = self.levels.pop()
        if not closed.both:
            raise Invalid(f"where: the parentheses at character {closed.opened} are empty")
        self.level = self.levels[-1]
        self.operand(self._value(closed))

    def finish(self) -> Expression:
        self._no_operator_pending()
        if len(self.levels) > 1:
            raise Invalid(f"where: the '(' at character {self.level.opened} is never closed")
        if not self.level.both:
            return TRUE
        value = self._value(self.level)
        # Once at the end: flattening at every ')' would be quadratic in the depth.
        return flatten(value) if self.nested else value

    def _no_operator_pending(self) -> None:
        if self.pending:
            raise Invalid(
                f"where: {self.pending} at character {self.pending_at} has nothing after it"
            )

    def _value(self, level: _Level) -> Expression:
        level.either.append(self._join(And, level.both))
        return self._join(Or, level.either)

    def _join(self, kind: type[And] | type[Or], parts: list[Expression]) -> Expression:
        if len(parts) == 1:
            return parts[0]
        for part in parts:
            if type(part) is kind:
                self.nested = True
        return kind(tuple(parts))


# How tightly a node binds; a part that binds less tightly than its place demands is put in
# parentheses.
_OR_BINDS, _AND_BINDS, _NOT_BINDS = 1, 2, 3


def render(expression: Expression) -> str:
    """Text that parses to an expression of the same meaning.

    Its keywords must be normalised strings. (In rare sequences, such as a capital sharp s before a
    combining dot, NFKC and casefold give something that they would change again; such a keyword
    comes back changed. Send `to_postfix`, not text, from machine to machine.)
    """
    pieces: list[str] = []
    stack: list[str | tuple[Expression, int]] = [(expression, _OR_BINDS)]
    if expression == TRUE:
        return ""
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            pieces.append(item)
            continue
        node, demanded = item
        if isinstance(node, Word):
            pieces.append(_render_keyword(node.keyword))
        elif isinstance(node, Not):
            pieces.append("NOT ")
            stack.append((node.part, _NOT_BINDS))
        elif len(node.parts) == 1:
            stack.append((node.parts[0], demanded))
        elif not node.parts:
            # The grammar has no constants; any keyword makes one.
            pieces.append("(a OR NOT a)" if isinstance(node, And) else "(a AND NOT a)")
        else:
            _push_parts(stack, node, demanded)
    return "".join(pieces)


def _push_parts(stack: list[str | tuple[Expression, int]], node: And | Or, demanded: int) -> None:
    binds, glue = (_AND_BINDS, " AND ") if isinstance(node, And) else (_OR_BINDS, " OR ")
    if binds < demanded:
        stack.append(")")
    for number, part in enumerate(reversed(node.parts)):
        if number:
            stack.append(glue)
        stack.append((part, binds))
    if binds < demanded:
        stack.append("(")


def _render_keyword(keyword: object) -> str:
    text = str(keyword)
    if text not in _OPERATORS and tokenise(text) == [text]:
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
