"""docs/kafka.md as it is printed, with the broker of the tests at the place of its own."""

from __future__ import annotations

import inspect
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.test_examples import HERE, blocks
from tests.kafka import broker as brokers
from tests.kafka.broker import PATIENCE_SECONDS, Broker, jars
from tests.recovery.process import Session

from nearcast.engine.options.config import load_config

pytestmark = pytest.mark.spark

ADDRESS = "127.0.0.1:9092"
STARTS = ("mvn", "kafka.tools.StorageTool", "kafka.Kafka")  # what begins the broker


def check_broker(properties: str, broker: Broker) -> None:
    """What the page says of a broker is how ours was started."""
    ours = dict(line.split("=", 1) for line in broker.properties().splitlines())
    for line in properties.splitlines():
        name, value = line.split("=", 1)
        if "127.0.0.1" not in value and name != "log.dirs":
            assert ours[name] == value
        assert name in ours


def run(words: list[str], stdin: str, folder: Path) -> str:
    """A command of Kafka's own; what it prints."""
    words = [str(jars() / "*") if w == "kafka-jars/*" else w for w in words]
    java = Path(os.environ.get("JAVA_HOME", ""), "bin", "java")
    words[0] = str(java) if java.exists() else "java"
    done = subprocess.run(
        words, cwd=folder, input=stdin, capture_output=True, text=True,
        timeout=PATIENCE_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_the_page_of_kafka(broker: Broker, tmp_path: Path) -> None:
    started = inspect.getsource(brokers)
    running: list[Session] = []
    shown = ""
    try:
        for language, text in blocks("docs/kafka.md"):
            text = text.replace(ADDRESS, broker.address)
            if language == "toml":
                name = text.splitlines()[0].removeprefix("# ")
                (tmp_path / name).write_text(text)
                load_config(str(tmp_path / name))
            elif language == "sh":
                for name, content in HERE.findall(text):
                    (tmp_path / name).write_text(content)
                for line in HERE.sub("", text).splitlines():
                    words = shlex.split(line)
                    if any(word in STARTS for word in words):
                        assert all(w in started for w in words if w in STARTS or ":" in w)
                    elif words[0] == "nearcast":
                        assert words[-1] == "&"
                        command = [sys.executable, "-m", "nearcast", *words[1:-2]]
                        command.append(str(tmp_path / words[-2]))
                        running.append(Session(command, tmp_path / "run.log"))
                    else:
                        given = (tmp_path / words[-1]).read_text() if "<" in words else ""
                        shown = run(words[: words.index("<")] if given else words, given, tmp_path)
            elif language == "":
                assert shown == text
        check_broker((tmp_path / "server.properties").read_text(), broker)
        running[0].process.send_signal(signal.SIGTERM)
        assert running[0].wait() == 0, "\n".join(running[0].said()[-30:])
    finally:
        for session in running:
            session.kill()
