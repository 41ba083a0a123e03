"""Fuzzed lines: a part of `nearcast bench fuzz`, and that it would see what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from nearcast.model.errors import Invalid, NearcastError
from nearcast.wire import jsonl
from nearcast.wire.decode import Decoded
from nearcast_bench.fuzz import experiment
from nearcast_bench.fuzz.experiment import run_fuzz
from nearcast_bench.fuzz.lines import fuzzed


def run(lines: int) -> Iterator[dict[str, Any]]:
    return run_fuzz(lines, 11, False, lambda _: None)


def test_twenty_thousand_lines() -> None:
    figure, claim = run(20_000)
    assert figure["such_as"] == []
    assert claim["held"] is True
    assert figure["blank"] + figure["accepted"] + figure["rejected"] == figure["lines"] == 20_000
    assert figure["accepted"] > 2_000  # much of it is nearly right
    assert len(figure["by_field"]) == 12


def test_the_same_seed_is_the_same_lines() -> None:
    one, two, other = fuzzed(5), fuzzed(5), fuzzed(6)
    lines = [one() for _ in range(500)]
    assert lines == [two() for _ in range(500)]
    assert lines != [other() for _ in range(500)]
    assert not any(b"\n" in line for line in lines)


def test_another_judgement_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise Invalid("all of it")

    monkeypatch.setattr(experiment, "read_event", refuse)
    figure, claim = run(1_000)
    assert figure["judged_differently"] > 100
    assert claim["held"] is False


@pytest.mark.parametrize("change", ["lost", "no reason"])
def test_a_line_without_a_trace_is_seen(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    decode = jsonl.decode_jsonl

    def careless(*args: Any, **named: Any) -> Decoded:
        decoded = decode(*args, **named)
        rejects = decoded.rejects
        if change == "lost":
            decoded.rejects = rejects.slice(1)
        else:
            at = rejects.schema.get_field_index("reason")
            none = pa.array([""] * rejects.num_rows, pa.string())
            decoded.rejects = rejects.set_column(at, rejects.schema.field(at), none)
        return decoded

    monkeypatch.setattr(experiment, "decode_jsonl", careless)
    with pytest.raises(NearcastError, match="bench: "):
        list(run(1_000))
