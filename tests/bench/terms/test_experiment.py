"""`bench terms` at a tiny size, and that it notices wrong lists."""

from __future__ import annotations

import pytest

from nearcast.model.errors import NearcastError
from nearcast_bench.terms import bare
from nearcast_bench.terms.command import INDEXES
from nearcast_bench.terms.stream import Load

TINY = Load(subscriptions=60, objects=900, rate=300, every=1.5, window=2.0, area=0.02)


@pytest.mark.parametrize("index", INDEXES)
def test_all_moments_are_reported_and_right(index: str) -> None:
    (figure,) = bare.run_bare(TINY, index, 2, 300, lambda _: None)
    assert figure["objects"] == 900
    assert figure["filling"] == 600
    # Three seconds of posts; a moment passes with the first post after it.
    assert 60 * 2 - 2 <= figure["moments"] <= 60 * 2 + 2
    assert figure["checked"] > 8
    if index == "groups":
        assert figure["chosen_in_groups"] > 0


def test_a_wrong_list_is_no_timing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bare, "right_words", lambda *_: [["never", 1]])
    with pytest.raises(NearcastError, match="wrong words"):
        list(bare.run_bare(TINY, "tables", 1, 300, lambda _: None))
