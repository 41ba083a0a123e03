"""Topics of a real broker as a feed: what is read, what is refused, and what is gone. No Spark."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from tests.engine.contract import difference, expected, refused, reported
from tests.kafka.broker import Broker
from tests.recovery.story import script

from nearcast.engine import upkeep
from nearcast.engine.feed import topics as feed_topics
from nearcast.engine.feed.source import Feed
from nearcast.engine.feed.topics import Lost, TopicsOf
from nearcast.engine.options.settings import Settings
from nearcast.engine.output.sinks import SinkOf
from nearcast.model.errors import NearcastError
from nearcast.model.space import Space
from nearcast.testing.cases import publish, unsubscribe
from nearcast.testing.live_run import LiveRun
from nearcast.testing.logs import random_log
from nearcast.wire import kafka
from nearcast.wire.kafka import reader_of
from nearcast.wire.read_split import read_split

pytestmark = pytest.mark.slow

STRATEGIES = {"range": "hash+scan", "knn": "hash+scan"}
BOX = {"kind": "range", "region": {"bbox": [-180, -90, 180, 90]}}


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for new partitions at every look, and believe after a moment that a topic is gone."""
    monkeypatch.setattr(feed_topics, "_AGAIN_SECONDS", 0.3)
    monkeypatch.setattr(kafka, "SETTLED_SECONDS", 0.5)
    monkeypatch.setattr(feed_topics, "_ANSWER_SECONDS", 1.5)


def start(
    memory: Path,
    topics: list[TopicsOf],
    sinks: list[SinkOf] | None = None,
    batch_events: int = 40,
    **more: Any,
) -> LiveRun:
    given: dict[str, Any] = {"manifests": "files", "only": tuple(STRATEGIES)}
    settings = Settings(
        order="arrival", arena=str(memory / "arena"), strategies=STRATEGIES, **(given | more)
    )
    return LiveRun(
        settings, memory / "run", batch_events, splits=2, sinks=sinks or [], topics=topics
    )


def work(run: LiveRun, batches: int = 0, until: int = 0, seconds: float = 20) -> None:
    """Step until so many batches are done, or so many events."""
    deadline = time.monotonic() + seconds
    done = 0
    while run.next < batches or done < until:
        assert time.monotonic() < deadline, f"{run.next} batches, {done} events"
        worked = run.step()
        if worked is None:
            time.sleep(0.02)
        else:
            done += sum(sum(r.events.values()) for r in worked.reports)


def poll(run: LiveRun) -> None:
    """Look until it is clear that something is lost."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            run.tailer.poll()
        except Lost:
            raise
        except NearcastError:  # it may pass
            time.sleep(0.1)


def planned(run: LiveRun) -> int:
    feed = Feed(run.run.checkpoint)
    return sum(split.events for n in range(run.next) for split in feed.read(n))


def values(events: Iterable[dict[str, Any] | str]) -> list[bytes | None]:
    return [(e if isinstance(e, str) else json.dumps(e)).encode() for e in events]


def arrived(run: LiveRun, settings: kafka.Settings) -> list[str]:
    """The events of all batches in the order in which they were handled, by the plans."""
    feed, found = Feed(run.run.checkpoint), []
    for n in range(run.next):
        for split in feed.read(n):
            if split.format == "kafka":
                records = reader_of(settings).read(
                    split.topic, split.partition, split.start, split.until
                )
                found += [m.value().decode() for m in records.messages]
            elif split.path:
                found += Path(split.path).read_text().splitlines()
    return found


def test_partitions_equal_the_oracle_whatever_breaks_off(
    broker: Broker, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three partitions, two more while it runs, crashes: each event once, in the planned order."""
    monkeypatch.setenv("NEARCAST_FAULTS", str(memory / "faults"))
    (memory / "faults").mkdir()
    topic = broker.make("many", 3)
    of = TopicsOf(broker.address, (topic,))
    run = start(memory, [of])
    events = random_log(21, Space.GEOGRAPHIC, 400, late=0.1, kinds=run.settings.kinds)
    broker.write(topic, values(events[:200]))
    script(memory / "faults", [("sink-begin", 1, "raise"), ("sink-visible", 3, "raise")])
    for _ in range(2):
        with pytest.raises(RuntimeError, match="scripted"):
            work(run, until=200)
        run.restart()
    work(run, 5)
    broker.widen(topic, 5)
    time.sleep(0.3)
    broker.write(topic, values(events[200:]))
    work(run, until=200)
    handled = arrived(run, of.settings)
    assert sorted(handled) == sorted(v.decode() for v in values(events) if v)
    wanted = expected([json.loads(e) for e in handled], "geographic", "arrival")
    assert difference(reported(run.run.out), wanted) == ""
    assert wanted.total() > 100
    feed = Feed(run.run.checkpoint)
    splits = [s for n in range(run.next) for s in feed.read(n)]
    assert {s.partition for s in splits} == set(range(5))
    assert max(len(feed.read(n)) for n in range(run.next)) > 2  # partitions share a batch
    assert all(sum(s.events for s in feed.read(n)) <= 40 for n in range(run.next))


