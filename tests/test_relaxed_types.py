"""mypy is relaxed for compiled code alone."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MYPY = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
RELAXED = [m for o in MYPY["overrides"] if "disable_error_code" in o for m in o["module"]]


@pytest.mark.parametrize("module", RELAXED)
def test_only_modules_with_compiled_functions_are_relaxed(module: str) -> None:
    assert "*" not in module
    path = ROOT / "src" / f"{module.replace('.', '/')}.py"
    assert "\n@njit" in path.read_text()
