"""The experiments of PS2Stream run, check their answers, and judge claims by figures alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nearcast.cli import main
from nearcast.model.errors import NearcastError
from nearcast.routing.grid.router import GridRouter
from nearcast_bench.common.cluster import ENGINE, H2, PLACE, Cluster, Reported
from nearcast_bench.common.cluster_run import Layout, Oracle, agree, measure, planned
from nearcast_bench.common.figures import Figure
from nearcast_bench.common.moving import held_by, move
from nearcast_bench.common.shapes import claims_table
from nearcast_bench.common.tweets import by_hour, ps2stream_tweets
from nearcast_bench.ps2stream import experiment
from nearcast_bench.ps2stream.adjust import late, run_adjust
from nearcast_bench.ps2stream.adjusting import Period, least
from nearcast_bench.ps2stream.claims import claims
from nearcast_bench.ps2stream.experiment import (
    CHOSEN,
    PAPER,
    SPACE,
    TEXT,
    Setting,
    Workload,
    constants_for,
    make_stream,
)
from nearcast_bench.ps2stream.plots import plots

TINY = Setting(600, 400, 3, 2, scaling=(2, 3), countries=("us",), periods=2, passes=1)


def quiet(_: str) -> None:
    pass


@pytest.fixture(scope="module")
def reported() -> list[Figure]:
    return [*experiment.run(TINY, quiet), *run_adjust(replace(TINY, queries=1200), quiet)]


def test_every_figure_has_its_points(reported: list[Figure]) -> None:
    points = [t for t in reported if t["figure"] == "6-10" and t["workload"] == "STS-US-Q1"]
    sent = {way: [p for p in points if p["sent_as"] == way] for way in (PAPER, ENGINE)}
    assert [p["router"] for p in sent[PAPER]] == [*TEXT, *SPACE, "ps2stream"]
    assert {p["router"] for p in sent[ENGINE]} == {*SPACE, *CHOSEN}
    # H2 is the grid^t's, a map of terms that of text-partitioning; space goes by place alone.
    for p in sent[PAPER]:
        assert p["dispatch"] == (PLACE if p["router"] in SPACE else H2)
        assert p["router"] not in SPACE or p["object_copies"] == 1.0
    assert {t["workers"] for t in reported if t["figure"] == "11"} == {2, 3}
    assert {t["figure"] for t in reported} == {
        "constants", "6-10", "11", "12", "13", "12, 14, 15", "16"
    }  # fmt: skip


def test_all_routers_tell_the_same(reported: list[Figure]) -> None:
    for figure in ("6-10", "11"):
        for workload in {t["workload"] for t in reported if t["figure"] == figure}:
            mine = [t for t in reported if (t["figure"], t.get("workload")) == (figure, workload)]
            assert len({(t["notifications"], t["checksum"]) for t in mine}) == 1
            assert all(t["notifications"] >= t["checked_matches"] for t in mine)
    assert any(t.get("checked_matches") for t in reported)


def test_h2_sends_less(reported: list[Figure]) -> None:
    for group in ("Q1", "Q2", "Q3"):
        points = [t for t in reported if t.get("workload") == f"STS-US-{group}" and "router" in t]
        for router in CHOSEN:
            sent = {t["sent_as"]: t["object_copies"] for t in points if t["router"] == router}
            assert sent[PAPER] <= sent[ENGINE]


def test_plots_are_drawn_and_claims_judged(reported: list[Figure], tmp_path: Path) -> None:
    drawn = {p.stem for p in plots(reported, tmp_path)}
    assert {f"ps2stream-figure-{n}" for n in ("6", "7", "8", "9", "10", "13", "16-600")} <= drawn
    judged = list(claims(reported))
    assert {c["figure"] for c in judged} >= {"6", "7", "8", "9", "10", "11", "12(a)", "13", "16"}
    assert all(isinstance(c["held"], bool) for c in judged)


def test_claims_follow_the_figures(reported: list[Figure]) -> None:
    def judged(factor: float) -> dict[str, bool]:
        changed = [
            t | {"tuples_per_second": (factor if t["router"] in TEXT else 1) * 1000}
            if t["figure"] == "6-10"
            else t
            for t in reported
        ]
        return {c["claim"]: c["held"] for c in claims(changed) if c["figure"] == "6"}

    text, space = judged(3.0), judged(0.1)
    q1, q2 = (f"STS-US-{q}: {kind}-partitioning has the larger throughput"
              for q, kind in (("Q1", "space"), ("Q2", "text")))  # fmt: skip
    assert text[q2]
    assert not text[q1]
    assert not space[q2]
    assert space[q1]


def test_a_wrong_answer_stops_it() -> None:
    stream = make_stream(TINY, Workload("uk", "Q1"))
    oracle = Oracle(stream)
    assert oracle.right
    with pytest.raises(NearcastError, match="not those of the scan"):
        oracle.check([Reported(np.empty(0, np.int64), np.empty(0, np.uint64))])
    figure = measure(Layout("hash", "gi2", 2, 1), stream, stream.survey(), oracle)
    with pytest.raises(NearcastError, match="disagree"):
        agree([figure, figure | {"notifications": 0}])


def test_constants_are_measured() -> None:
    stream = make_stream(TINY, Workload("us", "Q1"))
    c = constants_for(TINY, stream.standing, stream.steps[0].objects)
    assert c.c1 >= 0.0
    assert min(c[1:]) > 0.0  # with few objects c2 was 0, and plans went wrong


def test_a_move_changes_who_has_what_and_nothing_else() -> None:
    stream = make_stream(TINY, Workload("us", "Q2"))
    survey = stream.survey()
    layout = Layout("space-kd", "gi2", 3, 1, H2)
    first, _ = planned(layout, stream, survey)
    other, _ = planned(replace(layout, router="text-metric"), stream, survey)
    assert isinstance(other, GridRouter)
    assert other.grid is not None
    still, moving = Cluster(first, "gi2", H2), Cluster(first, "gi2", H2)
    for cluster in (still, moving):
        cluster.stand(stream.standing)
        cluster.run(stream.steps[0])
    before = {i for c in held_by(moving, 0) for i in c["id"].to_pylist()}
    moved = move(moving, other.grid, 0)
    assert moved.copies > 0
    assert moved.bytes > 0
    assert {i for c in held_by(moving, 0) for i in c["id"].to_pylist()} == before
    a, b = still.run(stream.steps[1]).reported, moving.run(stream.steps[1]).reported
    assert len(a.objects) > 0
    assert a.checksum() == b.checksum()


def test_the_sun_moves_tweets() -> None:
    tweets = ps2stream_tweets("us", "Q1", 10, 0, 1)
    rng = np.random.default_rng(1)
    west = [np.mean(by_hour(tweets.corpus, h)(4000, rng).lon < -96.0) for h in (9, 21)]
    assert west[0] > west[1] + 0.02  # nine in the morning, UTC: the east sleeps most


def test_who_waits_for_a_migration() -> None:
    half = np.array([0.5, 0.5])
    period = Period(100, 1.0, np.ones(2), half, half, np.array([1.1, 0.0]), 1.0)
    assert late([period], 0.1) == pytest.approx(0.5 * (1.0 / 0.5) / 10.0)
    assert late([period], 2.0) == 0.0


def test_of_several_passes_the_least_counts() -> None:
    passes = []
    for a, b in ((1.0, 5.0), (4.0, 2.0)):
        passes.append([Period(10, a, np.array([a, b]), np.ones(2), np.ones(2), np.zeros(2), 1.0)])
    (found,) = least(passes)
    assert found.dispatcher == 1.0
    assert found.workers.tolist() == [1.0, 2.0]


def test_a_claim_without_values_is_neither_held_nor_broken(reported: list[Figure]) -> None:
    none = {f"{ms:g} ms": 0.0 for ms in (1, 10, 100, 1000)}
    runs = [t | {"later_than": none} for t in reported if t["figure"] == "12, 14, 15"]
    judged = [c for c in claims(runs) if c["figure"] in ("12(c)", "15")]
    assert all(c["vacuous"] for c in judged)
    assert claims_table(judged).count("says nothing here") == len(judged)


def test_selecting_adjusting_and_switching(reported: list[Figure]) -> None:
    chosen = {t["selector"]: t for t in reported if t["figure"] == "12"}
    assert list(chosen) == ["DP", "GR", "SI", "RA"]
    assert chosen["DP"]["cost_mb"] <= min(t["cost_mb"] for t in chosen.values())
    runs = [t for t in reported if t["figure"] == "12, 14, 15"]
    assert [t["selector"] for t in runs] == ["DP", *["GR", "SI", "RA"] * 3]
    for same in (runs[:4], runs[4:7], runs[7:], [t for t in reported if t["figure"] == "16"]):
        assert len({(t["notifications"], t["checksum"]) for t in same}) == 1
        assert same[0]["notifications"] > 0
    ways = {t["adjusted"]: t for t in reported if t["figure"] == "16"}
    assert list(ways) == ["not adjusted", "adjusted", "adjusted by Definition 3"]
    assert ways["not adjusted"]["migrations"] == 0


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (("--figures", "6,99"), "nearcast: bench: no figure '99'; there are 6, 7"),
        (("--index", "rtree"), "nearcast: bench: no range index 'rtree'; there are "),
    ],
)
def test_what_is_not_there_is_refused(
    flags: tuple[str, ...], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "ps2stream", *flags]) == 2
    assert capsys.readouterr().err.startswith(line)


def test_the_command_keeps_plots_and_claims(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = "12"
    line = [
        "bench",
        "ps2stream",
        "--small",
        "--json",
        "--figures",
        figures,
        "--keep",
        str(tmp_path),
    ]
    assert main([*line, "--queries", "400"]) == 0
    lines = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
    assert all(t["command"].startswith("nearcast bench ps2stream --small") for t in lines)
    kept = (tmp_path / "ps2stream-claims.md").read_text()
    assert kept.count("\n") == 2 + sum("claim" in t for t in lines)
    assert list(tmp_path.glob("ps2stream-figure-*.svg"))
