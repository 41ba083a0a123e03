"""Notifications as records of a Kafka topic, keyed by the subscription.

With transactions a batch is one transaction, and the number of the batch is committed in it, as the
offset of a consumer group that nobody joins. So the topic holds each batch once for whoever reads
what is committed, whatever happens between: a driver that starts again first asks how far that
offset is. It also takes the transactional id from any other driver of the same run (fencing).

Without transactions a batch that is repeated comes again, with the same keys in the header.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import msgspec

from nearcast.engine import faults
from nearcast.engine.output.sinks.base import Delivery, OfRun, Shown
from nearcast.engine.spark.query import RunFailed
from nearcast.model.errors import NearcastError
from nearcast.wire import kafka
from nearcast.wire.durable import write_atomic

__all__ = ["HEADER", "KafkaOf"]

HEADER = "nearcast-key"
"""Of each record: run-batch-shard-line, the same whenever the record is written."""
_ANSWER_SECONDS = 5.0
_STUCK_SECONDS = 6.0  # after which a call is not waited for any more
_BEGINNING = b'{"id":"'


@dataclass(frozen=True, slots=True)
class KafkaOf:
    """A sink of type kafka."""

    promise: ClassVar[str] = (
        "exactly once for readers of what is committed; without transactions at least once, with "
        f"a stable key in the header {HEADER}"
    )
    lines: ClassVar[bool] = True

    bootstrap: str
    topic: str
    rejects: str = ""
    transactions: bool = True
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse nonsense."""
        kafka.checked_settings(self.options)
        if self.rejects == self.topic:
            raise NearcastError(f"rejects: {self.topic} is the topic of notifications; use another")

    def __str__(self) -> str:
        return f"topic {self.topic} at {self.bootstrap}"

    def open(self, of: OfRun) -> Delivery:
        """Look for the topics; with transactions take over from any other driver of this run."""
        return _Kafka(self, of)


