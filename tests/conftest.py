"""What every test may use: a printed seed, Hypothesis profiles, one Spark session."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import hypothesis
import numpy as np
import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_SEED = 20_260_101

# Compiling a kernel inside the first example would break any deadline.
hypothesis.settings.register_profile("dev", deadline=None, print_blob=True)
hypothesis.settings.register_profile("ci", deadline=None, print_blob=True, derandomize=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "dev")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, default=DEFAULT_SEED, help="seed of the `rng` fixture")


def pytest_report_header(config: pytest.Config) -> str:
    return f"seed: {config.getoption('--seed')} (repeat with --seed)"


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as `spark` whatever starts a JVM, so that no test can forget to say so."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) or item.get_closest_marker("cluster"):
            item.add_marker(pytest.mark.spark)


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """A generator of this test's own: the same numbers whichever tests ran before."""
    return np.random.default_rng(request.config.getoption("--seed"))


@contextmanager
def _in_memory() -> Iterator[Path]:
    """A folder that is quick to write to."""
    shared = Path("/dev/shm")
    place = shared if os.access(shared, os.W_OK) else None
    with TemporaryDirectory(prefix="nearcast-test-", dir=place) as folder:
        yield Path(folder)


@pytest.fixture
def memory() -> Iterator[Path]:
    """For the arenas of a test."""
    with _in_memory() as folder:
        yield folder


@pytest.fixture(scope="module")
def module_memory() -> Iterator[Path]:
    """For arenas that several tests of a module look at."""
    with _in_memory() as folder:
        yield folder


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One local session for all tests that need a JVM, started by the first of them."""
    from nearcast.engine.spark.session import create

    session = create(master="local[2]", app="nearcast-tests")
    yield session
    session.stop()
