"""One running service per module: its parts are quick, its start is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.gateway.running import Running, running


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, module_memory: Path) -> Iterator[Running]:
    """Without tokens."""
    with running(tmp_path_factory.mktemp("service"), module_memory) as found:
        yield found
