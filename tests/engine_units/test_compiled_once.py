"""Kernels are compiled for one form of their arguments: a second one costs a minute, silently."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nearcast.engine.options.settings import Settings
from nearcast.engine.route.envelope import unpack
from nearcast.engine.route.step import RouteStep
from nearcast.engine.shard.state import Manifest
from nearcast.engine.shard.step import ShardStep
from nearcast.engine.spark.warm import _ready, load_kernels, load_one, words_for
from nearcast.index.balls.match import match_balls, pass_time
from nearcast.index.regions.lists import post_regions
from nearcast.index.regions.match import match_regions
from nearcast.kernels.hashing import hash_ids
from nearcast.kernels.lines import size, write
from nearcast.kernels.slots import apply_controls
from nearcast.kernels.tokens import word_columns
from nearcast.model.jit import cache_dir
from nearcast.model.space import Space
from nearcast.testing.logs import random_log
from nearcast.wire.jsonl import decode_jsonl
from nearcast.wire.kind import needs_of

KERNELS: list[Any] = [
    apply_controls,
    hash_ids,
    match_balls,
    match_regions,
    pass_time,
    post_regions,
    size,
    word_columns,
    write,
]


@pytest.mark.parametrize("by_reference", [False, True])
@pytest.mark.parametrize("order", ["time", "arrival"])
def test_a_run_needs_nothing_that_was_not_loaded(
    tmp_path: Path, order: str, by_reference: bool
) -> None:
    mail = str(tmp_path / "mail") if by_reference else ""
    settings = Settings(shards=1, order=order, mail=mail, arena=str(tmp_path / "arena"))
    load_kernels(settings)
    before = {k.__name__: set(k.signatures) for k in KERNELS}
    log = random_log(3, Space.GEOGRAPHIC, 120)
    step = ShardStep(settings, str(tmp_path / "state"), "run", str(tmp_path / "out"))
    manifest = Manifest()
    batches: list[list[Any]] = [log[:60], log[60:], ["broken"]]
    for batch, lines in enumerate(batches):
        data = "\n".join(json.dumps(line) for line in lines).encode()
        needs = needs_of(settings.kinds)
        decoded = decode_jsonl(data, settings.space, settings.kinds, needs=needs)
        route = RouteStep(settings, str(tmp_path / "state"), batch)
        envelopes = [unpack(e) for _, e in route.envelopes(decoded, 0, batch == 2)]
        manifest, _ = step.process(0, envelopes, manifest)
    assert {k.__name__: set(k.signatures) for k in KERNELS} == before


def test_a_process_loads_a_kind_of_a_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kinds are loaded side by side, each by a process that knows no more than its words."""
    loaded: list[tuple[Settings, str | None]] = []
    monkeypatch.setattr(
        "nearcast.engine.spark.warm.load_kernels",
        lambda settings, only: loaded.append((settings, only)),
    )
    settings = Settings(plugins=("tests.kinds.count",))
    assert list(settings.strategies) == ["range", "knn", "topk", "terms", "count"]
    for kind in settings.strategies:
        load_one(words_for(settings, kind))
    assert loaded == [(settings, kind) for kind in settings.strategies]


def test_strategies_with_a_policy_leave_a_mark_like_all_others() -> None:
    """A slash in the name of a strategy was one in the name of a file, and no run began."""
    plain = Settings(strategies={"topk": "hash+reach"})
    of_policy = Settings(strategies={"topk": "hash+reach/kmax=2"})
    assert _ready(of_policy).parent == _ready(plain).parent == cache_dir()
    assert _ready(of_policy) != _ready(plain)
