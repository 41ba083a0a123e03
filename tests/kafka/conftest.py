"""One broker for all tests that need it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.kafka.broker import Broker


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """A broker with its data in memory, where there is room."""
    place = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with TemporaryDirectory(prefix="nearcast-kafka-", dir=place) as folder:
        started = Broker(Path(folder))
        yield started
        started.kill()
