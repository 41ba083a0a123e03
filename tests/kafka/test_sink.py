"""The Kafka sink on a real broker, read by the console consumer of its jars. No Spark."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.engine.contract import as_text, difference, expected, refused
from tests.kafka.broker import Broker
from tests.kafka.test_topics import start, values, work
from tests.recovery.story import script

from nearcast.engine.feed import topics as feed_topics
from nearcast.engine.feed.topics import TopicsOf
from nearcast.engine.files import run_id
from nearcast.engine.output.sinks import KafkaOf, OfRun
from nearcast.engine.output.sinks import kafka as kafka_sink
from nearcast.engine.output.sinks.base import Shown
from nearcast.engine.spark.query import RunFailed
from nearcast.model.errors import NearcastError
from nearcast.model.space import Space
from nearcast.testing.live_run import LiveRun
from nearcast.testing.logs import random_log
from nearcast.wire.told import Told

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait shorter for a broker that is away."""
    monkeypatch.setattr(feed_topics, "_ANSWER_SECONDS", 1.5)
    monkeypatch.setattr(kafka_sink, "_STUCK_SECONDS", 2.0)


def keys_of(records: list[dict[str, str]]) -> list[str]:
    """What stands in the header of each record."""
    found = []
    for record in records:
        name, _, value = record["headers"].partition(":")
        assert name == "nearcast-key"
        found.append(value)
    return found


def check(run: LiveRun, records: list[dict[str, str]], wanted: Counter[str]) -> None:
    """Each notification once, under its subscription, with its cursor."""
    got = Counter(as_text(json.loads(r["value"])) for r in records)
    assert difference(got, wanted) == ""
    assert all(json.loads(r["value"])["id"] == r["key"] for r in records)
    name = run_id(run.run.checkpoint)
    told = {f"{name}-{cursor}": line.decode()[:-1] for cursor, line in Told(run.run.out).read()}
    assert dict(zip(keys_of(records), (r["value"] for r in records), strict=True)) == told


