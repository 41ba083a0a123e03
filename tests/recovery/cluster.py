"""A standalone Spark cluster on this machine: a master and workers of one core each."""

from __future__ import annotations

import os
import signal
import socket
import sys
from pathlib import Path

import pyspark
from tests.recovery.process import Session

HOME = Path(pyspark.__file__).parent


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


class Cluster:
    """Use it as a context; every process it started has ended when the context has."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self.folder, self.count = folder, workers
        self.url = f"spark://127.0.0.1:{free_port()}"
        self.sessions: list[Session] = []

    def __enter__(self) -> Cluster:
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for session in reversed(self.sessions):
            session.kill()

    def _start(self) -> None:
        port = self.url.rpartition(":")[2]
        master = self._launch("master", "master.Master", "--port", port)
        master.wait_for_text("I have been elected leader")
        for n in range(self.count):
            work = str(self.folder / f"work-{n}")
            size = ["--cores", "1", "--memory", "1g", "--work-dir", work]
            self._launch(f"worker-{n}", "worker.Worker", *size, self.url)
        for worker in self.sessions[1:]:
            worker.wait_for_text("Successfully registered with master")

    def _launch(self, name: str, what: str, *options: str) -> Session:
        command = [str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{what}"]
        command += ["--host", "127.0.0.1", "--webui-port", "0", *options]
        environment = {
            "SPARK_HOME": str(HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "PYSPARK_PYTHON": sys.executable,
            # Executors inherit it: nearcast may be on the path without being installed.
            "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
        }
        session = Session(command, self.folder / f"{name}.log", environment)
        self.sessions.append(session)
        return session

    def executors(self) -> list[int]:
        """Process ids of the executors that run."""
        found = []
        for session in self.sessions[1:]:
            for pid in session.members():
                try:
                    command = Path(f"/proc/{pid}/cmdline").read_bytes()
                except OSError:
                    continue
                if b"CoarseGrainedExecutorBackend" in command:
                    found.append(pid)
        return found

    def kill_executor(self) -> None:
        """-9 to one of them; its workers end with it, and the cluster starts another one."""
        os.kill(self.executors()[0], signal.SIGKILL)
