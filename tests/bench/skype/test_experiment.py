"""The experiments of Skype run at tiny sizes, check their answers, and judge claims by figures."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nearcast.cli import main
from nearcast.model.errors import NearcastError
from nearcast_bench.common.figures import Figure
from nearcast_bench.skype import load as loading
from nearcast_bench.skype.claims import claims, cost, upkeep
from nearcast_bench.skype.disseminating import run_dissemination
from nearcast_bench.skype.load import Load, Shape, measure
from nearcast_bench.skype.plots import plots
from nearcast_bench.skype.reevaluation import COMPARED, PARTS, TIMES, run_reevaluation
from nearcast_bench.skype.setting import DATA, SMALL, Setting, check
from nearcast_bench.skype.source import source_of
from nearcast_bench.skype.sweeps import SYSTEMS, run_sweeps

TINY = replace(SMALL, subscriptions=30, window=150, messages=60, batch=20)


def quiet(_: str) -> None:
    pass


@pytest.fixture(scope="module")
def reported() -> list[Figure]:
    figures = ("table 3", "10", "13", "14", "15", "20", "walk")
    some = replace(TINY, figures=figures)
    runs = (run_reevaluation, run_dissemination, run_sweeps)
    return [figure for run in runs for figure in run(some, quiet)]


def of(reported: list[Figure], figure: str) -> list[Figure]:
    return [t for t in reported if t["figure"] == figure]


@pytest.mark.slow
def test_every_figure_has_its_points(reported: list[Figure]) -> None:
    assert [t["kmax"] for t in of(reported, "10(a)")] == [20 * n for n in TIMES]
    assert [t["part"] for t in of(reported, "10(b)")] == list(PARTS)
    assert len(of(reported, "14")) == len(DATA) * len(COMPARED)
    assert {t["system"] for t in of(reported, "15")} == set(SYSTEMS)
    assert [t["keywords"] for t in of(reported, "15")] == [n for n in range(1, 6) for _ in SYSTEMS]
    assert {t["system"] for t in of(reported, "13")} == {"reach", "igpt", "ipt", "ciq"}
    for t in of(reported, "table 3"):
        assert t["keywords"] == pytest.approx(t["paper_keywords"], rel=0.05)
        assert t["vocabulary"] == t["paper_vocabulary"]


@pytest.mark.slow
def test_claims_and_plots_are_made_of_points(reported: list[Figure], tmp_path: Path) -> None:
    judged = list(claims(reported))
    assert {c["figure"] for c in judged} == {
        "10(a)", "10(b)", "14", "table 4", "own", "15", "20", "equation 12",
    }  # fmt: skip
    json.dumps(judged)
    assert len(plots(reported, tmp_path)) == 11


def test_a_point_that_differs_is_no_point(monkeypatch: pytest.MonkeyPatch) -> None:
    load = Load(source_of("skype-gn"), Shape(20, 100, 40, 20), 3)
    right = list(measure(load, ["reach/roots", "reach/kmax"]))
    assert [row["checked"] for row in right] == [12, 12]
    inner = loading._run

    def wrong(load: Load, name: str) -> tuple[Figure, list[tuple[np.ndarray, ...]]]:
        row, told = inner(load, name)
        if name.endswith("kmax"):
            told[1][4][:] += 1.0
        return row, told

    monkeypatch.setattr(loading, "_run", wrong)
    with pytest.raises(NearcastError, match="does not report what"):
        list(measure(load, ["reach/roots", "reach/kmax"]))


def test_a_result_that_is_not_as_defined_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    load = Load(source_of("skype-gn"), Shape(20, 100, 40, 20), 3)
    monkeypatch.setattr(type(load.kind.standing(load.controls.to_pylist()[0], loading.SPACE)),
                        "score", lambda *_: 0.25)  # fmt: skip
    with pytest.raises(NearcastError, match="not what its definition says"):
        list(measure(load, ["reach/roots"]))


def point(policy: str, seed: int = 7, **values: float) -> Figure:
    usual = {"candidates": 10, "touched": 0, "compared": 0, "searched": 0, "buffer": 30,
             "expiry_us": 1}  # fmt: skip
    return {"figure": "14", "data": DATA[0], "seed": seed, "policy": policy} | usual | values


def test_claims_are_decided_by_counted_work() -> None:
    figures = [point("cskyband", searched=1), point("skyband", searched=2),
               point("kmax", touched=1000, buffer=60), point("roots")]  # fmt: skip
    assert cost(figures[0]) == 3.65
    assert upkeep(figures[2]) == 0.7

    def held() -> dict[str, bool]:
        return {c["claim"]: c["held"] for c in claims(figures)}

    first = held()
    assert first[f"cSkyband costs less than skyband and kmax on {DATA[0]}, by all counted work"]
    assert not first[f"cSkyband has smaller buffers than skyband and kmax on {DATA[0]}"]
    for name in ("cskyband", "skyband", "kmax", "roots"):  # it must hold with every seed
        figures.append(point(name, 8, searched=9 if name == "cskyband" else 2))
    second = held()
    assert not second[
        f"cSkyband costs less than skyband and kmax on {DATA[0]}, by all counted work"
    ]


def test_messages_of_a_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = [list(rng.choice(list("abcdefgh"), rng.integers(0, 5))) for _ in range(300)]
    table = pa.table({"lon": rng.random(300), "lat": rng.random(300), "keywords": rows})
    path = tmp_path / "m.parquet"
    pq.write_table(table, path)
    source = source_of(str(path))
    messages = source.messages(500, rng)
    kept = [sorted(set(words)) for words in rows if words]
    assert source.pool is not None
    assert len(source.pool) == len(kept)
    drawn = source.corpus.words(messages.keywords).to_pylist()
    lists = [sorted(drawn[a:b]) for a, b in zip(messages.offsets[:-1], messages.offsets[1:],
                                               strict=True)]  # fmt: skip
    assert all(words in kept for words in lists)
    assert lists[: 500 - len(kept)] == lists[len(kept) :]  # it begins again
    row, *_ = measure(Load(source, Shape(20, 150, 50, 25), 1), ["reach/cskyband"])
    assert row["changes"] > 0


def test_what_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for bad in (replace(SMALL, figures=("99",)), Setting(dissemination="scan")):
        with pytest.raises(NearcastError, match=r"^bench: no "):
            check(bad)
    with pytest.raises(NearcastError, match="no data"):
        source_of("nothing")
    (tmp_path / "x.parquet").write_bytes(b"no")
    with pytest.raises(NearcastError, match="needs columns"):
        source_of(str(tmp_path / "x.parquet"))
    assert main(["bench", "skype", "--full", "--figures", "10"]) == 2
    assert "--figures" in capsys.readouterr().err


@pytest.mark.slow
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--small", "--subscriptions", "20", "--window", "100", "--messages", "40"]
    keep = ["--figures", "10", "--keep", str(tmp_path)]
    assert main(["bench", "skype", *sizes, *keep, "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert sum("claim" in line for line in lines) == 6
    assert all(line["command"].startswith("nearcast bench skype --small") for line in lines)
    assert (tmp_path / "skype-claims.md").exists()
