"""Flat programs are true exactly where the expression they came from is."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nearcast.kernels.hashing import word_hash
from nearcast.kernels.program import all_held, holds, satisfied
from nearcast.model.expression import TRUE, And, Expression, Not, Or, Word, evaluate, parse
from nearcast.wire.programs import program_of

quick = settings(max_examples=30)

LETTERS = "abcdef"

leaves = st.sampled_from(LETTERS).map(Word)


def larger(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(parts, max_size=4).map(tuple)
    return st.one_of(several.map(And), several.map(Or), parts.map(Not))


expressions: st.SearchStrategy[Expression] = st.recursive(leaves, larger, max_leaves=12)
keyword_sets = st.sets(st.sampled_from(LETTERS))


def column(words: set[str]) -> Any:
    return np.array(sorted(word_hash(w) for w in words), np.uint64)


def tokens(where: Expression) -> tuple[Any, bool]:
    program, _, conjunction = program_of(where)
    flat = [word_hash(t) if isinstance(t, str) else t for t in program]
    return np.array(flat, np.uint64), conjunction


@quick
@given(expressions, keyword_sets, st.integers(0, 40), st.integers(0, 3))
@example(TRUE, set(), 0, 0)
@example(parse("NOT a"), set(), 0, 1)
@example(Or(()), {"a"}, 20, 0)
def test_satisfied(where: Expression, words: set[str], others: int, skipped: int) -> None:
    program, conjunction = tokens(where)
    # Programs and words are parts of larger arrays; more than 16 words are searched by halves.
    heap = np.concatenate([np.full(skipped, 7, np.uint64), program, np.full(2, 7, np.uint64)])
    held = column(words | {f"other{n}" for n in range(others)})
    padded = np.concatenate([column({"a", "b"}), held, column(set(LETTERS))])
    start, stop = 2, 2 + len(held)
    stack = np.zeros(len(program) + 1, np.uint8)
    right = evaluate(where, words)
    assert satisfied(heap, skipped, len(program), padded, start, stop, stack) == right
    if conjunction:
        assert all_held(heap, skipped, len(program), padded, start, stop) == right


@quick
@given(st.sets(st.integers(1, 200), max_size=60), st.integers(0, 201))
def test_holds(words: set[int], word: int) -> None:
    held = np.array(sorted(words), np.uint64)
    assert holds(held, 0, len(held), np.uint64(word)) == (word in words)


def test_a_long_expression_needs_no_deep_stack() -> None:
    where = parse(" OR ".join(f"w{n}" for n in range(3000)) + " OR NOT z")
    program, _ = tokens(where)
    stack = np.zeros(len(program), np.uint8)
    assert satisfied(program, 0, len(program), column({"w2999", "z"}), 0, 2, stack)
    assert not satisfied(program, 0, len(program), column({"z"}), 0, 1, stack)
