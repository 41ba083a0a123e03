"""`nearcast run` from Kafka to Kafka: drivers and the broker are killed in mid-stream."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.engine.contract import as_text, difference, expected
from tests.kafka.broker import Broker
from tests.kafka.test_sink import keys_of
from tests.kafka.test_topics import values
from tests.recovery.process import PATIENCE_SECONDS, Session
from tests.recovery.story import script

from nearcast.engine.output.reports import Reports
from nearcast.kinds import kinds_of
from nearcast.model.space import Space
from nearcast.testing.logs import random_log

pytestmark = pytest.mark.spark

CONFIG = """
[run]
kinds = ["range", "knn"]
master = "local[2]"
batch_events = 40
[state]
checkpoint = "state"
[[source]]
type = "kafka"
bootstrap = "{broker}"
topics = ["run-in"]
[[sink]]
type = "kafka"
bootstrap = "{broker}"
topic = "run-out"
rejects = "run-rejects"
[[sink]]
type = "console"
"""


def until(what: str, holds: Callable[[], bool], session: Session) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        said = "\n".join(session.said()[-30:])
        assert session.process.poll() is None, f"ended before {what}: {said}"
        assert time.monotonic() < deadline, f"no {what}: {said}"
        time.sleep(0.05)


def test_from_kafka_to_kafka_exactly_once(broker: Broker, tmp_path: Path) -> None:
    """The driver is killed with a transaction open, later the broker."""
    for topic, partitions in (("run-in", 1), ("run-out", 3), ("run-rejects", 1)):
        broker.make(topic, partitions)
    kinds = kinds_of((), ("range", "knn"))
    events: list[Any] = list(random_log(8, Space.GEOGRAPHIC, 300, kinds=kinds))
    for n in range(9, 300, 40):
        events[n] = '{"op":"publish","id":"cut sh'
    (tmp_path / "run.toml").write_text(CONFIG.format(broker=broker.address))
    (tmp_path / "faults").mkdir()
    reports = Reports(tmp_path / "state")
    starts = 0

    def start() -> Session:
        nonlocal starts
        starts += 1
        command = [sys.executable, "-m", "nearcast", "run", str(tmp_path / "run.toml")]
        env = {"NEARCAST_FAULTS": str(tmp_path / "faults")}
        return Session(command, tmp_path / f"driver-{starts}.log", env)

    broker.write("run-in", values(events[:150]))
    script(tmp_path / "faults", [("kafka-sent", 1, "kill")])
    session = start()
    try:
        assert session.wait() == -signal.SIGKILL, "\n".join(session.said()[-30:])
    finally:
        session.kill()
    session = start()
    try:
        until("first half", lambda: reports.totals().read >= 150, session)
        broker.kill()
        time.sleep(0.5)
        broker.start()
        broker.write("run-in", values(events[150:]))
        until("second half", lambda: reports.totals().read >= 300, session)
        session.process.send_signal(signal.SIGTERM)
        assert session.wait() == 0, "\n".join(session.said()[-30:])
    finally:
        session.kill()
    records = broker.read("run-out")
    told = Counter(as_text(json.loads(r["value"])) for r in records)
    wanted = expected(events, "geographic", "arrival", kinds)
    assert difference(told, wanted) == ""
    assert len(set(keys_of(records))) == wanted.total()
    rejects = [json.loads(r["value"]) for r in broker.read("run-rejects")]
    broken = [n for n, event in enumerate(events) if isinstance(event, str)]
    assert {r["line"] for r in rejects} >= set(broken)
    assert {r["file"] for r in rejects} == {"topic run-in, partition 0"}
