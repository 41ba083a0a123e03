"""The archive of a run: every object once, and asks that reach back beyond what is retained."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.engine.contract import Miniature, as_text, difference, refused, reported, run_log
from tests.engine.test_asks import WORLD, ask, busy, settings_of

from nearcast.engine.options.run_options import RunOptions
from nearcast.engine.options.settings import Settings, check_bound
from nearcast.engine.output.archiving import open_archive
from nearcast.model.errors import NearcastError
from nearcast.model.space import Space
from nearcast.objects import STORES
from nearcast.objects.archive import file_paths, read
from nearcast.testing.cases import publish
from nearcast.testing.oracle import Order, replay
from nearcast.wire.tables import FOREVER, NEVER

Json = dict[str, Any]


def ids_of(folder: Path) -> Counter[str]:
    """The ids of all archived objects, as any tool reads them."""
    tables = [pq.read_table(path, columns=["id"]) for path in file_paths(folder)]
    return Counter(id_ for table in tables for id_ in table["id"].to_pylist())


def published(log: list[Json], order: Order = "time") -> Counter[str]:
    refused_lines = {n for n, _ in replay(log, "planar", order).rejected}
    return Counter(
        e["id"] for n, e in enumerate(log) if e["op"] == "publish" and n not in refused_lines
    )


@pytest.mark.parametrize("order", ["time", "arrival"])
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("retain", [0, 3])
def test_asks_reach_back_into_the_archive(
    tmp_path: Path, memory: Path, order: Order, store: str, retain: int
) -> None:
    """Batches come again, some on lost arenas; the archive has every object once nevertheless."""
    for seed in range(2):
        log = busy(seed, Space.PLANAR, 120, 0.2)
        folder = tmp_path / f"archive {seed}"
        chosen = settings_of(
            memory, order=order, store=store, retain_ms=retain, archive=str(folder)
        )
        run = run_log(tmp_path / str(seed), log, chosen, 13, Random(seed))
        answers = [n for n in map(json.loads, reported(run.out)) if n["event"] == "answer"]
        assert len(answers) == sum(e["op"] == "ask" for e in log) - len(refused(run.out))
        assert any(len(n.get("objects", ())) > 1 for n in answers)
        assert ids_of(folder) == published(log, order)


def test_over_the_antimeridian(tmp_path: Path, memory: Path) -> None:
    log = busy(4, Space.GEOGRAPHIC, 150)
    across = {"kind": "range", "region": {"bbox": [170, -90, -170, 90]}}
    edge = {"kind": "range", "region": {"bbox": [100, -90, 180, 90]}}
    log += [publish("w", 10**6, -180, 0), publish("e", 10**6, 180, 0)]
    log += [ask("a", 10**6, 10**7, across), ask("b", 10**6, 10**7, edge)]
    chosen = settings_of(
        memory, retain_ms=0, archive=str(tmp_path / "archive"), space=Space.GEOGRAPHIC
    )
    run = run_log(tmp_path / "run", log, chosen, 20)
    answers = {n["id"]: n for n in map(json.loads, reported(run.out)) if n["event"] == "answer"}
    for name in ("a", "b"):
        assert {"w", "e"} <= {o["id"] for o in answers[name]["objects"]}


def test_ranks_are_those_of_the_run(tmp_path: Path, memory: Path) -> None:
    log: list[Json] = [publish(f"o{n}", n, n, 0) | {"text": "a b a"} for n in range(90)]
    folder = tmp_path / "archive"
    run = Miniature(settings_of(memory, retain_ms=0, archive=str(folder)), tmp_path / "run")
    run.feed(log, 20)
    run.finish()
    found = read(folder, NEVER, FOREVER)
    assert found["rank"].to_pylist() == list(range(90))
    assert found["id"].to_pylist() == [f"o{n}".encode() for n in range(90)]
    assert {tuple(sorted(counts)) for counts in found["counts"].to_pylist()} == {(1, 1, 2)}


def test_another_archive_is_refused(tmp_path: Path, memory: Path) -> None:
    log: list[Json] = [publish(f"o{n}", n, n, 0, "a") for n in range(50)]
    chosen = settings_of(memory, archive=str(tmp_path / "archive"))
    run = Miniature(chosen, tmp_path / "run")
    run.feed(log, 20)
    run.finish()
    assert open_archive(chosen, run.checkpoint) is not None
    empty = settings_of(memory, archive=str(tmp_path / "new"))
    with pytest.raises(NearcastError, match="use the archive that the run began with"):
        open_archive(empty, run.checkpoint)
    shutil.rmtree(run.checkpoint)
    with pytest.raises(NearcastError, match="archive of another run"):
        open_archive(chosen, tmp_path / "other run")


def test_a_checkpoint_keeps_its_archive(tmp_path: Path) -> None:
    here = Settings.of(RunOptions(archive=str(tmp_path / "a")))
    check_bound(here, tmp_path / "checkpoint")
    check_bound(Settings.of(RunOptions(archive=str(tmp_path / "b"))), tmp_path / "checkpoint")
    with pytest.raises(NearcastError, match="archive was"):
        check_bound(Settings.of(RunOptions()), tmp_path / "checkpoint")


def test_what_is_asked_is_what_the_oracle_says(tmp_path: Path, memory: Path) -> None:
    """The words of an ask, its limit and its fields, out of files."""
    log: list[Json] = [
        publish(f"o{n}", n, n % 7, n % 5, "ramen late" if n % 2 else "sushi") for n in range(60)
    ]
    query = {"kind": "range", "region": WORLD, "where": "ramen AND NOT sushi"}
    near = {"kind": "knn", "at": [3, 2], "k": 4, "where": "sushi"}
    log += [
        ask("q", 59, 1000, query, limit=3, fields=["text", "at", "time", "keywords"]),
        ask("n", 59, 30, near, fields=["text"]),
    ]
    chosen = settings_of(memory, retain_ms=5, archive=str(tmp_path / "archive"))
    run = Miniature(chosen, tmp_path / "run")
    run.feed(log, 9)
    run.finish()
    right = Counter(map(as_text, replay(log, "planar").notifications))
    assert not difference(reported(run.out), right)
