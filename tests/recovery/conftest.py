"""What the recovery tests share: one log, its meaning, and scripted failures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.recovery import story as stories
from tests.recovery.disk import Disk


@pytest.fixture(scope="session")
def story(tmp_path_factory: pytest.TempPathFactory) -> stories.Story:
    return stories.make(tmp_path_factory.mktemp("story"))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A disk that is full until it is given room."""
    disk = Disk(tmp_path / "disk")
    yield disk
    disk.remove()


@pytest.fixture
def faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of scripted failures, for code that runs in this process."""
    folder = tmp_path / "faults"
    folder.mkdir()
    monkeypatch.setenv("NEARCAST_FAULTS", str(folder))
    return folder


@pytest.fixture
def worker_faults(faults: Path, spark: SparkSession) -> Iterator[Path]:
    """The same, for Spark's Python workers too: Spark starts those of a new environment anew."""
    environment = spark.sparkContext.environment
    environment["NEARCAST_FAULTS"] = str(faults)
    yield faults
    del environment["NEARCAST_FAULTS"]
