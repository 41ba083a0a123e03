"""`nearcast serve` as its users start it: processes that die are started again, nothing is lost."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import httpx
import pytest

from nearcast.client import Client

pytestmark = pytest.mark.spark
PATIENCE_S = 240


def until(holds: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, f"{what} did not happen"
        time.sleep(0.1)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def children(process: int) -> dict[str, int]:
    """The processes that it started, by what they are."""
    found = {}
    for text in Path(f"/proc/{process}/task/{process}/children").read_text().split():
        line = Path(f"/proc/{text}/cmdline").read_bytes()
        for name in (b"nearcast.serve.engine", b"nearcast.gateway"):
            if name in line:
                found[name.decode()] = int(text)
    return found


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    port = free_port()
    command = [sys.executable, "-m", "nearcast", "serve", "--port", str(port), "--data", "d"]
    with subprocess.Popen(command, cwd=tmp_path) as process:
        try:
            yield process, f"http://127.0.0.1:{port}"
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE_S)


def ready(url: str) -> bool:
    try:
        status: int = httpx.get(f"{url}/readyz").status_code
        return status == 200
    except httpx.TransportError:
        return False


def test_it_outlives_its_gateway_and_its_engine(
    served: tuple[subprocess.Popen[bytes], str], tmp_path: Path
) -> None:
    process, url = served
    until(lambda: ready(url), "the start")
    twice = [sys.executable, "-m", "nearcast", "serve", "--data", "d", "--port", "1"]
    again = subprocess.run(twice, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert again.returncode == 2
    assert "served already" in again.stderr
    query = {"kind": "range", "region": {"bbox": [0, 0, 1, 1]}}
    with Client(url, tries=12) as client:
        client.subscribe("s", query)
        notes = client.notifications("s", after="0")
        client.publish("o0", [0.5, 0.5])
        assert next(notes).object == "o0"
        os.kill(children(process.pid)["nearcast.gateway"], signal.SIGKILL)
        client.publish("o1", [0.5, 0.5])
        assert next(notes).object == "o1"
        os.kill(children(process.pid)["nearcast.serve.engine"], signal.SIGKILL)
        until(lambda: not ready(url), "noticing it")
        client.publish("o2", [0.5, 0.5])  # is taken meanwhile
        assert client.subscription("s").query == query
        until(lambda: ready(url), "the return of the engine")
        client.publish("o3", [0.5, 0.5])
        assert [n.object for n in islice(notes, 2)] == ["o2", "o3"]
        assert [o["id"] for o in client.ask(query, 3_600_000).objects] == ["o0", "o1", "o2", "o3"]
        every = [n.object for n in islice(client.notifications("s", after="0"), 4)]
        assert every == ["o0", "o1", "o2", "o3"]
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE_S) == 0
    assert not children_left(tmp_path)
    state = json.loads((tmp_path / "d" / "engine.json").read_text())
    assert (state["state"], state["restarts"]) == ("stopped", 1)


def children_left(folder: Path) -> list[str]:
    """Processes that still know the folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes()
        except OSError:
            continue
        if str(folder).encode() in line and b"pytest" not in line:
            found.append(line.decode(errors="replace"))
    return found