class _Kafka(Delivery):
    def __init__(self, sink: KafkaOf, of: OfRun) -> None:
        self.sink, self._of = sink, of
        self._kafka = kafka.client()
        self.name = f"nearcast-{of.run}-{sink.topic}"
        self._note = of.checkpoint / "sinks" / f"kafka-{sink.topic}.json"
        self._producer: Any = None
        self._failed: Any = None  # the first error of a delivery
        self._place = self._kafka.TopicPartition(sink.topic, 0)
        try:
            self._group = self._consumer()
            self._check_topics()
            if sink.transactions:
                self._begin()
        except self._kafka.KafkaException as error:
            raise NearcastError(f"{sink}: {error.args[0].str()}") from error

    def _consumer(self) -> Any:
        """Whose group holds the number of batches; it joins nothing and reads nothing."""
        own = {"group.id": self.name, "enable.auto.commit": False, "error_cb": _nothing}
        return self._kafka.Consumer({**self._settings(), **own})

    def _settings(self) -> dict[str, Any]:
        return kafka.client_settings(self.sink.bootstrap, self.sink.options)

    def _check_topics(self) -> None:
        for topic in filter(None, (self.sink.topic, self.sink.rejects)):
            found = self._group.list_topics(topic, timeout=_ANSWER_SECONDS).topics[topic]
            if found.error is not None:
                raise NearcastError(
                    f"topic {topic} at {self.sink.bootstrap}: {found.error.str()}; make it first"
                )

    def _begin(self) -> None:
        """A new producer. With transactions: the one before it can write no more."""
        usual = {
            "linger.ms": 5,
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 1 << 19,
        }
        own: dict[str, Any] = {
            "enable.idempotence": True,
            "error_cb": _nothing,
            "delivery.report.only.error": True,
            "on_delivery": self._delivered,
        }
        if self.sink.transactions:
            own["transactional.id"] = self.name
            # Whoever starts again ends an open one at once; a large batch must not run into it.
            usual["transaction.timeout.ms"] = 300_000
        self._producer = self._kafka.Producer({**usual, **self._settings(), **own})
        if self.sink.transactions:
            self._patiently(lambda: self._producer.init_transactions(_ANSWER_SECONDS))

    # -- a batch ---------------------------------------------------------------------------------

    def deliver(self, shown: Shown) -> None:
        started = time.monotonic()
        while not self._has(shown.batch):
            try:
                if self._producer is None:
                    self._begin()
                    continue  # what the one before it had begun may have been committed
                self._write(shown)
                break
            except self._kafka.KafkaException as error:
                self._recover(error.args[0], started)
            except _Stuck:
                self._give_up(started)
                self._producer = None
        write_atomic(self._note, msgspec.json.encode({"batches": shown.batch + 1}))

    def _has(self, batch: int) -> bool:
        """Whether the topic has a batch."""
        if self._note.exists() and msgspec.json.decode(self._note.read_bytes())["batches"] > batch:
            return True
        if not self.sink.transactions:
            return False
        [place] = self._patiently(
            lambda: self._group.committed([self._place], timeout=_ANSWER_SECONDS)
        )
        return bool(place.offset > batch)

    def _write(self, shown: Shown) -> None:
        self._failed = None
        if self.sink.transactions:
            self._producer.begin_transaction()
        faults.reach("kafka-begun", shown.batch)
        self._produce(self.sink.topic, shown, shown.notifications, _id_of)
        if self.sink.rejects:
            self._produce(self.sink.rejects, shown, shown.rejected, _file_of)
        if not self.sink.transactions:
            self._flush()
            faults.reach("kafka-sent", shown.batch)
            return
        done = self._kafka.TopicPartition(self.sink.topic, 0, shown.batch + 1)
        group = self._group.consumer_group_metadata()
        self._patiently(lambda: self._send_offsets([done], group))
        faults.reach("kafka-sent", shown.batch)
        self._patiently(lambda: self._producer.commit_transaction(_ANSWER_SECONDS))
        faults.reach("kafka-committed", shown.batch)

    def _produce(
        self, topic: str, shown: Shown, names: Sequence[str], key_of: Callable[[bytes], bytes]
    ) -> None:
        """Have librdkafka send all lines of some files."""
        produce = self._producer.produce
        for shard, lines in shown.read(names):
            head = f"{self._of.run}-{shown.batch}-{shard}-".encode()
            for n, line in enumerate(lines, 1):
                headers = [(HEADER, b"%s%d" % (head, n))]
                while True:
                    try:
                        produce(topic, line[:-1], key_of(line), headers=headers)
                        break
                    except BufferError:  # it is full: some must have gone first
                        self._producer.poll(0.1)
                        self._check()

    def _delivered(self, error: Any, message: Any) -> None:
        del message  # it is one of the batch
        if error is not None and self._failed is None:
            self._failed = error

    def _check(self) -> None:
        if self._failed is not None:
            raise self._kafka.KafkaException(self._failed)

    def _flush(self) -> None:
        started = time.monotonic()
        while self._producer.flush(1.0):
            self._check()
            self._give_up(started)
        self._check()

    # -- what goes wrong -------------------------------------------------------------------------

    def _patiently(self, call: Callable[[], Any]) -> Any:
        """The result of a call that is made again as long as that may help."""
        started = time.monotonic()
        while True:
            try:
                return call()
            except self._kafka.KafkaException as error:
                if not error.args[0].retriable():
                    raise
                self._give_up(started)
                time.sleep(0.1)

    def _send_offsets(self, offsets: list[Any], group: Any) -> None:
        """Have the number of batches in the transaction.

        librdkafka may wait for ever here after brokers were away, whatever time limit it is given
        (its issues 5456 and 5511). So it is called beside; a producer that is stuck is left behind,
        and fenced by the next one.
        """
        producer, result = self._producer, list[BaseException | None]()

        def call() -> None:
            try:
                producer.send_offsets_to_transaction(offsets, group, _ANSWER_SECONDS)
                result.append(None)
            except BaseException as error:
                result.append(error)

        beside = threading.Thread(target=call, name="nearcast-offsets", daemon=True)
        beside.start()
        beside.join(_STUCK_SECONDS)
        if not result:
            raise _Stuck
        if result[0] is not None:
            raise result[0]

    def _give_up(self, started: float) -> None:
        if time.monotonic() - started > kafka.PATIENCE_SECONDS:
            raise RunFailed(
                f"{self.sink}: no broker has taken a batch for {kafka.PATIENCE_SECONDS:.0f} s; "
                "when they are back, start the run again, it goes on where it stopped"
            )

    def _recover(self, error: Any, started: float) -> None:
        """After a transaction that failed: have the next try begin cleanly, if there may be one."""
        codes = self._kafka.KafkaError
        if error.code() in (codes._FENCED, codes.PRODUCER_FENCED, codes.INVALID_PRODUCER_EPOCH):
            raise RunFailed(
                f"{self.sink}: another driver of this run has taken over; only one may go on, so "
                "this one stops"
            )
        if error.code() in (
            codes.UNKNOWN_TOPIC_OR_PART,
            codes._UNKNOWN_TOPIC,
            codes.TOPIC_AUTHORIZATION_FAILED,
            codes._AUTHENTICATION,
            codes.MSG_SIZE_TOO_LARGE,
        ):
            raise RunFailed(f"{self.sink}: {error.str()}; nothing of the batch was written")
        self._give_up(started)
        if error.txn_requires_abort():
            try:
                self._patiently(lambda: self._producer.abort_transaction(_ANSWER_SECONDS))
                return
            except self._kafka.KafkaException as again:
                error = again.args[0]
                if error.code() in (codes._FENCED, codes.PRODUCER_FENCED):
                    self._recover(error, started)
        self._producer = None
        time.sleep(0.1)

    def close(self) -> None:
        self._producer = None  # what was not committed is aborted, at the latest by its time limit
        self._group.close()


class _Stuck(Exception):
    """A call that does not return."""


def _nothing(error: object) -> None:
    """Errors come as results of calls as well."""


def _id_of(line: bytes) -> bytes:
    """The id of the subscription of a notification, which is its first field."""
    end = line.find(b'"', len(_BEGINNING))
    text = line[len(_BEGINNING) : end]
    if line.startswith(_BEGINNING) and b"\\" not in text:
        return text
    return msgspec.json.decode(line, type=_Line).id.encode()


class _Line(msgspec.Struct):
    id: str = ""
    file: str = ""


def _file_of(line: bytes) -> bytes:
    """The log that a reject names."""
    return msgspec.json.decode(line, type=_Line).file.encode()
