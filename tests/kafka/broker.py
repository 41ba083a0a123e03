"""A real Apache Kafka broker in KRaft mode on loopback, and the console consumer of its jars.

Maven gets the jars, once per machine; it is installed where it is missing and that is allowed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from nearcast.model.jit import cache_home

POM = Path(__file__).with_name("pom.xml")
MAVEN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
CLUSTER = "bmVhcmNhc3QtdGVzdHMtMQ"  # 16 bytes, as Kafka writes them
PATIENCE_SECONDS = 240
_RECORD, _FIELD = "\x1e", "\x1f"
_LEAN = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]


def jars() -> Path:
    """The folder of the jars of `pom.xml`."""
    digest = POM.read_bytes()
    folder = cache_home() / "kafka-jars"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two workers of pytest may want them at once
        stamp = folder / "pom.xml"
        if not stamp.exists() or stamp.read_bytes() != digest:
            into = folder / "jars"
            shutil.rmtree(into, ignore_errors=True)
            _run([_maven(), "-q", "-B", "-f", str(POM), MAVEN, f"-DoutputDirectory={into}"])
            stamp.write_bytes(digest)
    return folder / "jars"


def _maven() -> str:
    found = shutil.which("mvn")
    if found is None and os.getuid() == 0 and shutil.which("apt-get"):
        _run(["apt-get", "update"])
        _run(["apt-get", "install", "-y", "--no-install-recommends", "maven"])
        found = shutil.which("mvn")
    assert found, "these tests need Maven: install it (Debian, Ubuntu: maven)"
    return found


def _run(command: list[str]) -> None:
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=900, check=False, env=env
    )
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}"


def _java(*args: str) -> list[str]:
    java = Path(os.environ.get("JAVA_HOME", ""), "bin", "java")
    program = str(java) if java.exists() else "java"
    return [program, *_LEAN, "-cp", f"{jars()}/*", *args]


def free_ports(n: int) -> list[int]:
    """Ports that nobody listens on."""
    sockets = [socket.socket() for _ in range(n)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Broker:
    """A broker that can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        port, controller = free_ports(2)
        self.port = port
        self.address = f"127.0.0.1:{port}"
        self._properties = folder / "server.properties"
        own = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(folder / "data"),
            "offsets.topic.num.partitions": "1",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "auto.create.topics.enable": "false",
            "log.retention.check.interval.ms": "500",
            "log.initial.task.delay.ms": "500",
            "file.delete.delay.ms": "100",
        }
        self._properties.write_text("".join(f"{k}={v}\n" for k, v in own.items()))
        self._process: subprocess.Popen[bytes] | None = None
        _run(_java("kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", self._config))
        self.start()
        self.admin = AdminClient({"bootstrap.servers": self.address, "log_level": 0})

    @property
    def _config(self) -> str:
        return str(self._properties)

    def properties(self) -> str:
        """How it is set up."""
        return self._properties.read_text()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        with (self.folder / "broker.log").open("ab") as log:
            self._process = subprocess.Popen(
                _java("kafka.Kafka", self._config), stdout=log, stderr=log
            )
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self.listens():
            assert self._process.poll() is None, "the broker ended by itself"
            assert time.monotonic() < deadline, "the broker does not listen"
            time.sleep(0.05)

    def listens(self) -> bool:
        """Whether it takes connections."""
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    def kill(self) -> None:
        """-9."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    # -- topics ----------------------------------------------------------------------------------

    def make(self, topic: str, partitions: int = 1, **config: str) -> str:
        """A new topic; `config` with _ for dots."""
        new = NewTopic(
            topic, partitions, config={k.replace("_", "."): v for k, v in config.items()}
        )
        for future in self.admin.create_topics([new]).values():
            future.result()
        return topic

    def delete(self, topic: str) -> None:
        """Delete a topic."""
        for future in self.admin.delete_topics([topic]).values():
            future.result()

    def widen(self, topic: str, partitions: int) -> None:
        """Give a topic more partitions."""
        for future in self.admin.create_partitions([NewPartitions(topic, partitions)]).values():
            future.result()

    def write(
        self,
        topic: str,
        values: Iterable[bytes | None],
        keys: Iterable[bytes | None] | None = None,
        partition: int | None = None,
    ) -> None:
        """Write records; it waits until the broker has them."""
        failed: list[Any] = []
        producer = Producer(
            {"bootstrap.servers": self.address, "message.max.bytes": 20_000_000, "linger.ms": 1}
        )
        where = {} if partition is None else {"partition": partition}
        for value, key in zip(values, keys, strict=True) if keys else ((v, None) for v in values):
            producer.produce(
                topic, value, key, on_delivery=lambda e, _: failed.append(e) if e else None, **where
            )
        assert producer.flush(60) == 0
        assert not failed

    def read(self, topics: str, wait_ms: int = 4000) -> list[dict[str, str]]:
        """All that is committed in topics (a pattern), by the console consumer: partitions,
        headers, keys, values."""
        done = subprocess.run(
            _java(
                "org.apache.kafka.tools.consumer.ConsoleConsumer",
                *("--bootstrap-server", self.address, "--include", topics, "--from-beginning"),
                *("--isolation-level", "read_committed", "--timeout-ms", str(wait_ms)),
                *("--property", "print.key=true"),
                *("--property", "print.headers=true"),
                *("--property", "print.partition=true"),
                # Ids may hold line breaks and tabs.
                *("--property", f"line.separator={_RECORD}"),
                *("--property", f"key.separator={_FIELD}"),
                *("--property", f"headers.separator={_FIELD}"),
            ),
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        found = []
        for line in done.stdout.split(_RECORD)[:-1]:
            partition, headers, key, value = line.split(_FIELD)
            found.append({"partition": partition, "headers": headers, "key": key, "value": value})
        assert "Processed a total of" in done.stderr, done.stderr[-2000:]
        return found
