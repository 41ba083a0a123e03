"""Kernels are compiled for one form of their arguments: a second one costs a minute, silently."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nearcast.engine.envelope import unpack
from nearcast.engine.route import RouteStep
from nearcast.engine.settings import Settings
from nearcast.engine.shard import ShardStep
from nearcast.engine.state import Manifest
from nearcast.engine.warm import load_kernels
from nearcast.index.knn_match import match_knn, pass_time
from nearcast.index.range_lists import post_range
from nearcast.index.range_match import match_range
from nearcast.kernels.hashing import hash_ids
from nearcast.kernels.lines import size, write
from nearcast.kernels.slots import apply_controls
from nearcast.kernels.tokens import word_columns
from nearcast.model.space import Space
from nearcast.testing.logs import random_log
from nearcast.wire.jsonl import decode_jsonl

KERNELS: list[Any] = [
    apply_controls,
    hash_ids,
    match_knn,
    match_range,
    pass_time,
    post_range,
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
        decoded = decode_jsonl(data, settings.space)
        route = RouteStep(settings, str(tmp_path / "state"), batch)
        envelopes = [unpack(e) for _, e in route.envelopes(decoded, 0, batch == 2)]
        manifest, _ = step.process(0, envelopes, manifest)
    assert {k.__name__: set(k.signatures) for k in KERNELS} == before