@pytest.mark.parametrize("transactions", [True, False])
def test_each_notification_once_whatever_breaks_off(
    transactions: bool, broker: Broker, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before, in and after the transaction; the broker is killed too, in mid-stream."""
    monkeypatch.setenv("NEARCAST_FAULTS", str(memory / "faults"))
    (memory / "faults").mkdir()
    name = f"told-{transactions}".lower()
    topics = [broker.make(name, 2), broker.make(f"{name}-rejects"), broker.make(f"{name}-in")]
    sink = KafkaOf(broker.address, topics[0], topics[1], transactions)
    run = start(memory, [TopicsOf(broker.address, (topics[2],))], [sink], batch_events=25)
    events: list[Any] = list(random_log(5, Space.GEOGRAPHIC, 300, kinds=run.settings.kinds))
    for n in range(7, 300, 50):
        events[n] = '{"op":"publish","id":"cut sh'
    broker.write(topics[2], values(events[:200]))
    points = ["sink-visible", "kafka-begun", "kafka-sent", "sink-delivered"]
    points += ["kafka-committed"] if transactions else []
    script(memory / "faults", [(point, n + 1, "raise") for n, point in enumerate(points)])
    for _ in points:
        with pytest.raises(RuntimeError, match="scripted"):
            work(run, 8)
        run.restart()
    work(run, 8)
    broker.kill()
    restarting = threading.Timer(1.0, broker.start)
    restarting.start()
    time.sleep(0.1)
    worked = None
    while restarting.is_alive() or worked is None:
        try:
            worked = run.step()
        except NearcastError:
            time.sleep(0.1)
        if not restarting.is_alive() and broker.listens():
            break
    broker.write(topics[2], values(events[200:]))
    work(run, 12)
    wanted = expected(events, "geographic", "arrival", run.settings.kinds)
    both = broker.read(f"{name}|{name}-rejects")
    records = [r for r in both if "reason" not in json.loads(r["value"])]
    rejects = [r for r in both if "reason" in json.loads(r["value"])]
    if not transactions:  # the keys show what is there twice
        assert len(records) > wanted.total()
        records = list(dict(zip(keys_of(records), records, strict=True)).values())
    check(run, records, wanted)
    assert len({r["partition"] for r in records}) == 2
    assert len({(r["key"], r["partition"]) for r in records}) == len({r["key"] for r in records})
    theirs = dict(zip(keys_of(rejects), (json.loads(r["value"]) for r in rejects), strict=True))
    ours = refused(run.run.out)
    assert sorted(r["line"] for r in theirs.values()) == sorted(r["line"] for r in ours)
    assert [r["key"] for r in rejects] == [f"topic {topics[2]}, partition 0"] * len(rejects)


def shown(folder: Path, batch: int, lines: int) -> Shown:
    """A batch of notifications."""
    name = f"notifications/b{batch:08d}-s0000.jsonl"
    (folder / "notifications").mkdir(exist_ok=True)
    (folder / name).write_text(
        "".join(f'{{"id":"s\\"{n}","event":"match","object":"{batch}"}}\n' for n in range(lines))
    )
    return Shown(batch, folder, [name], [])


def test_a_second_driver_takes_over(broker: Broker, memory: Path) -> None:
    topic = broker.make("fenced")
    run = start(memory, [])
    of = OfRun(run.settings, memory / "checkpoint", "one-run")
    first = KafkaOf(broker.address, topic).open(of)
    first.deliver(shown(memory, 0, 3))
    second = KafkaOf(broker.address, topic).open(of)
    with pytest.raises(RunFailed, match="another driver of this run has taken over"):
        first.deliver(shown(memory, 1, 3))
    (memory / "checkpoint" / "sinks" / f"kafka-{topic}.json").unlink()  # Kafka knows it as well
    for batch in (0, 1, 1):
        second.deliver(shown(memory, batch, 3))
    other = KafkaOf(broker.address, topic).open(of._replace(run="two", checkpoint=memory / "two"))
    other.deliver(shown(memory, 0, 1))
    second.deliver(shown(memory, 2, 1))
    records = broker.read(topic)
    names = [f"one-run-{b}-0-{n}" for b in (0, 1) for n in (1, 2, 3)]
    assert sorted(keys_of(records)) == sorted([*names, "one-run-2-0-1", "two-0-0-1"])
    assert records[0]["key"] == 's"0'
    for delivery in (first, second, other):
        delivery.close()


def test_what_cannot_be_delivered_is_a_clear_error(broker: Broker, memory: Path) -> None:
    run = start(memory, [])
    of = OfRun(run.settings, memory / "checkpoint", "run")
    with pytest.raises(NearcastError, match=r"topic none at .*Unknown topic or partition; make it"):
        KafkaOf(broker.address, "none").open(of)
    with pytest.raises(NearcastError, match="rejects: a is the topic of notifications"):
        KafkaOf(broker.address, "a", "a")
    with pytest.raises(NearcastError, match=r"options group\.id has no effect: the run itself"):
        KafkaOf(broker.address, "a", options={"group.id": "x"})
    with pytest.raises(NearcastError, match='No such configuration property: "retires"'):
        KafkaOf(broker.address, "a", options={"retires": 3}).open(of)
    for transactions in (True, False):
        topic = broker.make(f"small-{transactions}".lower(), max_message_bytes="1000")
        delivery = KafkaOf(broker.address, topic, transactions=transactions).open(of)
        batch = shown(memory, 0, 1)
        (memory / batch.notifications[0]).write_text('{"id":"s","pad":"' + "x" * 5000 + '"}\n')
        with pytest.raises(
            RunFailed, match=r"Message size too large.*nothing of the batch was written"
        ):
            delivery.deliver(batch)
        delivery.close()
