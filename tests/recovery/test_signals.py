"""A real `nearcast run`, stopped by signals: the first finishes, the second stops at once."""

from __future__ import annotations

import json
import signal
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from tests.engine.contract import difference, expected, reported
from tests.recovery.process import Session

from nearcast.engine.operations.status import status
from nearcast.kinds import KINDS
from nearcast.model.space import Space
from nearcast.testing.logs import random_log

pytestmark = pytest.mark.spark

CONFIG = """
[run]
master = "local[2]"
kinds = ["range", "knn"]
batch_events = 40
[state]
checkpoint = "checkpoint"
arena = "arena"
[[source]]
type = "folder"
path = "in"
[[sink]]
type = "files"
path = "out"
[strategies]
range = "random"
knn = "random"
"""


def test_a_run_that_is_told_to_stop(tmp_path: Path) -> None:
    """Once in the middle of much work; then twice; then to the end. Metrics and the log by the way.

    A short stop may come before or after any batch: what is not done comes with the next start.
    """
    (tmp_path / "in").mkdir()
    (tmp_path / "run.toml").write_text(CONFIG)
    events = random_log(17, Space.GEOGRAPHIC, 600)

    def start(name: str) -> Session:
        more = ["--metrics", "127.0.0.1:0", "--log", "json"]
        command = [sys.executable, "-m", "nearcast", "run", str(tmp_path / "run.toml"), *more]
        return Session(command, tmp_path / f"{name}.log")

    def write(first: int, stop: int) -> None:
        with (tmp_path / "in" / "a.jsonl").open("a") as file:
            file.writelines(f"{json.dumps(e)}\n" for e in events[first:stop])

    session = start("first")
    try:
        write(0, 300)
        session.wait_for_text('"batch": 1,')
        found = status(tmp_path / "checkpoint")
        assert (found["state"], found["process"]) == ("live", session.process.pid)
        with urllib.request.urlopen(f"http://{found['metrics']}/metrics", timeout=20) as page:
            assert b"nearcast_batches_total" in page.read()
        session.process.send_signal(signal.SIGTERM)
        assert session.wait() == 0, "\n".join(session.said()[-20:])
    finally:
        session.kill()
    lines: list[dict[str, Any]] = [json.loads(v) for v in session.said() if v.startswith("{")]
    assert {"batch", "events", "notifications", "seconds"} <= lines[-1].keys() | lines[1].keys()
    found = status(tmp_path / "checkpoint")
    assert (found["state"], found["waiting_batches"]) == ("stopped", 0)  # it finished

    write(300, 500)
    session = start("second")
    try:
        session.wait_for_text('is done"')
        session.process.send_signal(signal.SIGTERM)
        session.wait_for_text("once more to stop at once")
        session.process.send_signal(signal.SIGTERM)
        assert session.wait() in (0, 128 + signal.SIGTERM)  # 0: it was quicker
    finally:
        session.kill()

    write(500, 600)
    session = start("third")
    try:
        kinds = {name: KINDS[name] for name in ("range", "knn")}
        wanted = expected(events, "geographic", "arrival", kinds)
        session.wait_for_text('"events": ')
        session._until("all", lambda: reported(tmp_path / "out").total() >= wanted.total())
        session.process.send_signal(signal.SIGINT)
        assert session.wait() == 0
    finally:
        session.kill()
    assert difference(reported(tmp_path / "out"), wanted) == ""
