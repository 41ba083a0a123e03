"""Compiling the kernels before they are needed, once a machine, with word of it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np

from nearcast.engine.settings import Settings
from nearcast.engine.views import sample_of
from nearcast.index.arena import Memory
from nearcast.index.notify import render, tabulate
from nearcast.kernels.jsonkeys import count_lines, line_keys
from nearcast.kernels.plain_query import read_queries
from nearcast.model.jit import cache_dir
from nearcast.routing import GridRouter, choose
from nearcast.routing.balance import CanBalance, Counts, Period
from nearcast.routing.grid.cells import comes_to, touching
from nearcast.routing.grid.reporting import tells
from nearcast.routing.grid.survey import survey_at
from nearcast.wire.jsonl import decode_jsonl
from nearcast.wire.tables import numbers, object_columns

_TRIANGLE = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [0, 1], [0, 0]]]}
_QUERIES = (
    {"kind": "range", "region": {"bbox": [0, 0, 1, 1]}, "where": "a OR NOT b"},
    {"kind": "range", "region": _TRIANGLE, "where": "a"},
    {"kind": "knn", "at": [0, 0], "k": 1, "window": 5, "where": "a"},
)
_MANY = 300  # more than the first tables hold, so that they grow
_EVENTS = [
    *(
        {"op": "subscribe", "id": f"many {n}", "time": 0, "query": {**q, "where": f"w{n}"}}
        for n in range(_MANY)
        for q in _QUERIES[::2]
    ),
    *({"op": "subscribe", "id": str(n), "time": 0, "query": q} for n, q in enumerate(_QUERIES)),
    *(
        {"op": "publish", "id": str(n), "time": 4 * n, "at": [0.5 / (n + 1), 0.1], "text": "a"}
        for n in range(3)
    ),
]
_LOG = msgspec.json.Encoder().encode_lines(_EVENTS)


def _ready(settings: Settings) -> Path:
    chosen = ",".join(f"{kind}={name}" for kind, name in sorted(settings.strategies.items()))
    return cache_dir() / f"ready {chosen}{' balance' if settings.balance.on else ''}"


def is_warm(settings: Settings) -> bool:
    """Whether this machine has compiled the kernels of such a run before."""
    return _ready(settings).exists()


def warm(settings: Settings) -> None:
    """Compile every kernel of a run once on a machine, so that no batch waits for a compiler."""
    if is_warm(settings):
        return
    _say("nearcast: compiling kernels, once on this machine (up to a minute) …")
    # Each kind in a process of its own: the compiler knows one core only.
    others = [
        subprocess.Popen([sys.executable, "-m", "nearcast.engine.warm", f"{kind}={name}"])
        for kind, name in list(settings.strategies.items())[1:]
    ]
    _load_planning(settings)
    load_kernels(settings, next(iter(settings.strategies)))
    if any(other.wait() for other in others):
        load_kernels(settings)
    cache_dir().mkdir(parents=True, exist_ok=True)
    _ready(settings).touch()
    _say("nearcast: kernels are ready")


def _say(line: str) -> None:
    """To whoever looks at a terminal; a pipe stays quiet (SPEC section 7)."""
    if sys.stderr.isatty():
        print(line, file=sys.stderr, flush=True)


def load_kernels(settings: Settings, only: str | None = None) -> None:
    """Call every kernel of a run (or of one kind of it): from the machine's cache, or compiled."""
    data = np.frombuffer(_LOG, np.uint8)
    line_keys(data, count_lines(data))
    read_queries(data, np.array([0, len(data)]))
    for kind, strategy in choose(settings.strategies).items():
        if only not in (None, kind):
            continue
        decoded = decode_jsonl(_LOG, settings.space)
        index = strategy.index(kind, settings.space, Memory())
        index.apply(decoded.controls, np.zeros(decoded.controls.num_rows, np.int32))
        objects = object_columns(decoded.objects)
        clock = numbers(decoded.objects["time"]).copy()
        for changes in index.matching(objects, clock, decoded.latest):
            index.reports(changes.slot)
            render(index, changes)
            list(tabulate([(index, changes)]))
        index.restore(index.changed())
        index.close()
        index.compact(decoded.latest)


def _load_planning(settings: Settings) -> None:
    """Call what a router by place and word needs besides: a plan, routes, the balance."""
    for kind, strategy in choose(settings.strategies).items():
        if not issubclass(strategy.router, GridRouter):
            continue
        decoded = decode_jsonl(_LOG, settings.space)
        index = strategy.index(kind, settings.space, Memory())
        index.apply(decoded.controls, np.zeros(decoded.controls.num_rows, np.int32))
        held = survey_at(index, np.arange(len(index)))
        objects = object_columns(decoded.objects)
        sample = sample_of(objects)
        router = strategy.router(2, strategy.router(2).plan(sample, held, {}))
        assert router.grid is not None
        router.copies(held)
        router.route(decoded.objects)
        none = np.empty(0, np.int64)
        tells(router.grid, 0, objects, none, none, index.asked)
        comes_to(router.grid, 0, objects.x, objects.y, objects.word_offsets, objects.words)
        if settings.balance.on and isinstance(router, CanBalance):
            period = Period(sample, held, held, held)
            balance = replace(settings.balance, threshold=1.0)
            told = [router.gather(shard, period, balance) for shard in range(2)]
            heavy = Counts(len(objects.order), 0, 1, 1, 1, 1)
            router.rebalance(told, [heavy, heavy], balance)
            every = np.ones(router.grid.cells.shape, bool)
            touching(router.grid, every, held.box_offsets, held.boxes)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        warm(Settings())
    else:
        chosen, _, strategy = sys.argv[1].partition("=")
        load_kernels(Settings(strategies={chosen: strategy}), chosen)
