"""Topics of Kafka as a feed: what is new in each partition becomes splits of the next batch.

How far each partition is read stands in the plans themselves. What they do not say, where each
partition began and which topic it was (one of the same name may be made anew), is written once, in
`topics.json` of the checkpoint. Nobody else remembers offsets: there is no consumer group.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nearcast.engine.feed.subscriptions import line_of
from nearcast.engine.formats import FIELD, FORMAT, check_format
from nearcast.engine.spark.query import RunFailed
from nearcast.model.errors import NearcastError
from nearcast.wire import kafka
from nearcast.wire.durable import write_atomic
from nearcast.wire.split import Split
from nearcast.wire.times import parse_rfc3339

__all__ = ["POLL_SECONDS", "Lost", "Topics", "TopicsOf"]

POLL_SECONDS = 0.01
"""Between two looks for new records."""
_AGAIN_SECONDS = 1.0  # between two looks for new partitions, and for records that were deleted
_ANSWER_SECONDS = 5.0  # that brokers have for an answer
_SMALL = 1000  # records that are not worth a task of their own
Partition = tuple[str, int]


class Lost(RunFailed):
    """Records that were planned, or should have been, are gone for good."""


@dataclass(frozen=True, slots=True)
class TopicsOf:
    """A source of type kafka."""

    bootstrap: str  # HOST:PORT of some brokers, with commas between them
    events: tuple[str, ...] = ()  # topics of events of any sort
    subscriptions: tuple[str, ...] = ()  # compacted topics: key = id, value = query, none: ends
    objects: tuple[str, ...] = ()  # topics of publishes
    start: str = "earliest"  # earliest, latest, or a time: where events and objects begin
    options: dict[str, Any] = field(default_factory=dict)  # settings of librdkafka

    def __post_init__(self) -> None:
        """Refuse nonsense."""
        kafka.checked_settings(self.options)
        topics = [*self.events, *self.subscriptions, *self.objects]
        if not topics:
            raise NearcastError("name topics, subscriptions or objects: there is nothing to read")
        if twice := {t for t in topics if topics.count(t) > 1}:
            raise NearcastError(f"topic {min(twice)} is named twice")
        if self.start not in ("earliest", "latest"):
            parse_rfc3339(self.start, "start")

    @property
    def topics(self) -> tuple[str, ...]:
        """All of them, in the order in which they are read."""
        return (*self.subscriptions, *self.events, *self.objects)

    @property
    def settings(self) -> dict[str, Any]:
        """How its brokers are reached."""
        return kafka.client_settings(self.bootstrap, self.options)


class Topics:
    """The topics of a source, followed."""

    def __init__(self, source: TopicsOf, checkpoint: Path) -> None:
        self.source, self._checkpoint = source, checkpoint
        self._kafka = kafka.client()
        from confluent_kafka import admin

        self._admin_of = admin
        try:
            self._admin = admin.AdminClient({**source.settings, "error_cb": _nothing})
        except self._kafka.KafkaException as error:
            raise NearcastError(f"options: {error.args[0].str()}") from error
        self._path = checkpoint / "topics.json"
        self._known: dict[str, Any] = {FIELD: FORMAT, "topics": {}}
        if self._path.exists():
            self._known = json.loads(self._path.read_text())
            check_format(self._path, self._known)
        self._at: dict[Partition, int] = {}  # the next offset that no plan has
        self._looked = -_AGAIN_SECONDS
        self._troubles: dict[str, tuple[float, float]] = {}  # since when, until when

    def __str__(self) -> str:
        return f"{', '.join(self.source.topics)} at {self.source.bootstrap}"

    def begin(self) -> None:
        """Look whether all topics are there, and whether their records stay as they are."""
        self._described()
        topics = [*self.source.events, *self.source.objects]
        resources = [self._admin_of.ConfigResource("topic", topic) for topic in topics]
        answers = self._ask(self._admin.describe_configs, resources) if resources else {}
        for resource, answer in answers.items():
            if answer.exception() is not None:  # a right to look at settings is not asked for
                continue
            if "compact" in (answer.result()["cleanup.policy"].value or ""):
                raise NearcastError(
                    f"topic {resource.name} is compacted, so a repeated batch could not read it "
                    "again; set its cleanup.policy to delete, or name it among `subscriptions`"
                )

    def remember(self, split: Split) -> None:
        """Go on behind a planned split."""
        if split.topic in self.source.topics:
            self._at[split.topic, split.partition] = split.until

    def find(self, room: int, pieces: int) -> Iterator[Split]:
        """Splits of what is new, `room` records at most; subscriptions before objects."""
        if time.monotonic() - self._looked >= _AGAIN_SECONDS:
            self._look()
        ends = self._offsets(dict.fromkeys(self._at, "latest"))
        for topics in (self.source.subscriptions, (*self.source.events, *self.source.objects)):
            new = [(p, self._at[p], ends[p]) for p in sorted(self._at) if p[0] in topics]
            for (topic, partition), at, end in new:
                if end < at:
                    self._trouble(f"{kafka.named(topic, partition)}: offset {at - 1:,} is gone")
            left = [(p, at, end) for p, at, end in new if end > at]
            for n, (where, at, end) in enumerate(left):
                share = min(end - at, -(-room // (len(left) - n)))
                room -= share
                if share > 0 and where[0] in self.source.subscriptions:
                    yield self._spooled(*where, at, at + share)
                elif share > 0:
                    yield from self._cut(*where, at, at + share, pieces)

    def _cut(
        self, topic: str, partition: int, start: int, end: int, pieces: int
    ) -> Iterator[Split]:
        """Splits that workers read from the topic."""
        piece = max(-(-(end - start) // pieces), _SMALL)
        name = kafka.named(topic, partition)
        for at in range(start, end, piece):
            until = min(at + piece, end)
            yield Split(
                "kafka", "", name, at, until - at, events=until - at, topic=topic,
                partition=partition, until=until, publishes=topic in self.source.objects,
            )  # fmt: skip

    def _spooled(self, topic: str, partition: int, start: int, end: int) -> Split:
        """A copy of the records: those of a compacted topic may be gone when they are read again,
        and the kinds of query that they name count from this batch on."""
        reader = kafka.reader_of(self.source.settings)
        records = reader.read(topic, partition, start, end, _ANSWER_SECONDS)
        lines = [
            line_of(m.key(), m.value(), max(m.timestamp()[1], 0)) + b"\n" for m in records.messages
        ]
        folder = self._checkpoint / "spool"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{uuid.uuid4().hex}.jsonl"
        numbers = path.with_suffix(".lines")
        whole = b"".join(lines)
        path.write_bytes(whole)
        np.stack([np.zeros(len(lines), np.int64), records.offsets], axis=1).tofile(numbers)
        name = kafka.named(topic, partition)
        return Split(
            "jsonl", str(path), name, 0, len(whole), lines=str(numbers), names=(name,),
            events=end - start, topic=topic, partition=partition, until=end,
        )  # fmt: skip

    # -- partitions ------------------------------------------------------------------------------

    def _look(self) -> None:
        """Find new partitions; refuse topics that are gone or made anew, and deleted records."""
        described = self._described()
        if described is None:
            return
        begins: dict[Partition, str] = {}
        for topic, (identity, partitions) in described.items():
            known = self._known["topics"].setdefault(topic, {"id": identity, "begins": {}})
            if known["id"] != identity:
                raise Lost(
                    f"topic {topic} was deleted and made anew since this checkpoint read it; begin "
                    "a new checkpoint"
                )
            first = not known["begins"]
            for partition in partitions:
                if str(partition) not in known["begins"]:
                    begins[topic, partition] = self._start(topic) if first else "earliest"
        if begins:
            for (topic, partition), offset in self._offsets(begins).items():
                self._known["topics"][topic]["begins"][str(partition)] = offset
            write_atomic(self._path, json.dumps(self._known).encode())
        for topic in described:
            for partition, offset in self._known["topics"][topic]["begins"].items():
                self._at.setdefault((topic, int(partition)), offset)
        plain = [p for p in self._at if p[0] not in self.source.subscriptions]
        for (topic, partition), first_kept in self._offsets(
            dict.fromkeys(plain, "earliest")
        ).items():
            if first_kept > self._at[topic, partition]:
                raise Lost(kafka.gone(kafka.named(topic, partition), self._at[topic, partition]))
        self._looked = time.monotonic()

    def _start(self, topic: str) -> str:
        """Where partitions of a topic begin that are there from the beginning."""
        return "earliest" if topic in self.source.subscriptions else self.source.start

    def _described(self) -> dict[str, tuple[str, list[int]]] | None:
        """By topic: its identity and its partitions; None if one is missing, for the moment."""
        names = self._kafka.TopicCollection(list(self.source.topics))
        found = {}
        for topic, answer in self._ask(self._admin.describe_topics, names).items():
            error = answer.exception()
            if error is not None and self._is_unknown(error):
                new = topic not in self._known["topics"]
                self._trouble(f"there is no topic {topic}", at_once=new)
                return None
            said = self._result(answer)
            found[topic] = str(said.topic_id), sorted(p.id for p in said.partitions)
        return found

    def _offsets(self, wanted: dict[Partition, str]) -> dict[Partition, int]:
        """The first offsets of what is wanted of each partition: earliest, latest, or a time."""
        if not wanted:
            return {}
        asked = {
            self._kafka.TopicPartition(*where): self._spec(what) for where, what in wanted.items()
        }
        level = self._kafka.IsolationLevel.READ_COMMITTED
        answers = self._ask(self._admin.list_offsets, asked, isolation_level=level)
        found = {}
        for place, answer in answers.items():
            error = answer.exception()
            if error is not None and self._is_unknown(error):
                self._trouble(f"{kafka.named(place.topic, place.partition)} is gone")
                raise NearcastError(f"{kafka.named(place.topic, place.partition)} is away")
            found[place.topic, place.partition] = self._result(answer).offset
        # Nothing was written since that time: begin with what comes.
        late = {where: "latest" for where, offset in found.items() if offset < 0}
        return found | self._offsets(late)

    def _spec(self, what: str) -> Any:
        spec = self._admin_of.OffsetSpec
        if what in ("earliest", "latest"):
            return getattr(spec, what)()
        return spec.for_timestamp(parse_rfc3339(what, "start"))

    def _ask(self, request: Any, *args: Any, **named: Any) -> Any:
        try:
            return request(*args, request_timeout=_ANSWER_SECONDS, **named)
        except self._kafka.KafkaException as error:
            raise self._away(error) from error

    def _result(self, answer: Any) -> Any:
        try:
            return answer.result()
        except self._kafka.KafkaException as error:
            raise self._away(error) from error

    def _away(self, error: Any) -> NearcastError:
        return NearcastError(f"Kafka at {self.source.bootstrap}: {error.args[0].str()}")

    def _is_unknown(self, error: Any) -> bool:
        codes = self._kafka.KafkaError
        return isinstance(error, self._kafka.KafkaException) and error.args[0].code() in (
            codes.UNKNOWN_TOPIC_OR_PART,
            codes._UNKNOWN_TOPIC,
            codes._UNKNOWN_PARTITION,
        )

    def _trouble(self, what: str, at_once: bool = False) -> None:
        """Raise what stays so; brokers that start may say it for a moment."""
        if at_once:
            raise NearcastError(f"{what} at {self.source.bootstrap}; make it first")
        now = time.monotonic()
        since, until = self._troubles.get(what, (now, now))
        since = since if now - until < 3 * _AGAIN_SECONDS else now  # it was well meanwhile
        self._troubles[what] = since, now
        if now - since > kafka.SETTLED_SECONDS:
            raise Lost(f"{what}, and this run reads it; {kafka.NO_WAY_BACK}")


def _nothing(error: object) -> None:
    """Errors come as answers as well."""
