"""Objects by reference: a shard reads the same rows as when they go inside its envelopes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.engine.contract import run_log

from nearcast.engine.options.settings import Settings
from nearcast.engine.route.envelope import unpack
from nearcast.engine.route.step import RouteStep
from nearcast.kinds import KINDS
from nearcast.model.space import Space
from nearcast.testing.cases import busy_log, publish
from nearcast.wire.jsonl import decode_jsonl


@pytest.mark.parametrize("kinds", [(), ("range",)])
def test_the_same_rows(tmp_path: Path, kinds: tuple[str, ...]) -> None:
    """Without a kind in use, objects go only to the shards that store them."""
    log = [publish(f"o{n}", n, n % 9, 1, "abcdef"[n % 6]) for n in range(60)]
    settings = Settings(space=Space.PLANAR, shards=3, retain_ms=5, arena="nowhere")
    lines = "\n".join(map(json.dumps, log)).encode()
    decoded = decode_jsonl(lines, Space.PLANAR, KINDS, needs=settings.stored)
    found = []
    for mail in ("", str(tmp_path / "mail")):
        step = RouteStep(replace(settings, mail=mail), str(tmp_path / "state"), 0)
        sent = [unpack(e) for _, e in step.envelopes(decoded, 0, kinds=kinds)]
        assert all(bool(e.mail) == bool(mail) for e in sent)
        found.append([e.object_table for e in sent])
    assert [t.to_pylist() for t in found[0]] == [t.to_pylist() for t in found[1]]
    assert sum(t.num_rows for t in found[0]) == (180 if kinds else 60)


@pytest.mark.parametrize("router", ["tornado", "ps2stream"])
def test_a_run_by_reference(tmp_path: Path, memory: Path, router: str) -> None:
    settings = Settings(
        space=Space.PLANAR, shards=3, strategies={"range": router}, warmup=20, arena=str(memory),
        mail=str(memory / "mail"),
    )  # fmt: skip
    run_log(tmp_path, busy_log(3, Space.PLANAR, 200, 0.0), settings, 25)
    assert not list((memory / "mail").glob("*"))  # the sink clears what is done
