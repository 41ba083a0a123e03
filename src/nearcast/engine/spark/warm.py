"""Compiling the kernels before they are needed, once a machine, with word of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa

from nearcast.engine.options.settings import STORED as STORED_NEEDS
from nearcast.engine.options.settings import Settings
from nearcast.index import LocalIndex
from nearcast.index.arena import Memory
from nearcast.kernels.jsonkeys import count_lines, line_keys
from nearcast.kinds import Kind
from nearcast.kinds.strategies import Strategy
from nearcast.model.jit import cache_dir
from nearcast.objects import STORES
from nearcast.objects.base import STORED, Slicing
from nearcast.objects.tables import read_table, table_of_carried
from nearcast.wire.carried import carried_by
from nearcast.wire.jsonl import decode_jsonl
from nearcast.wire.notifications import Reported, render, tabulate
from nearcast.wire.tables import FOREVER, numbers, object_columns

_MANY = 300  # more than the first tables hold, so that they grow
_LATER = 12  # milliseconds from one batch to the next


def _log(kind: Kind) -> bytes:
    """Events that make every kernel of a kind work."""
    queries = kind.examples.warm
    events = [
        *(
            {
                "op": "subscribe",
                "id": f"many {n}",
                "time": 0,
                "query": queries[0] | {"where": f"w{n}"},
            }
            for n in range(_MANY)
        ),
        *({"op": "subscribe", "id": str(n), "time": 0, "query": q} for n, q in enumerate(queries)),
        {
            "op": "subscribe",
            "id": "short",
            "time": 0,
            "expires": 15,
            "query": queries[0] | {"where": "short"},
        },
        *(
            {"op": "publish", "id": str(n), "time": 4 * n, "at": [0.5 / (n + 1), 0.1], "text": "a"}
            for n in range(3)
        ),
        {"op": "unsubscribe", "id": "many 0", "time": 8},
    ]
    return msgspec.json.Encoder().encode_lines(events)


def _ready(settings: Settings) -> Path:
    chosen = ",".join(f"{kind}={name}" for kind, name in sorted(settings.strategies.items()))
    chosen = chosen.replace("/", "+")  # INDEX/POLICY is part of a strategy, and this a file's name
    more = " balance" if settings.balance.on else ""
    return cache_dir() / f"ready {chosen}{more}{f' {settings.store}' if settings.stores else ''}"


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
        subprocess.Popen(
            [sys.executable, "-m", "nearcast.engine.spark.warm", *words_for(settings, kind)]
        )
        for kind in list(settings.strategies)[1:]
    ]
    if settings.stores:
        command = [sys.executable, "-m", "nearcast.engine.spark.warm", "--store", settings.store]
        others.append(subprocess.Popen(command))
    _load_planning(settings)
    load_kernels(settings, next(iter(settings.strategies)))
    failed = [other.wait() for other in others]
    if any(failed):
        load_kernels(settings)
        if settings.stores:
            load_store(settings)
    cache_dir().mkdir(parents=True, exist_ok=True)
    _ready(settings).touch()
    _say("nearcast: kernels are ready")


def words_for(settings: Settings, kind: str) -> list[str]:
    """What another process must know to load the kernels of one kind of a run."""
    return [f"{kind}={settings.strategies[kind]}", *settings.plugins]


def load_one(words: Sequence[str]) -> None:
    """Load the kernels of the kind that `words_for` names."""
    kind, _, strategy = words[0].partition("=")
    load_kernels(Settings(strategies={kind: strategy}, plugins=tuple(words[1:])), kind)


def _say(line: str) -> None:
    """To whoever looks at a terminal; a pipe stays quiet (docs/spec.md section 7)."""
    if sys.stderr.isatty():
        print(line, file=sys.stderr, flush=True)


def load_kernels(settings: Settings, only: str | None = None) -> None:
    """Call every kernel of a run (or of one kind of it): from the machine's cache, or compiled."""
    for name, strategy in settings.chosen.items():
        if only not in (None, name):
            continue
        kind = strategy.kind
        log = _log(kind)
        data = np.frombuffer(log, np.uint8)
        line_keys(data, count_lines(data))
        kind.read_plain(data, np.array([0, len(data)]), settings.space)
        decoded = decode_jsonl(log, settings.space, settings.kinds, needs=kind.needs)
        controls = decoded.of(kind)
        index = strategy.make_index(settings.space, Memory())
        index.apply(controls, np.zeros(controls.num_rows, np.int32))
        objects = object_columns(decoded.objects)
        clock = numbers(decoded.objects["time"]).copy()
        texts = [] if decoded.texts is None else [decoded.texts]
        ranks = np.arange(len(clock))
        if kind.keeps:
            idf = settings.weights.hashed
            index.past = STORES[settings.store](settings.space, Memory(), kind.slicing, idf)
        for later in (0, _LATER, 2 * _LATER):  # some kernels meet only what earlier batches left
            carried = carried_by(decoded.objects, texts, ranks + later, kind.needs)
            index.carry(carried)
            if kind.keeps:
                kept, fields = read_table(table_of_carried(decoded.objects, ranks + later))
                index.past.add(kept._replace(time=kept.time + later), fields)
            time, until = objects.time + later, objects.until + later
            moved = objects._replace(time=time, clock=objects.clock + later, until=until)
            for changes in index.matching(moved, clock + later, decoded.latest + later):
                index.reports(changes.slot)
                reported = Reported(kind, index, changes)
                render(reported)
                list(tabulate([reported], settings.kinds))
            index.restore(index.changed())
            index.close()
        index.compact(decoded.latest + 2 * _LATER)


