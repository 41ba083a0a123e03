"""The pins of requirements/ against the ranges of pyproject.toml, and what a client installs."""

from __future__ import annotations

import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]


def pins() -> dict[str, str]:
    found = {}
    for name in ("run.txt", "dev.txt"):
        for line in (ROOT / "requirements" / name).read_text().splitlines():
            if "==" in line and not line.startswith("#"):
                package, _, version = line.partition("==")
                found[str(canonicalize_name(package))] = version
    return found


def test_every_dependency_is_pinned_within_its_range() -> None:
    pinned = pins()
    for text in [*PROJECT["dependencies"], *(r for extra in EXTRAS.values() for r in extra)]:
        wanted = Requirement(text)
        if wanted.name == "nearcast":
            assert wanted.extras <= set(EXTRAS)
            continue
        assert pinned[canonicalize_name(wanted.name)] in wanted.specifier, text


def test_a_client_installs_no_spark() -> None:
    installed = [*PROJECT["dependencies"], *EXTRAS["client"]]
    assert {Requirement(text).name for text in installed} == {"msgspec", "httpx"}
