"""Reading topics of Kafka: ranges of offsets, which are the same whenever they are read.

confluent-kafka (librdkafka) is an extra. It is loaded when a topic is read for the first time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.model.errors import NearcastError

__all__ = [
    "OURS",
    "Connections",
    "Reader",
    "Records",
    "Settings",
    "checked_settings",
    "client",
    "client_settings",
    "named",
    "reader_of",
]

Settings = Mapping[str, Any]
"""Settings of librdkafka."""
Connections = Mapping[str, Settings]
"""By topic: how to reach its brokers."""

PATIENCE_SECONDS = 300.0
"""How long brokers may be away before a reader or a sink gives up."""
SETTLED_SECONDS = 5.0
"""How long a topic must be gone, or shorter than it was: brokers that start say so for a moment."""
_MANY = 10_000  # records at a time

_SMALL_STEPS = {
    "fetch.message.max.bytes": 1 << 18,
    "queued.min.messages": 2000,
    "fetch.queue.backoff.ms": 1,
}
"""What is fetched beyond the end of a range is thrown away, so little is fetched ahead. A range of
1,000 records took a third of the processor and an eighth of the time that it does with librdkafka's
own values, one of 50,000 two thirds and an eighth."""

OURS = {
    "group.id": "the run itself remembers what it has read",
    "enable.auto.commit": "the run itself remembers what it has read",
    "enable.auto.offset.store": "the run itself remembers what it has read",
    "auto.offset.reset": "`start` of the source says where to begin",
    "isolation.level": "only what is committed is read",
    "enable.partition.eof": "the run needs it",
    "bootstrap.servers": "it has a key of its own, bootstrap",
    "transactional.id": "the name of the run is used",
    "enable.idempotence": "a sink always writes so",
}
"""Settings that a run makes itself, and why."""


class Records(NamedTuple):
    """Some records of a partition, in order."""

    offsets: NDArray[np.int64]
    messages: list[Any]  # of confluent_kafka


def client() -> Any:
    """The module `confluent_kafka`."""
    try:
        import confluent_kafka
    except ImportError as error:
        raise NearcastError(
            "Kafka needs the package confluent-kafka: install nearcast[kafka], on all machines "
            f"({error})"
        ) from error
    return confluent_kafka


def checked_settings(options: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that a user gives, as librdkafka takes them; those that a run makes are refused."""
    for name in options:
        if name in OURS:
            raise NearcastError(f"options {name} has no effect: {OURS[name]}; leave it out")
    return {n: str(v).lower() if isinstance(v, bool) else v for n, v in options.items()}


def client_settings(bootstrap: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """How to reach brokers. What librdkafka says besides is left out: errors are told by us."""
    usual = {"log_level": 2, "bootstrap.servers": bootstrap, "reconnect.backoff.max.ms": 1000}
    return usual | checked_settings(options)


def named(topic: str, partition: int) -> str:
    """A partition, for people and in rejects."""
    return f"topic {topic}, partition {partition}"


class Reader:
    """Reads ranges of offsets, one after the other, over one connection."""

    def __init__(self, settings: Settings) -> None:
        self._kafka = client()
        own = {
            "group.id": "nearcast",  # is never joined
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            # A range begins as soon as the one before it has been given up.
            "fetch.wait.max.ms": 10,
        }
        try:
            self._consumer = self._kafka.Consumer(
                {**_SMALL_STEPS, **settings, **own, "error_cb": _nothing}
            )
        except self._kafka.KafkaException as error:
            raise NearcastError(f"Kafka: {error.args[0].str()}") from error

    def read(
        self,
        topic: str,
        partition: int,
        start: int,
        end: int,
        patience: float = PATIENCE_SECONDS,
    ) -> Records:
        """Every record with `start` <= offset < `end`; offsets between may belong to none.

        `patience`: seconds that brokers may be away.
        """
        self._consumer.assign([self._kafka.TopicPartition(topic, partition, start)])
        try:
            return self._read(named(topic, partition), start, end, patience)
        finally:
            self._consumer.unassign()

    def _read(self, name: str, start: int, end: int, patience: float) -> Records:
        found: list[Any] = []
        offsets: list[int] = []
        began = time.monotonic()
        moved, troubled = began, 0.0
        while True:
            first = self._consumer.poll(0.5)
            now = time.monotonic()
            if first is None:
                if now - moved > patience:
                    raise NearcastError(
                        f"{name}: no broker has answered for {patience:.0f} s; when they "
                        "are back, start the run again, it goes on where it stopped"
                    )
                continue
            at = start
            for message in (first, *self._consumer.consume(_MANY, 0)):
                error = message.error()
                if error is None:
                    at = message.offset()
                    if at < end:
                        offsets.append(at)
                        found.append(message)
                        moved, troubled = now, 0.0
                elif self._is_end(error):
                    at = message.offset()
                    if at < end:
                        troubled = self._trouble(troubled, f"{name}: offset {end - 1:,} is gone")
                else:
                    troubled = self._check(error, name, start, troubled)
                if at >= end:
                    return Records(np.array(offsets, np.int64), found)

    def _is_end(self, error: Any) -> bool:
        return bool(error.code() == self._kafka.KafkaError._PARTITION_EOF)

    def _check(self, error: Any, name: str, start: int, troubled: float) -> float:
        """Raise what does not pass; since when there is trouble, if it may."""
        codes, code = self._kafka.KafkaError, error.code()
        if code in (codes._AUTO_OFFSET_RESET, codes.OFFSET_OUT_OF_RANGE):
            raise NearcastError(gone(name, start))
        if code in (codes.UNKNOWN_TOPIC_OR_PART, codes._UNKNOWN_TOPIC, codes._UNKNOWN_PARTITION):
            return self._trouble(troubled, f"{name}: there is no such topic any more")
        if code in (codes.TOPIC_AUTHORIZATION_FAILED, codes._AUTHENTICATION) or error.fatal():
            raise NearcastError(f"{name}: {error.str()}")
        return troubled

    def _trouble(self, since: float, what: str) -> float:
        """Since when it is so; raised when it stays."""
        now = time.monotonic()
        if since and now - since > SETTLED_SECONDS:
            raise NearcastError(f"{what}, and this run has planned to read it; {NO_WAY_BACK}")
        return since or now

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()


NO_WAY_BACK = "restore the topic, or begin a new checkpoint"


def gone(name: str, offset: int) -> str:
    """What to say where records were deleted that a run has not read."""
    return (
        f"{name}: records from offset {offset:,} on were deleted before this run read them; "
        "let the topic retain records for longer, and begin a new checkpoint"
    )


def _nothing(error: object) -> None:
    """Errors come with the records as well."""


_READERS: dict[tuple[int, str], Reader] = {}


def reader_of(settings: Settings) -> Reader:
    """The reader of this process with these settings; it stays for the next batch."""
    key = os.getpid(), repr(sorted(settings.items()))
    if key not in _READERS:
        _READERS[key] = Reader(settings)
    return _READERS[key]
