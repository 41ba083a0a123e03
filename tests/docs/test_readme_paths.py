"""The pages that guide a reader through the repository name only files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")
FOLDERS = ("src/", "tests/", "docs/", "bench/", "scripts/")

FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)#\s]+)")


def named_paths(text: str) -> list[str]:
    """Repository paths in backticks or links; `docs/papers/<key>.md` names no one file."""
    prose = FENCE.sub("", text)
    words = [found.split()[0] for found in CODE.findall(prose) if found.strip()]
    paths = (word.removeprefix("./") for word in words + LINK.findall(prose))
    return [path for path in paths if path.startswith(FOLDERS) and "<" not in path]


def missing_paths(text: str, root: Path) -> list[str]:
    """Those of the named paths that match nothing below `root` (`*` may match any file)."""
    return [path for path in named_paths(text) if not any(root.glob(path.rstrip("/")))]


@pytest.mark.parametrize("page", PAGES)
def test_page_names_only_files_that_exist(page: str) -> None:
    path = ROOT / page
    assert path.is_file(), f"{page} is missing"
    missing = missing_paths(path.read_text(encoding="utf-8"), ROOT)
    assert not missing, f"{page} names what is not there: {missing}"


def test_paths_are_found_in_backticks_and_links() -> None:
    text = "`src/a.py`, `scripts/setup --help`, [b](docs/b.md#part), `docs/<key>.md`, `a/b`"
    assert named_paths(text) == ["src/a.py", "scripts/setup", "docs/b.md"]


def test_fenced_code_is_not_prose() -> None:
    assert named_paths("```\n`src/example.py`\n```\n`src/real.py`\n") == ["src/real.py"]


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "here.py").touch()
    text = "`src/here.py` `src/*.py` `src/` `src/gone.py` `docs/*.md`"
    assert missing_paths(text, tmp_path) == ["src/gone.py", "docs/*.md"]
