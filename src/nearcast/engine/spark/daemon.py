"""The process that Spark forks Python workers from, with code and kernels loaded before the fork.

Spark starts `python -m MODULE pyspark.worker` once an executor (`spark.python.daemon.module`) and
forks a worker whenever a task needs one. Loading NumPy, Arrow, Numba and the kernels takes seconds
of processor time; here it is spent once, not in each of the workers of the first batch.
"""

from __future__ import annotations

import gc
import sys


def load() -> None:
    """What every worker of a run needs."""
    import pandas
    import pyspark.worker

    import nearcast.engine.route.step
    import nearcast.engine.shard.step
    import nearcast.engine.spark.steps
    from nearcast.engine.options.settings import Settings
    from nearcast.engine.spark.warm import load_kernels

    load_kernels(Settings())
    del nearcast, pandas, pyspark
    # A worker collects garbage after each task. It need not look through all of this each time,
    # which also would make it copy the memory that it shares with the others.
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    if sys.argv[1:2] == ["pyspark.worker"]:  # other modules are Spark's own helpers
        load()
    from pyspark.daemon import manager

    manager()