def load_store(settings: Settings) -> None:
    """Call every kernel of the store of a run: objects come in, are sealed, and are found."""
    store = STORES[settings.store](settings.space, Memory(), Slicing(delta_ms=10, least=1))
    events = [
        {"op": "publish", "id": str(n), "time": n, "at": [0.1 * n, 0.1], "text": f"a b w{n}"}
        for n in range(40)
    ]
    asks = [
        {"op": "ask", "id": "q", "time": 40, "last": last, "query": query}
        for kind in settings.kinds.values()
        for query in (kind.examples.warm if kind.answers else ())
        for last in (5, 100)
    ]
    log = msgspec.json.Encoder().encode_lines(events + asks)
    decoded = decode_jsonl(log, settings.space, settings.kinds, needs=STORED_NEEDS)
    objects = decoded.objects
    ranks = pa.array(np.arange(objects.num_rows))
    columns = [ranks if f.name == "rank" else objects[f.name] for f in STORED]
    store.add(*read_table(pa.RecordBatch.from_arrays(columns, schema=STORED)))
    for before in (0, 30):  # nothing is sealed at first
        store.seal(before)
        for name, table in decoded.asks.items():
            answers = settings.kinds[name].answers
            assert answers is not None
            answers.search(store, table, np.full(table.num_rows, FOREVER), 2)


def _load_planning(settings: Settings) -> None:
    """Call what routers need besides: plans, routes, the balance."""
    for strategy in settings.chosen.values():
        strategy.router(2).warm_up(partial(_example, settings, strategy), settings.balance)


def _example(settings: Settings, strategy: Strategy) -> tuple[LocalIndex, pa.RecordBatch]:
    """An index with the subscriptions of the log of a kind, and its objects."""
    decoded = decode_jsonl(_log(strategy.kind), settings.space, settings.kinds)
    controls = decoded.of(strategy.kind)
    index = strategy.make_index(settings.space, Memory())
    index.apply(controls, np.zeros(controls.num_rows, np.int32))
    return index, decoded.objects


if __name__ == "__main__":
    if len(sys.argv) == 1:
        warm(Settings(retain_ms=1))
        _ready(Settings()).touch()
    elif sys.argv[1] == "--store":
        load_store(Settings(store=sys.argv[2]))
    else:
        load_one(sys.argv[1:])
