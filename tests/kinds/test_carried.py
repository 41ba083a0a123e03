"""What objects carry for kinds that need it: tf, texts of words, ranks. Nobody else pays for it."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.engine.contract import Miniature, difference, expected, reported, run_log
from tests.kinds.carried import Carried, number_of

from nearcast.engine.feed.source import Feed
from nearcast.engine.feed.tailer import Tailer
from nearcast.engine.options.settings import Settings
from nearcast.engine.output.reports import Reports
from nearcast.engine.route.envelope import Envelope, unpack
from nearcast.engine.route.step import RouteStep
from nearcast.kinds import KINDS, kinds_of
from nearcast.model.space import Space
from nearcast.model.standing import Needs
from nearcast.testing.cases import busy_log, publish, subscribe
from nearcast.testing.checks import Check, yield_checks
from nearcast.testing.oracle import replay
from nearcast.testing.strategies import event_logs
from nearcast.wire.kind import needs_of
from nearcast.wire.read_split import read_split
from nearcast.wire.tables import OBJECTS

Json = dict[str, Any]
PLUGIN = "tests.kinds.carried"
KINDS_HERE = kinds_of([PLUGIN])
SHARDS = 3
WORLD = {"bbox": [-1e300, -1e300, 1e300, 1e300]}


def settings_of(memory: Path, order: str = "time", **more: Any) -> Settings:
    given_: Json = {"shards": SHARDS, "warmup": 20, **more}
    return Settings(space=Space.PLANAR, plugins=(PLUGIN,), order=order, arena=str(memory), **given_)


def published(log: list[Any]) -> int:
    return sum(event["op"] == "publish" for event in log)


def ranked(run: Miniature) -> list[int]:
    """How many objects each shard has counted."""
    return [manifest.ranked for manifest in run.states[run.next]]


@pytest.mark.parametrize(
    "check",
    [c for _, c in yield_checks("scan", Carried())],
    ids=[n for n, _ in yield_checks("scan", Carried())],
)
def test_it_keeps_every_promise_of_an_index(check: Check) -> None:
    for seed in range(2):
        check(seed)


@pytest.mark.parametrize("order", ["time", "arrival"])
@pytest.mark.parametrize("router", ["hash", "random", "broadcast", "tornado", "text-frequency"])
def test_it_reports_what_the_oracle_reports(
    tmp_path: Path, memory: Path, router: str, order: str
) -> None:
    """Batches come again, some on lost arenas; `random` and plans move subscriptions."""
    log = busy_log(11, Space.PLANAR, 150, late=0.2, kinds=KINDS_HERE)
    strategies = {"carried": router, "range": "tornado"}
    run = run_log(tmp_path, log, settings_of(memory, order, strategies=strategies), 12, Random(3))
    assert len(replay(log, Space.PLANAR, order, kinds=KINDS_HERE).of("carried")) > 50  # type: ignore[arg-type]
    assert ranked(run) == [published(log)] * SHARDS


@pytest.mark.parametrize("order", ["time", "arrival"])
def test_ranks_count_objects_that_went_elsewhere(tmp_path: Path, memory: Path, order: str) -> None:
    rng = Random(5)
    log: list[Any] = []
    for n in range(30):
        x, y = rng.uniform(0, 90), rng.uniform(0, 90)
        kind = "range" if n % 3 == 0 else "carried"
        query = {"kind": kind, "region": {"bbox": [x, y, x + 9, y + 9]}, "where": rng.choice("abc")}
        log.append(subscribe(f"s{n}", 0, query))
    for n in range(400):
        words = rng.choices("abcdef", k=3)
        time = n - rng.choice((0, 0, 0, 7))
        log.append(publish(f"o{n}", time, rng.uniform(0, 95), rng.uniform(0, 95), *words))
    strategies = {"carried": "tornado", "range": "tornado"}
    settings = settings_of(memory, order, strategies=strategies, only=("range", "carried"))
    run = run_log(tmp_path, log, settings, 50, Random(1))
    splits = Feed(run.checkpoint).read(run.next - 1)
    made = sum(read_split(s, Space.PLANAR, KINDS_HERE, 0).objects.num_rows for s in splits)
    sent = sum(load.objects for load in Reports(run.checkpoint).all()[-1].loads())
    assert 0 < sent < SHARDS * made
    assert ranked(run) == [400] * SHARDS


@pytest.mark.parametrize("order", ["time", "arrival"])
def test_parquet_in_and_out(tmp_path: Path, memory: Path, order: str) -> None:
    log = busy_log(13, Space.PLANAR, 120, late=0.2, kinds=KINDS_HERE)
    log = [e for e in log if isinstance(e["time"], int)]
    for event in log:
        for name in ("query", "meta"):
            if name in event:
                event[name] = json.dumps(event[name])
    table = pa.Table.from_pylist(log, schema=pa.schema([
        *((n, pa.string()) for n in ("op", "id", "text", "query", "owner", "meta")),
        ("time", pa.int64()),
        ("at", pa.list_(pa.float64())),
        ("keywords", pa.list_(pa.string())),
    ]))  # fmt: skip
    log = [
        {k: json.loads(v) if k in ("query", "meta") else v for k, v in e.items() if k != "expires"}
        for e in log
    ]
    folder = tmp_path / "in"
    folder.mkdir()
    pq.write_table(table, folder / "log.parquet", row_group_size=17)
    run = Miniature(settings_of(memory, order, format="parquet"), tmp_path)
    if order == "time":
        run.plan(folder / "log.parquet", 20)
    else:
        tailer = Tailer([folder], run.checkpoint, 20, 2, kinds=run.settings.kinds_to_find)
        tailer.poll()
        tailer.poll()
    run.finish()
    assert run.next > 3
    why = difference(reported(run.out), expected(log, Space.PLANAR, order, KINDS_HERE))  # type: ignore[arg-type]
    assert not why, why


@pytest.mark.parametrize("order", ["time", "arrival"])
def test_ranks_are_right_for_a_kind_that_comes_late(
    tmp_path: Path, memory: Path, order: str
) -> None:
    """Batches before its first subscription carry nothing, yet their objects are counted."""
    log = [publish(f"o{n}", n, n, 0, "a", *"ba"[: n % 3]) for n in range(60)]
    log[35:35] = [subscribe("s", 35, {"kind": "carried", "region": WORLD})]
    chosen = settings_of(memory, order, only=("range", "carried"))
    run = run_log(tmp_path, log, chosen, 10, Random(2))
    feed = Feed(run.checkpoint)
    carried = [
        {read_split(s, Space.PLANAR, KINDS_HERE, 0).needs for s in feed.read(n)}
        for n in range(len(feed))
    ]
    first = carried.index({Carried.needs})
    assert 0 < first < len(feed) - 1
    assert set().union(*carried[:first]) == {Needs.NOTHING}
    assert set().union(*carried[first:]) == {Carried.needs}
    (line, *_) = sorted((run.out / "notifications").glob("*.jsonl"))[0].read_text().splitlines()
    assert json.loads(line)["number"] == number_of(35, [("a", 2), ("b", 1), ("any", 1)])


@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(
    event_logs(Space.PLANAR, max_events=40, kinds=KINDS_HERE),
    st.integers(1, 45),
    st.integers(1, 4),
    st.sampled_from(["time", "arrival"]),
    st.sampled_from(["hash", "space-grid"]),
    st.integers(0, 99),
)
def test_ranks_depend_on_neither_batches_nor_splits(
    log: list[Json], batch: int, splits: int, order: str, router: str, seed: int
) -> None:
    everything = subscribe("all", -(10**6), {"kind": "carried", "region": WORLD})
    with TemporaryDirectory() as folder:
        chosen = settings_of(Path(folder, "arena"), order, strategies={"carried": router}, warmup=5)
        run = run_log(Path(folder, "run"), [everything, *log], chosen, batch, Random(seed), splits)
        assert ranked(run) == [published(log)] * SHARDS


LOG = [
    publish("o1", 5, 0, 0, "b", "a", "b"),
    publish("o2", 3, 9, 9, "c"),
    {
        "op": "publish",
        "id": "o3",
        "time": 4,
        "at": [1, 1],
        "text": "Straße c, C",
        "keywords": ["B"],
    },
]


def planned(folder: Path, memory: Path, *more: Json, **options: Any) -> Miniature:
    run = Miniature(settings_of(memory, **options), folder)
    run.feed([*more, *LOG], 100, splits=1)
    return run


def test_nothing_is_carried_where_no_kind_in_use_needs_it(
    tmp_path: Path, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kind is there, but nobody has subscribed to it."""

    def called(*_: Any) -> None:
        raise AssertionError("nobody needs it")

    for name in ("token_places", "count_words", "copy_lower", "carried_words"):
        place = "decode" if name == "carried_words" else "words"
        monkeypatch.setattr(f"nearcast.wire.{place}.{name}", called)
    monkeypatch.setattr("nearcast.engine.shard.carried.carried_by", called)
    run = planned(tmp_path, memory, subscribe("s", 0, KINDS["range"].examples.everything))
    (split,) = Feed(run.checkpoint).read(0)
    decoded = read_split(split, Space.PLANAR, KINDS_HERE, 0)
    assert decoded.objects.schema == OBJECTS
    assert decoded.needs is Needs.NOTHING
    assert decoded.texts is None
    for _, data in RouteStep(run.settings, str(run.checkpoint), 0).envelopes(decoded, 0):
        extras = unpack(data).extras
        assert (extras.published, extras.needs, extras.texts, extras.order) == (3, 0, None, None)
    run.finish()
    assert len(reported(run.out)) == 2
    assert ranked(run) == [3] * SHARDS


