"""A quick start of Spark on this machine: what its processes load, prepared once.

Most of a start goes into loading code (docs/measurements.md). Python processes of Spark find
`pyspark.zip` first on their path, which holds no byte code, and compile it each time they start;
the JVM reads and verifies its classes out of 280 jars. So, where Spark runs on this machine alone:

- `home()` is a SPARK_HOME of links to the installed pyspark without that zip: Python then imports
  the installed package, which is compiled;
- `options()` name an archive of the classes that a run loads (class-data sharing). `make_archive()`
  has it made by a process in the background, once for each Java and Spark.

Both are short cuts only: without them everything works, slower. Whoever sets SPARK_HOME gets
their own Spark, untouched.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from nearcast.model.jit import cache_home

# The JVM only carries bytes here: its second compiler would take cores from the kernels.
OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseParallelGC"
# An archive that no longer fits is ignored; the JVM need not warn whoever reads our output.
_SILENT = "-Xlog:disable -Xlog:all=error:stderr"
_TRIES = 2
_PATIENCE = 300  # seconds that another process may take for it
_makers: list[subprocess.Popen[bytes]] = []


def home() -> Path | None:
    """A SPARK_HOME for this machine, made when it is missing; None if it cannot be."""
    spec = find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations or "SPARK_HOME" in os.environ:
        return None
    installed = Path(spec.submodule_search_locations[0]).resolve()
    if not (installed / "jars").is_dir():
        return None
    name = hashlib.sha256(str(installed).encode()).hexdigest()[:16]
    folder = cache_home() / f"spark-{version('pyspark')}-{name}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for part in ("bin", "jars"):
            with suppress(FileExistsError):
                (folder / part).symlink_to(installed / part)
    except OSError:
        return None
    return folder


@contextmanager
def at_home() -> Iterator[None]:
    """While this holds, a JVM is started from `home()`."""
    folder = home()
    if folder is None:
        yield
        return
    os.environ["SPARK_HOME"] = str(folder)
    try:
        yield
    finally:
        del os.environ["SPARK_HOME"]


def archive() -> Path | None:
    """Where the archive for this Java and Spark is, or would be."""
    folder = home()
    java_home = os.environ.get("JAVA_HOME")
    java = Path(java_home, "bin", "java") if java_home else Path(shutil.which("java") or "java")
    if folder is None or not java.exists():
        return None
    java = java.resolve()
    name = hashlib.sha256(f"{java} {java.stat().st_mtime_ns}".encode()).hexdigest()[:16]
    return folder / f"classes-{name}.jsa"


def options() -> str:
    """Options of the JVM, with the archive if there is one."""
    made = archive()
    if made is None or not made.exists():
        return OPTIONS
    return f"{OPTIONS} {_SILENT} -XX:SharedArchiveFile={made}"


def make_archive() -> None:
    """Begin to make the archive where it is missing.

    The process that does it is nobody's to wait for: it ends by itself, in about a minute, at low
    priority.
    """
    target = archive()
    if target is None or target.exists():
        return
    for number in range(_TRIES):  # a machine where it fails is not tried for ever
        attempt = target.with_suffix(f".try{number}")
        try:
            attempt.open("x").close()
        except FileExistsError:
            if time.time() - attempt.stat().st_mtime < _PATIENCE:
                return
            continue
        except OSError:
            return
        # Kept, so that Python does not warn of a child that nobody waited for.
        _makers.append(
            subprocess.Popen(
                [sys.executable, "-m", "nearcast.engine.spark.class_archive", str(target)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        )
        return
