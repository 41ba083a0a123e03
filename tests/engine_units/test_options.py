"""`RunOptions`: the same from the command line, a TOML file and Python, with the same refusals."""

from __future__ import annotations

import json
import math
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast import cli
from nearcast.engine.engine import Engine
from nearcast.engine.options import command
from nearcast.engine.options.config import load_config
from nearcast.engine.options.effects import check, check_way
from nearcast.engine.options.run_options import (
    DEFAULTS,
    FOLDER,
    OPTIONS,
    REPLAY,
    STREAM,
    WAYS,
    RunOptions,
    flag,
    in_toml,
    reference,
)
from nearcast.engine.options.settings import Settings
from nearcast.engine.options.spans import duration_ms
from nearcast.kinds import KINDS
from nearcast.model.errors import NearcastError
from nearcast.routing import ROUTERS

PLACES = {
    "state": {"checkpoint": "state"},
    "source": [{"type": "folder", "path": "in"}],
    "sink": [{"type": "files", "path": "out"}],
}
SPARK = [{"type": "spark", "format": "rate"}]
PAIRS = ("strategies", "plan", "spark_conf")  # NAME=VALUE each


# -- the three ways ------------------------------------------------------------------------------


def words_of(name: str, value: Any) -> list[str]:
    """A value behind its flag."""
    if name in PAIRS:
        return [f"{key}={one}" for key, one in value.items()]
    if name == "balance" and isinstance(value, dict):
        mode = [value["mode"]] if "mode" in value else []
        return [",".join([*mode, *(f"{k}={v}" for k, v in value.items() if k != "mode")])]
    if name in ("plugins", "kinds"):
        return list(value)
    return [",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)]


def by_flags(given: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> RunOptions:
    """What `nearcast replay` makes of flags."""
    taken: list[RunOptions] = []
    monkeypatch.setattr(command, "replay", lambda *args: taken.append(args[-1]))
    argv = ["replay", "LOG", "--out", "OUT"]
    for name, value in given.items():
        words = words_of(name, value)
        if OPTIONS[name].value.several and name not in PAIRS:
            argv += [part for word in words for part in (flag(name), word)]
        else:
            argv += [flag(name), *words] if words else []
    args = cli._parser().parse_args(cli._joined(argv))
    cli._replay(args)
    check(taken[0], REPLAY)
    return taken[0]


def written(value: Any) -> str:
    """A value in TOML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {written(v)}" for k, v in value.items()) + "}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(written, value))}]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return json.dumps(value)


def by_toml(given: dict[str, Any], folder: Path, places: dict[str, Any] = PLACES) -> RunOptions:
    """What `nearcast run` makes of a file."""
    tables: dict[str, Any] = json.loads(json.dumps(places))
    for name, value in given.items():
        option = OPTIONS[name]
        table = tables["sink"][0] if option.table == "sink" else tables
        if option.whole:
            tables[option.table] = value
        elif option.table == "sink":
            table[name] = value
        else:
            tables.setdefault(option.table, {})[name] = value
    path = folder / "run.toml"
    path.write_text("".join(f"{name} = {written(table)}\n" for name, table in tables.items()))
    return load_config(str(path)).options


PLANNED = {"range": "ps2stream", "knn": "dkm-sks"}
# For each option values that have an effect, with the other options that they need.
EFFECTIVE: dict[str, list[tuple[Any, dict[str, Any]]]] = {
    "space": [("planar", {})],
    "bounds": [
        ((-1.5, 0, 2, 3e1), {"strategies": {"range": router}})
        for router, class_ in ROUTERS.items()
        if class_.by_place
    ],
    "shards": [(1, {}), (4096, {})],
    "strategies": [({"range": "tornado", "knn": "sop+inverted"}, {}), ({"knn": "broadcast"}, {})],
    "plugins": [(("tests.kinds.count",), {})],
    "kinds": [(("range",), {}), (("knn", "range"), {})],
    "batch_events": [(1, {}), (10**9, {})],
    "window": [("count:5", {}), ("2h", {})],
    "maxdist": [(2.5e3, {}), (1, {"space": "planar"})],
    "idf": [("fitted.jsonl", {})],
    "retain": [("all", {}), ("90 minutes", {}), ("1h", {})],
    "store": [("rtree", {"retain": "all"}), ("scan", {"archive": "kept", "retain": "off"})],
    "archive": [("kept", {}), ("kept", {"retain": "off"})],
    "changes": [("net", {})],
    "format": [("parquet", {})],
    "keep": [("7 days", {}), ("all", {}), ("1s", {"format": "parquet"})],
    "master": [("local[2]", {}), ("spark://host:7077", {})],
    "spark_conf": [({"spark.driver.memory": "4g"}, {})],
    "balance": [
        ("local", {"strategies": {"range": "tornado"}}),
        ("auto", {"strategies": PLANNED}),
        ({"mode": "global", "gain": 0.25}, {"strategies": PLANNED}),
        ({"mode": "auto", "least": 5, "threshold": 1.5, "selection": "dp"},
         {"strategies": PLANNED}),
    ],
    "warmup": [
        (5, {"strategies": {kind: router}})
        for kind in KINDS
        for router in KINDS[kind].routers
        if ROUTERS[router].plans
    ],
    "plan": [({"delta": 0.5, "theta": 64.0}, {"strategies": PLANNED})],
    "lateness_ms": [(0, {}), (5, {})],
    "trigger": [("1 second", {}), ("1 minute 30 seconds", {}), ("200ms", {})],
    "metrics": [("127.0.0.1:9100", {})],
    "manifests": [("files", {}), ("spark", {})],
    "arena": [("/tmp/somewhere", {})],
}  # fmt: skip


def test_every_option_is_in_the_table() -> None:
    assert list(EFFECTIVE) == list(OPTIONS)


CASES = [(name, value, more) for name, all_ in EFFECTIVE.items() for value, more in all_]


@pytest.mark.parametrize(("name", "value", "more"), CASES)
def test_the_same_by_flags_by_file_and_by_name(
    name: str, value: Any, more: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {name: value, **more}
    options = Engine(**given).options
    assert options == RunOptions(**given)
    assert getattr(options, name) == value
    assert set(options.given()) == set(given)
    assert by_toml(given, tmp_path) == options
    if flag(name):
        assert by_flags(given, monkeypatch) == options


simple = st.fixed_dictionaries(
    {},
    optional={
        "space": st.just("planar"),
        "bounds": st.tuples(*[st.floats(-180, 0, width=32)] * 2, *[st.floats(1, 90)] * 2),
        "shards": st.integers(2, 4096),
        "batch_events": st.integers(1, 10**12),
        "changes": st.sampled_from(["every", "net"]),
        "format": st.sampled_from(["jsonl", "parquet"]),
        "master": st.sampled_from(["local", "local[2]", "yarn"]),
        "balance": st.sampled_from(["off", "auto", "local", {"beta": 0.5}, {"mode": "auto"}]),
        "warmup": st.integers(0, 10**6),
        "plan": st.dictionaries(st.sampled_from(["side", "each"]), st.floats(1, 1e9)),
        "arena": st.sampled_from(["", "/tmp/a b", "x"]),
        "spark_conf": st.dictionaries(st.sampled_from(["a.b", "c"]), st.sampled_from(["1", "x y"])),
    },
)


@given(simple)
def test_any_options_are_the_same_by_all_three(given: dict[str, Any]) -> None:
    given["strategies"] = {"range": "tornado"}
    if "bounds" in given:
        given["space"] = "planar"
    options = Engine(**given).options
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        assert by_flags(given, patch) == options
        assert by_toml(given, Path(folder)) == options


# -- refusals ------------------------------------------------------------------------------------

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"space": "round"}, "space: 'round'; use geographic or planar"),
    ({"bounds": (1, 2, 3)}, "bounds: write minx,miny,maxx,maxy"),
    ({"bounds": (1, 0, 0, 1)}, "bounds: write minx,miny,maxx,maxy with min < max"),
    ({"bounds": (0, 0, math.inf, 1)}, "bounds: write minx,miny,maxx,maxy"),
    ({"bounds": (0, 0, 181, 1), "strategies": {"range": "tornado"}},
     "bounds: write degrees, lon from -180 to 180 and lat from -90 to 90, or use space planar"),
    ({"bounds": (0, 0, 1, 1), "kinds": ("range", "knn")},
     "bounds has no effect: no chosen strategy divides space into cells (range=hash+pyramid, "
     "knn=hash+pyramid); leave it out, or use one of range=ps2stream, "
     "range=space-grid, range=space-kd, range=space-r, range=tornado, range=tornado-uniform, "
     "range=sstd, range=sstd-quadtree"),
    ({"bounds": (0, 0, 1, 1), "strategies": {"range": "text-metric"}},
     "bounds has no effect: no chosen strategy divides space into cells (range=text-metric+"),
    ({"shards": 0}, "shards: 0 is not between 1 and 4096"),
    ({"shards": 5000}, "shards: 5000 is not between 1 and 4096"),
    ({"shards": "two"}, "shards: 'two' is not a whole number"),
    ({"shards": "2.5"}, "shards: '2.5' is not a whole number"),
    ({"strategies": {"range": "tree"}}, "strategy: no router 'tree' for range; there are "),
    ({"strategies": {"all": "hash"}}, "strategy: unknown kind 'all'; there are range, knn, topk"),
    ({"plugins": ("no.such",)}, "plugins: 'no.such' is no module with a list KINDS (No module nam"),
    ({"plugins": ("json",)}, "plugins: 'json' is no module with a list KINDS (module 'json' has"),
    ({"plugins": ("a b",)}, "plugins: 'a b' is not the name of a module, such as company.kinds"),
    ({"plugins": ("tests.kinds.count",) * 2},
     "plugins: the name or number of kind 'count' (1000) of tests.kinds.count is taken"),
    ({"kinds": ("top",)}, "kinds: unknown kind 'top'; there are range, knn, topk"),
    ({"kinds": ("knn", "knn")}, "kinds: ['knn', 'knn'] names one twice"),
    ({"kinds": ("knn",), "strategies": {"range": "hash"}},
     "strategy: unknown kind 'range'; there are knn"),
    ({"batch_events": 0}, "batch_events: 0 is less than 1"),
    ({"window": "30"}, "window: '30': write count:N or a duration such as 30s, 10m, 1h"),
    ({"window": "count:0"}, "window: 'count:0': write count:N or a duration such as 30s, 10m, 1h"),
    ({"window": "count:5", "kinds": ("range", "knn")}, "window has no effect: no kind of query of "
     "this run uses it (range, knn); leave it out, or take more kinds"),
    ({"maxdist": 5, "kinds": ("range",)}, "maxdist has no effect: no kind of query of this run"),
    ({"idf": "x", "kinds": ("range",)}, "idf has no effect: no kind of query of this run uses it"),
    ({"maxdist": 0}, "maxdist: 0 is not a number above 0"),
    ({"maxdist": "far"}, "maxdist: 'far' is not a number above 0"),
    ({"retain": "0s"}, "retain: '0s': write at least 1ms, or off"),
    ({"retain": "some"}, "retain: 'some': write a duration such as 30s, 10m or 1 second"),
    ({"store": "heap"}, "store: 'heap'; use curve, rtree or scan"),
    (
        {"store": "scan", "retain": "off", "kinds": ["range"]},
        "store has no effect: no objects are retained",
    ),
    ({"changes": "some"}, "changes: 'some'; use every or net"),
    ({"changes": "net", "kinds": ("range",)}, "changes has no effect: no result of range ever "),
    ({"format": "csv"}, "format: 'csv'; use jsonl or parquet"),
    ({"master": ""}, "master: '' is not text"),
    ({"spark_conf": {"spark.master": "local"}}, "spark_conf spark.master has no effect: the master "
     "is an option of the run: use master; leave it out"),
    ({"spark_conf": {"spark.sql.shuffle.partitions": "8"}}, "spark_conf spark.sql.shuffle.partiti"
     "ons has no effect: it is the number of shards: use shards; leave it out"),
    ({"spark_conf": {"spark.sql.adaptive.enabled": "true"}}, "spark_conf spark.sql.adaptive.enabled"
     " has no effect: the query needs its own value; leave it out"),
    ({"balance": "on"}, "balance: 'on'; use off, auto, local or global"),
    ({"balance": {"mode": "some", "least": 5}}, "balance: 'some'; use off, auto, local or global"),
    ({"balance": "auto"}, "balance: auto needs a strategy that can balance, such as range=ps2str"),
    ({"balance": {"mode": "off", "threshold": 2.0}},
     "balance threshold has no effect: the mode is off; use auto, local or global"),
    ({"balance": "auto", "shards": 1, "strategies": PLANNED},
     "balance has no effect: one shard has no other; leave it out, or use more shards"),
    ({"balance": {"mode": "auto", "beta": 2.0}, "strategies": PLANNED},
     "balance beta has no effect: with mode auto range=ps2stream reads only cells, every, few, "
     "gain, least, rounds, selection, side, slack, threshold, wait; leave it out, or use another "
     "mode or strategy"),
    ({"balance": {"mode": "local", "gain": 0.5}, "strategies": PLANNED},
     "balance gain has no effect: with mode local range=ps2stream reads only cells, "),
    ({"balance": {"mode": "global", "cells": 2}, "strategies": PLANNED},
     "balance cells has no effect: with mode global range=ps2stream reads only every, "),
    ({"balance": {"mode": "local", "rounds": 2}, "strategies": {"range": "tornado"}},
     "balance rounds has no effect: with mode local range=tornado reads only beta, "),
    ({"balance": {"mode": "auto", "beeta": 2}, "strategies": PLANNED},
     "balance: no setting 'beeta'; there are mode, "),
    ({"balance": {"mode": "auto", "least": -1}, "strategies": PLANNED},
     "balance least: -1 is less than 0"),
    ({"warmup": -1}, "warmup: -1 is less than 0"),
    ({"warmup": 5, "kinds": ("range", "knn")}, "warmup has no effect: no chosen strategy makes a "
     "plan (range=hash+pyramid, knn=hash+pyramid); leave it out, or use one of range=ps2stream, "
     "range=text-frequency, "),
    ({"plan": {"delta": "x"}}, "plan: delta: 'x' is not a number"),
    ({"plan": {"delta": 1}},
     "plan: no parameter 'delta'; there are none: these strategies make no plan"),
    ({"plan": {"thetta": 1}, "strategies": PLANNED},
     "plan: no parameter 'thetta'; did you mean theta?"),
]  # fmt: skip


def refusal(make: Any, *args: Any, **named: Any) -> str:
    with pytest.raises(NearcastError) as caught:
        make(*args, **named)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(("given", "reason"), WRONG, ids=[str(g) for g, _ in WRONG])
def test_a_mistake_gets_the_same_answer_everywhere(
    given: dict[str, Any], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = refusal(Engine, **given)
    assert said.startswith(reason)
    assert refusal(by_toml, given, tmp_path) == f"{tmp_path / 'run.toml'}: {said}"
    assert refusal(by_flags, given, monkeypatch) == said


LIVE_ONLY = {"lateness_ms": 5, "trigger": "5s", "keep": "1h", "metrics": "9100"}


@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_has_an_effect_or_is_refused(name: str) -> None:
    """In each way to run: it reaches the settings of the run or the run itself, or is refused."""
    for value, more in EFFECTIVE[name] or [("30s", {})]:
        for way in WAYS:
            options, without = RunOptions(**{name: value, **more}), RunOptions(**more)
            if way not in OPTIONS[name].ways:
                assert f"{name} has no effect: " in refusal(check, options, way)
                check_way(without, way)
                continue
            check(options, way)
            order = "time" if way == REPLAY else "arrival"
            changed = Settings.of(options, order) != Settings.of(without, order)
            taken_by_the_engine = name in (
                "master",
                "spark_conf",
                "batch_events",
                "trigger",
                "metrics",
                "manifests",
            )
            assert changed != taken_by_the_engine


def test_settings_have_the_same_defaults() -> None:
    assert Settings.of(RunOptions()) == Settings()


@pytest.mark.parametrize("name", OPTIONS)
def test_a_default_asks_for_nothing(name: str) -> None:
    for value in (None, DEFAULTS[name]):
        options = RunOptions.of({name: value})
        assert options == RunOptions()
        assert options.given() == {}
        for way in WAYS:
            check(options, way)


def test_what_a_session_has_itself_is_refused() -> None:
    session: Any = object()
    assert Engine(spark=session).options == RunOptions()
    own = "has no effect: the given session has its own; leave one of them out"
    assert refusal(Engine, spark=session, master="local[2]") == f"master {own}"
    assert refusal(Engine, spark=session, spark_conf={"a": "b"}) == f"spark_conf {own}"
    assert refusal(Engine, spark=session, quiet=True) == f"quiet {own}"


def test_runs_refuse_options_of_other_runs(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    out, state = tmp_path / "out", tmp_path / "state"
    late = "lateness_ms has no effect: a replay handles events in the order of their times"
    assert refusal(Engine(lateness_ms=5).replay, [tmp_path], out).startswith(late)
    assert refusal(Engine(lateness_ms=5).plan, [tmp_path], state).startswith(late)
    trigger = "trigger has no effect: a replay starts each batch when the one before is done"
    assert refusal(Engine(trigger="5s").replay, [tmp_path], out).startswith(trigger)
    assert refusal(Engine().replay, [tmp_path], out, batch_events=0) == (
        "batch_events: 0 is less than 1"
    )
    assert refusal(Engine().tail, tmp_path, out, state, trigger="soon") == (
        "trigger: 'soon': write a duration such as 30s, 10m or 1 second"
    )
    assert refusal(by_toml, {"batch_events": 5}, tmp_path, PLACES | {"source": SPARK}).endswith(
        "batch_events has no effect: Spark decides what a batch of its stream holds; limit it in "
        "the options of the source, such as maxOffsetsPerTrigger or maxFilesPerTrigger"
    )
    assert refusal(Engine(store="rtree", kinds=("range",)).tail, tmp_path / "in", out, state) == (
        "store has no effect: no objects are retained; leave it out, or use retain"
    )
    assert not out.exists()
    assert not state.exists()


def test_options_that_do_not_exist() -> None:
    assert refusal(Engine, shard=3) == "shard: there is no such option; did you mean shards?"
    assert refusal(Engine, zzz=3).startswith("zzz: there is no such option; there are space, ")


def test_options_and_names_together() -> None:
    both = Engine(RunOptions(shards=3, changes="net"), shards=4).options
    assert both == RunOptions(shards=4, changes="net")


# -- what people read ----------------------------------------------------------------------------


def test_the_reference_and_the_help_have_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    rows = reference()
    assert [row.name for row in rows] == list(OPTIONS)
    assert len({row.toml for row in rows}) == len(rows)
    assert all(all(part for name, part in row._asdict().items() if name != "flag") for row in rows)
    shards = rows[list(OPTIONS).index("shards")]
    assert shards == (
        "shards", "--shards", "[run] shards", "whole number, 1 to 4096", "2",
        "parts that work side by side", "all runs",
    )  # fmt: skip
    assert rows[list(OPTIONS).index("retain")].default == "auto for replay, off for a live run"
    for name in ("replay", "run"):
        with pytest.raises(SystemExit):
            cli.main([name, "--help"])
        out = " ".join(capsys.readouterr().out.split())
        for row in rows:
            if name == "run" or row.flag:
                assert (row.flag if name == "replay" else in_toml(row.name)) in out
                assert f"{row.meaning} (default: {row.default})" in out
    assert {row.name for row in rows if not row.flag} == set(LIVE_ONLY)


@pytest.mark.parametrize(
    ("text", "ms"),
    [("30s", 30_000), ("1 second", 1000), ("0 seconds", 0), ("1m 30s", 90_000), ("2 h", 7_200_000)],
)
def test_durations(text: str, ms: int) -> None:
    assert duration_ms(text) == ms


@pytest.mark.parametrize("text", ["", "30", "s", "30 x", "-1s", "1s,2s", " 1s", "1.5s", 30, None])
def test_what_is_no_duration(text: Any) -> None:
    with pytest.raises(ValueError, match="write a duration such as 30s, 10m or 1 second"):
        duration_ms(text)


def test_a_folder_and_a_stream_are_live() -> None:
    for name in LIVE_ONLY:
        assert OPTIONS[name].ways == (FOLDER, STREAM)
