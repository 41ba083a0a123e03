"""What an expression means, and that no depth is too deep."""

import pickle
from collections.abc import Callable, Hashable
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.model.errors import Invalid
from nearcast.model.expression import (
    TRUE,
    And,
    Expression,
    Not,
    Or,
    Word,
    cover,
    evaluate,
    flatten,
    from_postfix,
    map_words,
    parse,
    render,
    to_postfix,
)

KEYWORDS = ("a", "b", "c", "d")


def grown(parts: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    several = st.lists(parts, max_size=3).map(tuple)
    return several.map(And) | several.map(Or) | parts.map(Not)


EXPRESSIONS: st.SearchStrategy[Expression] = st.recursive(
    st.sampled_from(KEYWORDS).map(Word), grown, max_leaves=12
)


def true_by_definition(expression: Expression, keywords: set[str]) -> bool:
    match expression:
        case Word(keyword):
            return keyword in keywords
        case Not(part):
            return not true_by_definition(part, keywords)
        case And(parts):
            return all(true_by_definition(part, keywords) for part in parts)
        case Or(parts):
            return any(true_by_definition(part, keywords) for part in parts)


def all_objects() -> list[set[str]]:
    return [set(some) for n in range(len(KEYWORDS) + 1) for some in combinations(KEYWORDS, n)]


@given(EXPRESSIONS)
def test_evaluate_is_the_definition(expression: Expression) -> None:
    for keywords in all_objects():
        assert evaluate(expression, keywords) == true_by_definition(expression, keywords)


@given(EXPRESSIONS)
def test_every_satisfying_object_holds_a_keyword_of_the_cover(expression: Expression) -> None:
    covering = cover(expression)
    satisfying = [keywords for keywords in all_objects() if evaluate(expression, keywords)]
    if covering is None:
        return
    assert all(covering & keywords for keywords in satisfying)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        ("a", {"a"}),
        ("NOT a", None),
        ("NOT NOT a", {"a"}),
        ("a AND b", {"a"}),
        ("a OR b", {"a", "b"}),
        ("(a OR b) AND c", {"c"}),
        ("a AND NOT b", {"a"}),
        ("a OR NOT b", None),
        ("NOT (a OR b)", None),
        ("NOT (NOT a OR b)", {"a"}),
        ("NOT (NOT a AND NOT b)", {"a", "b"}),
        ("NOT (NOT (a OR b) OR c)", {"a", "b"}),
    ],
)
def test_cover(text: str, expected: set[str] | None) -> None:
    assert cover(parse(text)) == expected


def test_cover_of_what_is_never_true_is_empty() -> None:
    assert cover(Or(())) == frozenset()
    assert cover(Not(TRUE)) == frozenset()


def test_cover_asks_the_cost() -> None:
    frequency = {"a": 100, "b": 3, "c": 4, "d": 1}

    def cost(keywords: frozenset[Hashable]) -> float:
        return sum(frequency[str(keyword)] for keyword in keywords)

    assert cover(parse("a AND (b OR c)"), cost) == frozenset({"b", "c"})
    assert cover(parse("a AND (b OR c) AND d"), cost) == frozenset({"d"})


@given(EXPRESSIONS)
def test_postfix_and_pickle_give_the_same_tree_back(expression: Expression) -> None:
    assert from_postfix(to_postfix(expression)) == expression
    assert pickle.loads(pickle.dumps(expression)) == expression
    assert hash(from_postfix(to_postfix(expression))) == hash(expression)


def test_equality_is_of_the_tree() -> None:
    assert And((Word("a"),)) != Or((Word("a"),))
    assert Word("a") != "a"
    assert repr(parse("a AND NOT b")) == "<where 'a' 'b' not/1 and/2>"


@pytest.mark.parametrize(
    "tokens",
    [[], [("and", 1)], [("not", 1)], [("word", "a"), ("word", "b")], [("xor", 0)], [("or", -1)]],
)
def test_broken_postfix_is_refused(tokens: list[tuple[str, object]]) -> None:
    with pytest.raises(Invalid):
        from_postfix(tokens)


@given(EXPRESSIONS)
def test_map_words_keeps_the_shape(expression: Expression) -> None:
    hashed = map_words(expression, KEYWORDS.index)
    assert map_words(hashed, KEYWORDS.__getitem__) == expression


@given(EXPRESSIONS)
def test_flatten_keeps_the_meaning_and_leaves_nothing_nested(expression: Expression) -> None:
    flat = flatten(expression)
    for keywords in all_objects():
        assert evaluate(flat, keywords) == evaluate(expression, keywords)
    stack: list[Expression] = [flat]
    while stack:
        node = stack.pop()
        if isinstance(node, Not):
            stack.append(node.part)
        elif not isinstance(node, Word):
            assert all(type(part) is not type(node) for part in node.parts)
            stack.extend(node.parts)


SHAPES: dict[str, Callable[[int], str]] = {
    "and": lambda n: " AND ".join(["a"] * n),
    "or": lambda n: " OR ".join(["a"] * n),
    "side by side": lambda n: "a " * n,
    "not": lambda n: "NOT " * n + "a",
    "parentheses": lambda n: "(" * n + "a" + ")" * n,
    "and in and, to the left": lambda n: "(" * n + "a" + " b)" * n,
    "or in or, to the right": lambda n: "(b OR " * n + "a" + ")" * n,
    "and in or": lambda n: "(b OR (c AND " * (n // 2) + "a" + "))" * (n // 2),
    "and in not": lambda n: "(NOT (b AND " * (n // 2) + "a" + "))" * (n // 2),
    "or in not": lambda n: "NOT (b OR " * n + "a" + ")" * n,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_hundred_thousand_terms_do_not_overflow(shape: str) -> None:
    expression = parse(SHAPES[shape](100_000))
    assert evaluate(expression, {"a", "b", "c"}) in (True, False)
    cover(expression)
    assert len(render(expression)) > 0


@pytest.mark.parametrize("shape", SHAPES)
def test_deep_expressions_are_values_like_all_others(shape: str) -> None:
    expression = parse(SHAPES[shape](20_000))
    assert parse(render(expression)) == expression
    assert pickle.loads(pickle.dumps(expression)) == expression
    assert len({expression, map_words(expression, str)}) == 1
    assert repr(expression).startswith("<where ")


def test_nested_terms_are_flat() -> None:
    expression = parse("(" * 1000 + "a" + " b)" * 1000)
    assert isinstance(expression, And)
    assert len(expression.parts) == 1001
