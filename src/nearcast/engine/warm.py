"""Compiling the kernels before they are needed, once a machine, with word of it."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from nearcast.engine.settings import Settings
from nearcast.index.arena import Memory
from nearcast.index.notify import render
from nearcast.model.jit import cache_dir
from nearcast.routing import choose
from nearcast.wire.jsonl import decode_jsonl
from nearcast.wire.tables import numbers, object_columns

_LOG = b"""\
{"op":"subscribe","id":"r","time":0,"query":{"kind":"range","region":{"bbox":[0,0,1,1]},"where":"a OR NOT b"}}
{"op":"subscribe","id":"p","time":0,"query":{"kind":"range","region":{"type":"Polygon","coordinates":[[[0,0],[1,0],[0,1],[0,0]]]},"where":"a"}}
{"op":"subscribe","id":"k","time":0,"query":{"kind":"knn","at":[0,0],"k":1,"window":5,"where":"a"}}
{"op":"publish","id":"1","time":0,"at":[0.5,0.5],"text":"a"}
{"op":"publish","id":"2","time":1,"at":[0.1,0.1],"text":"a"}
{"op":"publish","id":"3","time":9,"at":[0.2,0.1],"text":"a"}
"""


def is_warm() -> bool:
    """Whether this machine has compiled these kernels before."""
    return (cache_dir() / "ready").exists()


def warm(settings: Settings) -> None:
    """Compile (or load) every kernel of a run, so that no batch waits for a compiler."""
    cold = not is_warm()
    if cold:
        print(
            "nearcast: compiling kernels, once on this machine (up to a minute) …",
            file=sys.stderr,
            flush=True,
        )
    for kind, strategy in choose(settings.strategies).items():
        decoded = decode_jsonl(_LOG, settings.space)
        index = strategy.index(kind, settings.space, Memory())
        index.apply(decoded.controls, np.zeros(decoded.controls.num_rows, np.int32))
        objects = object_columns(decoded.objects)
        render(index, index.match(objects, numbers(decoded.objects["time"]), decoded.latest))
        index.restore(index.changed())
        index.close()
        index.compact(decoded.latest)
    if cold:
        Path(cache_dir()).mkdir(parents=True, exist_ok=True)
        (cache_dir() / "ready").touch()
        print("nearcast: kernels are ready", file=sys.stderr, flush=True)