def test_a_compacted_topic_of_subscriptions_and_one_of_objects(
    broker: Broker, memory: Path
) -> None:
    """Subscriptions are there before the first object; a key without a value ends its own."""
    subs = broker.make("subs", cleanup_policy="compact")
    objects = broker.make("objects", 2)
    publishes = [
        {"op": "publish", "id": f"o{n}", "time": 4 * 10**12 + n, "at": [n, 0]} for n in range(60)
    ]
    broker.write(objects, values(publishes[:30]))
    whole = {"op": "subscribe", "id": "c", "time": 5, "query": BOX, "owner": "me"}
    keyed = {
        b"a": json.dumps(BOX, indent=1).encode(),
        b"b": json.dumps({"query": BOX, "meta": {"x": "1\n2"}}).encode(),
        b"c": json.dumps(whole).encode(),
        b"gone": json.dumps(BOX).encode(),
        b"\xff": json.dumps(BOX).encode(),
        b"odd": b"{",
        b"other": json.dumps(whole).encode(),
        b"wrong": json.dumps({"kind": "no"}).encode(),
        b"publish": json.dumps(publishes[0]).encode(),
        b"blank": b" \n",
    }
    keys = [*keyed, b"gone", b""]
    broker.write(subs, [*keyed.values(), None, json.dumps(BOX).encode()], keys)
    of = TopicsOf(broker.address, subscriptions=(subs,), objects=(objects,))
    run = start(memory, [of], batch_events=1000)
    work(run, 1)
    broker.write(subs, [None, json.dumps(BOX).encode()], [b"a", b"d"])
    work(run, 2)
    broker.write(objects, [*values(publishes[30:]), *values([unsubscribe("c", 9)])])
    work(run, until=31)
    told = [json.loads(line) for line in reported(run.run.out)]
    seen = {name: {n["object"] for n in told if n["id"] == name} for name in "abcd"}
    first, second = ({p["id"] for p in publishes[a : a + 30]} for a in (0, 30))
    assert seen == {"a": first, "b": first | second, "c": first | second, "d": second}
    assert len(told) == 30 * 6
    assert {n["owner"] for n in told if n["id"] == "c"} == {"me"}
    assert {n["meta"]["x"] for n in told if n["id"] == "b"} == {"1\n2"}
    rejected = refused(run.run.out)
    where = {(r["file"], r["line"]): r["reason"] for r in rejected}
    name = f"topic {subs}, partition 0"
    reasons = [where.pop((name, n)) for n in (4, 5, 6, 7, 8, 9, 11)]
    assert [r.split(":")[0] for r in reasons] == [
        "id", "not valid JSON", "id", "query.kind", "op",
        "object missing required field 'op'", "id",
    ]  # fmt: skip
    [(place, reason)] = where.items()
    assert place[0].startswith(f"topic {objects}, partition ")
    assert reason == "op: only publish comes this way"


def test_poisoned_records_are_refused_and_the_stream_goes_on(broker: Broker, memory: Path) -> None:
    topic = broker.make("poison", max_message_bytes="20000000")
    good = values(
        [
            {"op": "subscribe", "id": "s", "time": 0, "query": BOX},
            *({"op": "publish", "id": f"o{n}", "time": n, "at": [0, 0]} for n in range(3)),
        ]
    )
    poison: list[bytes | None] = [
        b"x" * 10_000_000, None, os.urandom(300), b"\xff\xfe", b"{", b"[" * 5000, b"nul", b"\x00",
        b'{"op":"publish","id":"p","time":1,"at":[0,\n0]}', b"",
    ]  # fmt: skip
    mixed = [*good[:2], *poison[:5], good[2], *poison[5:], good[3]]
    broker.write(topic, mixed)
    run = start(memory, [TopicsOf(broker.address, (topic,))], batch_events=100)
    work(run, 1)
    told = [json.loads(line)["object"] for line in reported(run.run.out)]
    assert sorted(told) == ["o0", "o1", "o2", "p"]  # JSON over two lines is JSON
    rejected = refused(run.run.out)
    assert {r["file"] for r in rejected} == {f"topic {topic}, partition 0"}
    assert sorted(r["line"] for r in rejected) == [2, 3, 4, 5, 6, 8, 9, 10]
    reasons = {r["line"]: r["reason"] for r in rejected}
    assert reasons[3] == "the record has no value"
    assert all(reasons.values())
    assert all(len(r["event"]) <= 200 for r in rejected)


