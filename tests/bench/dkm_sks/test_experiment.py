"""The experiment of DkM-SKS runs, checks its answers, and judges claims by the figures alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nearcast.model.errors import NearcastError
from nearcast_bench.dkm_sks.claims import claims
from nearcast_bench.dkm_sks.deal import ALGORITHMS, chosen, main_server
from nearcast_bench.dkm_sks.experiment import points, run
from nearcast_bench.dkm_sks.load import Setting, check_results, load, new_index, register
from nearcast_bench.dkm_sks.measure import CHANGES, Measured
from nearcast_bench.dkm_sks.paper import AXES, FIRST
from nearcast_bench.dkm_sks.plots import plots
from nearcast_bench.dkm_sks.source import Source

SMALL = Setting(subscriptions=300, objects=400, workers=2, ticks=2)
NAMES = [a.name for a in ALGORITHMS]


def _quiet(_: str) -> None: ...


def test_a_small_run(tmp_path: Path) -> None:
    reported = list(run(SMALL, None, ALGORITHMS, None, _quiet))
    by = {t["algorithm"]: t for t in reported if "algorithm" in t}
    assert list(by) == NAMES
    assert len({t["changes_per_object"] for t in by.values()}) == 1
    assert by["dkm-sks+pyramid"]["examined_per_change"] <= by["kop"]["examined_per_change"]
    assert all(len(t["knn_ms_by_worker"]) == 2 for t in by.values())
    assert all(isinstance(t["held"], bool) for t in reported if "claim" in t)
    drawn = [p.name for p in plots(reported, tmp_path)]
    assert drawn == ["dkm-sks-figure-7-place.svg", "dkm-sks-table-3-place.svg"]


def test_a_series_loads_once_for_all_m(tmp_path: Path) -> None:
    said: list[str] = []
    reported = list(run(SMALL, None, chosen(["hash+pyramid", "dkm-sks"]), "m", said.append))
    assert len([s for s in said if "loading" in s]) == 1
    assert [t["workers"] for t in reported if t.get("algorithm") == "dkm-sks"] == [
        5,
        10,
        15,
        20,
        25,
    ]
    drawn = [p.name for p in plots(reported, tmp_path)]
    assert drawn == [
        "dkm-sks-figure-8-update-time-place.svg",
        "dkm-sks-figure-8-load-balance-place.svg",
    ]


def test_all_series_vary_what_their_figure_names() -> None:
    found: dict[str, set[float]] = {}
    for what, setting in points(SMALL, "all"):
        found.setdefault(what, set()).add(getattr(setting, AXES[what]))
    assert {what: len(values) for what, values in found.items()} == {
        "figure 8": 5,
        "figure 9": 4,
        "figure 10": 5,
    }


def test_an_unknown_algorithm_is_named() -> None:
    with pytest.raises(NearcastError, match="no algorithm 'kob'; there are ps2stream, kop"):
        chosen(["kop", "kob"])


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=NAMES)
def test_every_subscription_has_one_worker(algorithm: Any) -> None:
    loaded = load(SMALL, Source("place", 1), 2)
    server = main_server(loaded, algorithm, 3)
    assert server.homes.shape == (300,)
    assert set(server.homes.tolist()) <= {0, 1, 2}
    came = server.insert(loaded.ticks[0].insertions)
    assert len(came) == 100
    assert set(came.tolist()) <= {0, 1, 2}
    shares = [c for w in range(3) for c, _ in loaded.shares(server.homes, w)]
    assert sum(c.num_rows for c in shares) == 300


def test_shares_carry_their_results() -> None:
    loaded = load(SMALL, Source("place", 1), 1)
    index, _, _ = register(SMALL, Source("place", 1))
    homes = np.arange(300) % 3
    for worker in range(3):
        ((controls, results),) = loaded.shares(homes, worker)
        wanted = index.rows(np.flatnonzero(homes == worker))
        assert controls["id"].equals(wanted[0]["id"])
        assert results.equals(wanted[1])


def test_a_wrong_result_stops_it() -> None:
    index, _, _ = register(SMALL, Source("place", 1))
    objects = Source("place", 2).objects(400)
    with pytest.raises(NearcastError, match="wrong results"):
        check_results(index, objects)


def test_places_of_a_file(tmp_path: Path) -> None:
    words = [["services", 'a "b" & c'], ["x"], [str(i) for i in range(9)], []]
    rows = {"lon": [1.0, 2.0, 3.0, 4.0], "lat": [5.0, 6.0, 7.0, 8.0], "keywords": words}
    path = tmp_path / "places.parquet"
    pq.write_table(pa.table(rows), path)
    source = Source("place", 1, str(path))
    assert source.name == "places"
    objects = source.objects(6)
    assert objects.x.tolist() == [1.0, 2.0, 3.0, 4.0, 1.0, 2.0]
    assert np.diff(objects.word_offsets).tolist() == [2, 1, 9, 0, 2, 1]
    index = new_index("pyramid")
    queried = source.insertions(50, 3, 0)
    assert queried.num_rows == 50
    index.apply(queried, np.zeros(50, np.int32))
    index.find_results(objects, False)
    index.close()
    check_results(index, objects)
    cover = queried["cover"].to_pylist()
    assert max(len(c) for c in cover) == 5
    held = set(objects.words.tolist())
    assert sum(set(c) <= held for c in cover) == 50


def test_balance_of_ticks_and_of_workers() -> None:
    knn = np.array([[1.0, 3.0, 1.0], [3.0, 1.0, 1.0]])
    counts = np.zeros((2, 3, 4), np.int64)
    counts[:, :, CHANGES] = [[1, 1, 1], [2, 2, 2]]
    got = Measured(knn, 0 * knn, 0 * knn, counts)
    assert got.balance == pytest.approx(4 / 3)
    assert got.lasting_balance == 0.0
    assert got.spread(CHANGES) == pytest.approx(3 / 4.5)


def _reported(figure: str, algorithm: str, update: float, **more: Any) -> dict[str, Any]:
    return {
        "figure": figure, "algorithm": algorithm, "workload": "place", "update_ms": update,
        "update_ms_by_tick": list(np.linspace(update, 2 * update, 6)), "knn_ms": update,
        "insert_ms": update, "delete_ms": update, "load_balance_ms": update,
        "load_balance_lasting_ms": update, "examined_per_change": 9.0, **more,
    }  # fmt: skip


def test_claims_can_fail() -> None:
    worst_last = ["sop", "kop", "ps2stream", "dkm-sks", "dkm-sks+pyramid", "hash+pyramid"]
    first = [_reported(FIRST, a, 1.0 + n) for n, a in enumerate(worst_last)]
    first[0]["update_ms_by_tick"] = [2.0, 1.0]
    first[2]["load_balance_ms"] = 0.0
    first[3]["insert_ms"], first[3]["delete_ms"] = 1.5, 3.0
    rising = [
        _reported(what, a, up * (2.0 if what == "figure 10" else 1.0) ** n, **{axis: 100.0**n})
        for what, axis in AXES.items()
        for n, up in enumerate((1.0, 4.0))
        for a in NAMES
    ]
    judged = list(claims(first + rising))
    assert len(judged) > 25
    assert [c["claim"] for c in judged if c["held"]] == []


def test_claims_about_what_was_not_measured_are_not_told() -> None:
    assert not list(claims([_reported(FIRST, "hash+pyramid", 1.0)]))
