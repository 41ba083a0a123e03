"""The experiments of Tornado run, check their answers, and judge claims by figures alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nearcast.cli import main
from nearcast.workload.corpora import TWEETS_US
from nearcast_bench.common.cluster import ENGINE, SUMMARIES
from nearcast_bench.common.cluster_run import PASSES
from nearcast_bench.common.figures import Figure
from nearcast_bench.common.gi2_fixed import CELLS, exponent
from nearcast_bench.tornado import adapt, experiment
from nearcast_bench.tornado.adapt import ADAPTIVE, STATIC, run_adapt
from nearcast_bench.tornado.claims import claims
from nearcast_bench.tornado.experiment import ALTERNATIVES, Setting
from nearcast_bench.tornado.plots import plots
from nearcast_bench.tornado.routing import A_GRID, R_TREE, run_routing
from nearcast_bench.tornado.routing import UNIFORM as GRID

TINY = Setting(1_500, 600, evaluators=4, units=2, rounds=3)


def quiet(_: str) -> None:
    pass


@pytest.fixture(scope="module")
def reported() -> list[Figure]:
    with pytest.MonkeyPatch.context() as patch:  # as if moves cost nothing: so few objects
        patch.setattr(adapt, "MOVE", 0.0)
        adapted = list(run_adapt(TINY, quiet))
    return [*experiment.run(TINY, quiet), *run_routing(TINY, quiet), *adapted]


def of(reported: list[Figure], figure: str) -> list[Figure]:
    return [t for t in reported if t["figure"] == figure]


def test_every_figure_has_its_points(reported: list[Figure]) -> None:
    assert [t["alternative"] for t in of(reported, "6(a), (b)")] == list(ALTERNATIVES)
    assert {t["dispatch"] for t in of(reported, "6(c)")} == {ENGINE, SUMMARIES}
    assert [len(of(reported, f"8({x})")) for x in "abc"] == [6, 5, 5]
    assert [t["units"] for t in of(reported, "10")] == list(experiment.UNITS)
    assert {t["version"] for t in of(reported, "9(a)")} == {STATIC, ADAPTIVE}


def test_alternatives_tell_the_same(reported: list[Figure]) -> None:
    points = of(reported, "6(a), (b)")
    assert len({t["checksum"] for t in points}) == 1
    assert points[0]["checked_matches"] > 0
    assert all(len(t["by_pass"]) == PASSES for t in points)
    one_word = [t for t in of(reported, "8(b)") if t["keywords"] == 1]
    assert one_word[0]["notifications"] > 0


def test_summaries_send_less(reported: list[Figure]) -> None:
    sent = {(t["percentile"], t["dispatch"]): t["object_copies"] for t in of(reported, "6(c)")}
    assert all(sent[p, SUMMARIES] < sent[p, ENGINE] == 1.0 for p in experiment.PERCENTILES)


def test_the_search_looks_at_fewer_cells_than_the_grid(reported: list[Figure]) -> None:
    steps = {(t["structure"], t["side"]): t["steps"] for t in of(reported, "7(b)")}
    assert steps[A_GRID, 0.05] < steps[R_TREE, 0.05] < steps[GRID, 0.05]
    assert {t["steps"] for t in of(reported, "7(a)") if t["structure"] == A_GRID} == {1.0}


def test_adaptivity_moves_queries_and_keeps_the_matches(reported: list[Figure]) -> None:
    points = of(reported, "9(a)")
    assert all(p["operations"] == 0 for p in points if p["version"] == STATIC)
    assert any(p["moved_queries"] > 0 for p in points if p["version"] == ADAPTIVE)
    assert all(
        0 < p["numbers_sent"]["distributed"] < p["numbers_sent"]["centralised"]
        for p in points
        if p["version"] != STATIC
    )


def test_plots_are_drawn_and_claims_judged(reported: list[Figure], tmp_path: Path) -> None:
    drawn = {p.stem for p in plots(reported, tmp_path)}
    assert {
        f"tornado-figure-{n}" for n in ("6a", "6c", "7b", "8c", "9a", "9b", "9-rounds", "10")
    } <= drawn
    judged = list(claims(reported))
    assert {c["figure"][0] for c in judged} == {"6", "7", "8", "9", "1"}
    assert all(isinstance(c["held"], bool) for c in judged)


def test_claims_follow_the_figures(reported: list[Figure]) -> None:
    def judged(rate: int) -> dict[str, bool]:
        changed = [
            t | {"by_pass": [rate if t["alternative"] == experiment.TORNADO else 10] * PASSES}
            if t["figure"] == "6(a), (b)"
            else t
            for t in reported
        ]
        return {c["claim"]: c["held"] for c in claims(changed) if c["figure"] == "6(a)"}

    assert all(judged(21).values())
    assert not any(judged(9).values())


def test_the_fixed_grid_of_gi2_has_about_64_cells_a_side() -> None:
    side = 2.0 ** exponent()
    minx, miny, maxx, maxy = TWEETS_US.bounds
    assert 0.5 < (maxx - minx) * (maxy - miny) / side**2 / CELLS < 2.0


def test_a_part_of_a_figure_can_be_asked_for() -> None:
    some = Setting(1_000, 400, evaluators=2, figures=("8b",))
    experiment.check(some)
    assert {t["figure"] for t in experiment.run(some, quiet)} == {"8(b)"}


def test_what_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "tornado", "--figures", "11"]) == 2
    assert capsys.readouterr().err.startswith("nearcast: bench: no figure '11'; there are 6, 7")


def test_the_command_keeps_plots_and_claims(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = "7"
    line = ["bench", "tornado", "--small", "--json", "--figures", figures, "--keep", str(tmp_path)]
    assert main([*line, "--queries", "400"]) == 0
    lines = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
    assert all(t["command"].startswith("nearcast bench tornado --small") for t in lines)
    kept = (tmp_path / "tornado-claims.md").read_text()
    assert kept.count("\n") == 2 + sum("claim" in t for t in lines)
    assert list(tmp_path.glob("tornado-figure-*.svg"))