def test_where_it_begins(broker: Broker, memory: Path) -> None:
    """`latest` and a time hold for the partitions that are there; later ones are read whole."""
    topic = broker.make("begins")
    posts = values({"op": "publish", "id": f"o{n}", "time": n, "at": [0, 0]} for n in range(6))
    broker.write(topic, posts[:2])
    time.sleep(0.05)
    now = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(int(time.time()) + 3600)) + "Z"
    runs = {}
    for how in ("latest", now, "2001-01-01T00:00:00Z", "earliest"):
        (memory / how).mkdir()
        runs[how] = start(memory / how, [TopicsOf(broker.address, (topic,), start=how)])
        runs[how].step()
        runs[how].restart()
    broker.write(topic, posts[2:4])
    broker.widen(topic, 2)
    time.sleep(0.5)
    broker.write(topic, posts[4:], partition=1)
    for how, run in runs.items():
        time.sleep(0.3)
        read = 4 if how in ("latest", now) else 6
        deadline = time.monotonic() + 10
        while (
            n := sum(s.events for b in range(run.next) for s in Feed(run.run.checkpoint).read(b))
        ) < read:
            assert time.monotonic() < deadline, (how, n)
            run.step()
        assert n == read


def test_what_is_gone_is_a_clear_error(broker: Broker, memory: Path) -> None:
    """Deleted records, a deleted topic, one that was made anew, and one that never was."""
    posts = values({"op": "publish", "id": f"o{n}", "time": n, "at": [0, 0]} for n in range(9))
    topic = broker.make("shrinks")
    broker.write(topic, posts)
    of = TopicsOf(broker.address, (topic,))
    (memory / "a").mkdir()
    run = start(memory / "a", [of], batch_events=3)
    assert run.step()
    run.tailer.poll()  # the second batch is planned
    for future in broker.admin.delete_records([TopicPartition(topic, 0, 7)]).values():
        future.result()
    with pytest.raises(NearcastError, match=r"shrinks, partition 0: records from offset 3 on were"):
        run.step()
    time.sleep(0.3)
    with pytest.raises(Lost, match=r"shrinks, partition 0: records from offset 6 on were deleted"):
        run.tailer.poll()
    (memory / "b").mkdir()
    run = start(memory / "b", [of])
    work(run, until=2)
    broker.delete(topic)
    with pytest.raises(Lost, match=r"topic shrinks.*restore the topic, or begin a new checkpoint"):
        poll(run)
    broker.make(topic)
    run.restart()
    with pytest.raises(Lost, match="topic shrinks was deleted and made anew"):
        run.tailer.poll()
    broker.make("compacted", cleanup_policy="compact")
    with pytest.raises(NearcastError, match="topic compacted is compacted, so a repeated batch"):
        feed_topics.Topics(TopicsOf(broker.address, ("compacted",)), memory).begin()
    feed_topics.Topics(TopicsOf(broker.address, (), ("compacted",), (topic,)), memory).begin()
    with pytest.raises(NearcastError, match=f"there is no topic never at {broker.address}; make"):
        feed_topics.Topics(TopicsOf(broker.address, ("never",)), memory).begin()


def test_a_source_that_is_taken_out_while_its_records_are_planned(
    broker: Broker, memory: Path
) -> None:
    topic = broker.make("taken")
    broker.write(topic, values([{"op": "publish", "id": "o", "time": 1, "at": [0, 0]}]))
    run = start(memory, [TopicsOf(broker.address, (topic,))])
    run.tailer.poll()
    [split] = Feed(run.run.checkpoint).read(0)
    with pytest.raises(NearcastError, match="no source has that topic now; put it back"):
        read_split(split, Space.GEOGRAPHIC, run.settings.kinds, 0)


def test_plans_that_are_forgotten_leave_where_each_partition_is(
    broker: Broker, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Upkeep removes plans and copies of subscriptions; a restart goes on behind them."""
    monkeypatch.setattr(upkeep, "EVERY", 2)
    monkeypatch.setattr(upkeep, "KEPT", 3)
    subs, objects = broker.make("kept-subs"), broker.make("kept-objects", 2)
    of = TopicsOf(broker.address, subscriptions=(subs,), objects=(objects,))
    run = start(memory, [of], batch_events=5)
    names = [f"s{n}" for n in range(12)]
    broker.write(subs, [json.dumps(BOX).encode()] * 12, [name.encode() for name in names])
    late = 4 * 10**12
    publishes = [publish(f"o{n}", late + n) for n in range(40)]
    broker.write(objects, values(publishes))
    work(run, 8)
    run.restart()
    assert Feed(run.run.checkpoint).first > 3
    assert not list((run.run.checkpoint / "spool").iterdir())
    while planned_until(run) < 52:
        run.step()
    told = [json.loads(line) for line in reported(run.run.out).elements()]
    assert len(told) == 40 * 12
    assert {(n["id"], n["object"]) for n in told} == {
        (s, p["id"]) for s in names for p in publishes
    }


def planned_until(run: LiveRun) -> int:
    """How many offsets are planned, in all partitions."""
    feed = Feed(run.run.checkpoint)
    kept = [s for n in range(feed.first, len(feed)) for s in feed.read(n)]
    last = {(s.topic, s.partition): s.until for s in [*feed.ends(), *kept] if s.topic}
    return sum(last.values()) if len(feed) == run.next else 0
