"""A replay in a process of its own, so that a test can kill it: `driver.py OPTIONS.json`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from nearcast.engine.engine import Engine
from nearcast.engine.output.reports import BatchRecord
from nearcast.engine.spark.session import create


def show(record: BatchRecord) -> None:
    print(f"batch {record.batch}", flush=True)


if __name__ == "__main__":
    options = json.loads(Path(sys.argv[1]).read_text())
    spark = create(options["master"], app="nearcast-recovery", extra=options["spark"])
    engine = Engine(**options["engine"], spark=spark)
    replay = options["replay"]
    summary = engine.replay(**replay, on_batch=show)
    print(f"done {json.dumps(summary)}", flush=True)
    spark.stop()
