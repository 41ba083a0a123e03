"""`bench dskype` at a tiny size: every mechanism is right, and the experiment notices if not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nearcast.model.errors import NearcastError
from nearcast_bench.dskype import distributed
from nearcast_bench.dskype.claims import claims
from nearcast_bench.dskype.distributed import run_distributed, run_one
from nearcast_bench.dskype.full import Full, run_full
from nearcast_bench.dskype.setting import (
    FIGURES,
    KEYWORD,
    MECHANISMS,
    PREFIX,
    SMALL,
    TABLE_5,
    check,
)

TINY = replace(
    SMALL, subscriptions=80, window=300, messages=60, step=30, shards=4, k=2, seeds=1, checked=8,
    ks=(1, 3), bolts=(2, 4), times=(1, 2), placed=80, full_window=300,
)  # fmt: skip


@pytest.fixture
def words(tmp_path: Path) -> str:
    """A file of messages with few words."""
    n = 400
    table = pa.table({
        "lon": [float(i * 7 % 31) for i in range(n)],
        "lat": [float(i * 11 % 17) for i in range(n)],
        "keywords": [[f"w{(i * j) % 13}" for j in range(1, 2 + i % 5)] for i in range(n)],
    })  # fmt: skip
    path = tmp_path / "messages.parquet"
    pq.write_table(table, path)
    return str(path)


def test_all_figures_from_a_file(words: str) -> None:
    said = list(run_distributed(replace(TINY, data=(words,)), lambda _: None))
    assert {f["figure"] for f in said} == set(FIGURES)
    assert all(f["compared_with_scan"] == 8 for f in said if f["figure"] != TABLE_5)
    by_name = {f["mechanism"]: f for f in said if f["figure"] == "21"}
    assert list(by_name) == list(MECHANISMS)
    changes = {f["changes_per_message"] for f in by_name.values()}
    assert len(changes) == 1  # what is reported does not depend on the mechanism
    assert changes.pop() > 0
    assert by_name["hash"]["communication"] == by_name["location"]["communication"] == 4
    assert by_name[PREFIX]["replication"] <= by_name[KEYWORD]["replication"] <= 4
    judged = list(claims(said))
    assert {c["figure"] for c in judged} >= {"21(a)", "22", "23", "24", "25", "26", "table 5"}


def test_a_wrong_result_is_no_figure(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributed, "scanned", lambda *_: [[(0.5, -1)]] * 8)
    with pytest.raises(NearcastError, match="wrong result"):
        run_one("hash", words, TINY, 3)


def test_nonsense_is_refused() -> None:
    for bad, text in ((replace(TINY, figures=("20",)), "no figure"),
                      (replace(TINY, shards=6), "a power of two")):  # fmt: skip
        with pytest.raises(NearcastError, match=text):
            check(bad)
    with pytest.raises(NearcastError, match="no data"):
        run_one("hash", "nowhere.parquet", TINY, 3)


def test_full_runs_its_processes_and_checks_them(words: str) -> None:
    full = Full(120, 300, 60, 30, 2, 3, (words,), checked=3)
    (figure,) = run_full(full, lambda _: None)
    assert figure["subscriptions"] == 120
    assert figure["processes"] == 2
    assert figure["compared_with_scan"] == 2
    assert figure["bytes_per_subscription"] > 0
    assert len(list(claims([figure]))) == 2
