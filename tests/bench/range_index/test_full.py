"""The full setting of range-index, small: two real workers, a checked answer, claims computed."""

from __future__ import annotations

import pytest

from nearcast.model.errors import NearcastError
from nearcast_bench.range_index.full import WARM, Setting, check, run_full


def test_two_workers_tell_what_a_look_at_every_query_finds() -> None:
    reported: list[str] = []
    setting = Setting(queries=100_000, group="Q1", steps=2, updates=200)
    figure, *claims = run_full(setting, reported.append)
    assert figure["checked"] > 0
    assert figure["matches_per_object"] > 0
    assert figure["copies"] >= setting.queries
    assert len(figure["step_seconds"]) == WARM + 2
    assert [c["claim"] for c in claims] == ["tuples_per_second", "bytes_per_query"]
    assert claims[0]["held"] == (figure["tuples_per_second"] >= claims[0]["target"])
    assert reported


def test_a_wrong_answer_is_refused() -> None:
    right = [[b"s1"], [b"s2"]]
    check(right, [(b"o0", b"s1"), (b"o1", b"s2"), (b"o1", b"s2")])
    for wrong in ([(b"o0", b"s1")], [(b"o0", b"s1"), (b"o1", b"s2"), (b"o1", b"s1")]):
        with pytest.raises(NearcastError, match="wrong answer"):
            check(right, wrong)
