"""After the warm-up no search waits for the compiler."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher
from tests.objects.comparing import searches
from tests.objects.making import Post, Query, objects_of

from nearcast.engine.options.settings import Settings
from nearcast.engine.spark.warm import load_store
from nearcast.index.arena import Arena, Memory, Storage
from nearcast.model.region import Bbox, Circle
from nearcast.model.space import Space
from nearcast.objects import STORES
from nearcast.objects.base import NOT_SEALED, Slicing


def compiled() -> dict[str, list[object]]:
    """Kernels of stores, and for which arguments each was compiled."""
    return {
        f"{d.py_func.__module__}.{d.py_func.__name__}": list(d.signatures)
        for d in gc.get_objects()
        if isinstance(d, Dispatcher) and d.py_func.__module__.startswith("nearcast.objects")
    }


def use_a_warm_store(name: str, memory: Path) -> None:
    """Fail if a store needs more kernels than its warm-up has loaded."""
    load_store(Settings(store=name))
    before = compiled()
    assert sum(map(len, before.values())) > 8  # those that Python calls
    places: list[Storage] = [Memory(), Arena(memory / "run" / "arena")]
    for storage in places:
        store = STORES[name](Space.PLANAR, storage, Slicing(10, 1, 100))
        for first in range(0, 60, 20):
            posts = [Post(n, n, first + n, {"a": 300, "b": 1}, text=b"1") for n in range(20)]
            store.add(*objects_of(posts, first))
            store.seal(first)
        table = store.snapshot(NOT_SEALED)
        store.clear()
        store.restore(NOT_SEALED, table)
        store.restore(10**6, table)
        found = searches(
            store,
            [
                Query(where="a OR c", region=Bbox(0, 0, 9, 9), k=3, keywords={"a": 1.0}),
                Query(where="NOT c", region=Circle(3, 3, 4), limit=2, exclude=("a",)),
            ],
        )
        store.rows(np.array(found["within"][1]))
    after = compiled()
    assert after == before, [k for k in after if after[k] != before.get(k)]


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in STORES if n != "scan"])
def test_nothing_is_compiled_after_the_warm_up(name: str, memory: Path) -> None:
    """In a process of its own: other tests have compiled what they needed in this one."""
    program = (
        "import sys, pathlib; from tests.objects.test_warming import use_a_warm_store; "
        "use_a_warm_store(sys.argv[1], pathlib.Path(sys.argv[2]))"
    )
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join([root, *sys.path])
    run = subprocess.run(
        [sys.executable, "-c", program, name, str(memory)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
