"""Text to expression and back."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nearcast.model.errors import Invalid
from nearcast.model.expression import (
    TRUE,
    And,
    Expression,
    Not,
    Or,
    Word,
    evaluate,
    parse,
    render,
)

A, B, C, D = Word("a"), Word("b"), Word("c"), Word("d")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", TRUE),
        (" \t\n", TRUE),
        ("a", A),
        ("A", A),
        (" a ", A),
        ("a AND b", And((A, B))),
        ("a b", And((A, B))),
        ("a OR b", Or((A, B))),
        ("a AND b AND c", And((A, B, C))),
        ("a OR b OR c", Or((A, B, C))),
        ("a AND b OR c", Or((And((A, B)), C))),
        ("a OR b c", Or((A, And((B, C))))),
        ("a AND (b OR c)", And((A, Or((B, C))))),
        ("a(b OR c)d", And((A, Or((B, C)), D))),
        ("NOT a", Not(A)),
        ("NOT NOT a", A),
        ("NOT NOT NOT a", Not(A)),
        ("a NOT b", And((A, Not(B)))),
        ("a OR NOT b AND c", Or((A, And((Not(B), C))))),
        ("NOT(a OR b) c", And((Not(Or((A, B))), C))),
        ("((a))", A),
        ("(a AND b) AND (c AND d)", And((A, B, C, D))),
        ("a OR (b OR (c OR d))", Or((A, B, C, D))),
        ("NOT (a AND b) AND c", And((Not(And((A, B))), C))),
        ("foo-bar", And((Word("foo"), Word("bar")))),
        ("NOT foo-bar", Not(And((Word("foo"), Word("bar"))))),
        ("x OR foo-bar", Or((Word("x"), And((Word("foo"), Word("bar")))))),
        ("x foo-bar", And((Word("x"), Word("foo"), Word("bar")))),
        ("and or not", And((Word("and"), Word("or"), Word("not")))),
        ("a And b", And((A, Word("and"), B))),
        ("AND-a", And((Word("and"), A))),
        ('"AND"', Word("and")),
        ('"Open  Late"', Word("open  late")),
        ('"a"b', And((A, B))),
        (r'"say \"hi\" \\ \n"', Word(r'say "hi" \ \n')),
        ('"(&)"', Word("(&)")),
        ("\uff21\uff2e\uff24", Word("and")),
        ("a\u3000OR\u00a0b", Or((A, B))),
        ("\u201cramen\u201d", Word("ramen")),
        ("\u00bd", And((Word("1"), Word("2")))),
    ],
)
def test_parse(text: str, expected: Expression) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("(a", "'(' at character 1 is never closed"),
        ("a (b (c)", "'(' at character 3 is never closed"),
        ("a)", "')' at character 2 closes nothing"),
        ("a ()", "parentheses at character 3 are empty"),
        ("(a OR) b", "OR at character 4 has nothing after it"),
        ("AND", "AND at character 1 has nothing before it"),
        ("OR a", "OR at character 1 has nothing before it"),
        ("a AND", "AND at character 3 has nothing after it"),
        ("a OR OR b", "OR at character 6 has nothing before it"),
        ("a AND OR b", "OR at character 7 has nothing before it"),
        ("a AND AND b", "AND at character 7 has nothing before it"),
        ("(AND a)", "AND at character 2 has nothing before it"),
        ("NOT", "NOT at character 1 has nothing after it"),
        ("NOT NOT", "NOT at character 5 has nothing after it"),
        ("NOT OR a", "OR at character 5 has nothing before it"),
        ("(NOT) a", "NOT at character 2 has nothing after it"),
        ("a & b", "'&' at character 3 holds no letter or digit; write AND, OR, NOT, or quote it"),
        ('a ""', "quoted keyword at character 3 is empty"),
        ('" "', "quoted keyword at character 1 is empty"),
        ('a "b', "quote at character 3 is never closed"),
        ('"a\\"', "quote at character 1 is never closed"),
    ],
)
def test_refusals_say_where(text: str, part: str) -> None:
    with pytest.raises(Invalid) as refused:
        parse(text)
    assert part in str(refused.value)
    assert str(refused.value).startswith("where: ")
    assert "\n" not in str(refused.value)


@given(st.text(alphabet='aB1 ()"\\&-ANDORT\u00e9\u3000', max_size=30))
def test_any_text_parses_or_is_refused_in_one_line(text: str) -> None:
    try:
        expression = parse(text)
    except Invalid as refused:
        assert str(refused).count("\n") == 0
    else:
        assert parse(render(expression)) == expression


QUOTED = ['"X & y"', '"OR"', '"a OR b"', '"c AND d"', '"e\\""', '" "', '""']


@given(st.lists(st.sampled_from(["a", "B", "c9", "AND", "OR", "NOT", *QUOTED]), max_size=7))
@example(["a", "OR", '"X & y"'])
@example(['"a OR b"', "OR", '"c AND d"'])
def test_the_quick_path_and_the_scanner_agree(words: list[str]) -> None:
    # A double space sends the same words through the scanner.
    def outcome(text: str) -> Expression | None:
        try:
            return parse(text)
        except Invalid:
            return None

    assert outcome(" ".join(words)) == outcome("  ".join(words) + "  ")


KEYWORDS = ("a", "b", "open late", 'x"\\', "(", "and", "é")
WORDS = st.sampled_from(KEYWORDS).map(Word)


def grown(parts: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    several = st.lists(parts, max_size=3).map(tuple)
    return several.map(And) | several.map(Or) | parts.map(Not)


EXPRESSIONS: st.SearchStrategy[Expression] = st.recursive(WORDS, grown, max_leaves=12)


@given(EXPRESSIONS, st.sets(st.sampled_from(KEYWORDS)))
@example(Or(()), {"a"})
@example(Not(TRUE), {"a"})
@example(And((TRUE, Or((TRUE, A)))), set())
def test_render_keeps_the_meaning(expression: Expression, keywords: set[str]) -> None:
    again = parse(render(expression))
    assert evaluate(again, keywords) == evaluate(expression, keywords)


def test_render_writes_no_needless_parentheses() -> None:
    for text in (
        "",
        "a",
        "a AND b",
        "a AND (b OR c)",
        "NOT (a OR b) AND c",
        'NOT "x y" OR a AND b',
    ):
        assert render(parse(text)) == text


def test_render_shows_hashes_too() -> None:
    assert render(And((Word(17), Not(Word(-3))))) == '17 AND NOT "-3"'