def test_needs_are_those_of_the_kinds_in_use() -> None:
    assert needs_of(KINDS, ("range", "knn")) is Needs.NOTHING
    assert needs_of(KINDS_HERE) == Carried.needs
    assert needs_of(KINDS_HERE, ()) is Needs.NOTHING
    assert needs_of(KINDS_HERE, ("range", "knn")) is Needs.NOTHING
    assert needs_of(KINDS_HERE, ("carried",)) == Carried.needs


def test_kinds_are_looked_for_where_one_needs_something(memory: Path) -> None:
    assert settings_of(memory).kinds_to_find == tuple(KINDS_HERE)
    assert Settings(arena=str(memory), only=("range", "knn")).kinds_to_find == ()


def envelopes(run: Miniature) -> list[Envelope]:
    (split,) = Feed(run.checkpoint).read(0)
    step = RouteStep(run.settings, str(run.checkpoint), 0)
    decoded = read_split(split, Space.PLANAR, KINDS_HERE, 0)
    return [unpack(data) for _, data in step.envelopes(decoded, 0, kinds=split.kinds)]


def test_an_envelope_with_all_objects_names_no_others(tmp_path: Path, memory: Path) -> None:
    run = planned(tmp_path, memory, subscribe("s", 0, Carried.examples.everything))
    for envelope in envelopes(run):
        assert envelope.extras.order is None
        assert envelope.extras.texts is not None
        assert envelope.object_table.schema.names == [*OBJECTS.names, "counts", "firsts"]
