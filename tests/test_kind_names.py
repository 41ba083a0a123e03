"""The name of a kind stands in no code but its own: adding a kind changes no other file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from nearcast.kinds import KINDS

SOURCE = Path(__file__).parents[1] / "src" / "nearcast"
# Kinds themselves, and what makes logs of certain kinds.
MAY = ("kinds", "workload", "demo")
WORDS = re.compile(r"[A-Z]?[a-z]+")
# A word of the papers, for what the rest of nearcast calls words.
OF_PAPERS = {"terms": ("routing", "objects")}
NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def words_of(name: str) -> set[str]:
    """The words that an identifier is made of."""
    return {word.lower() for word in WORDS.findall(name)}


def docstrings(tree: ast.Module) -> set[int]:
    """Texts that are documentation."""
    found = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for part in body if isinstance(body, list) else []:
            if isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant):
                found.add(id(part.value))
    return found


def places(path: Path, kinds: set[str]) -> Iterator[str]:
    """Where a file names a kind: texts, and names of what it defines or uses."""
    tree = ast.parse(path.read_text())
    said = docstrings(tree)
    if words_of(path.stem) & kinds:
        yield f"{path}: its name"
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Constant) and id(node) not in said:
            text = node.value.decode("latin-1") if isinstance(node.value, bytes) else node.value
            if isinstance(text, str) and set(re.findall(r"[a-z]+", text)) & kinds:
                yield f"{path}:{line}: {text!r}"
        elif isinstance(node, NAMED) and words_of(node.name) & kinds:
            yield f"{path}:{line}: {node.name}"
        elif isinstance(node, ast.arg | ast.keyword) and words_of(node.arg or "") & kinds:
            yield f"{path}:{line}: argument {node.arg}"
        elif isinstance(node, ast.ImportFrom) and words_of(node.module or "") & kinds:
            yield f"{path}:{line}: from {node.module}"
        elif isinstance(node, ast.alias) and words_of(node.name) & kinds:
            yield f"{path}:{line}: import {node.name}"
        elif isinstance(node, ast.Name) and node.id not in BUILT_IN and words_of(node.id) & kinds:
            yield f"{path}:{line}: {node.id}"
        elif isinstance(node, ast.Attribute) and words_of(node.attr) & kinds:
            owner = ast.unparse(node.value)
            if owner not in ("spark", "session"):  # a table of numbers
                yield f"{path}:{line}: {owner}.{node.attr}"


BUILT_IN = {"range"}  # Python's own


def test_no_other_code_names_a_kind() -> None:
    files = [p for p in SOURCE.rglob("*.py") if p.relative_to(SOURCE).parts[0] not in MAY]
    assert len(files) > 100
    found: list[str] = []
    for path in sorted(files):
        folder = path.relative_to(SOURCE).parts[0]
        found += places(path, {k for k in KINDS if folder not in OF_PAPERS.get(k, ())})
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        'x = kind == "knn"',
        "def match_knn(): ...",
        "class RangeIndex: ...",
        "def f(knn): ...",
        'x = {"range": 1}',
        "a.range_width = 1",
        'data = b"range"',
        "f(knn=1)",
        "from nearcast.kinds.range import plain_query",
        "import nearcast.kinds.knn",
        "from nearcast.index import match_knn",
    ],
)
def test_it_would_be_found(tmp_path: Path, text: str) -> None:
    path = tmp_path / "module.py"
    path.write_text(f'"""Of range and knn."""\n{text}\nfor i in range(3): pass\n')
    assert len(list(places(path, {"range", "knn"}))) == 1
