"""Control files: what holds in which batch, repeated decisions, and what is forgotten."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nearcast.engine.moves.control import _KEEP, Controls, Export
from nearcast.engine.options.settings import Settings
from nearcast.routing import Load, Random

LOADS = [Load(shard, 10, 10, 100, 0.1) for shard in range(3)]
IDS = [11, 22, 33]


def controls(folder: Path, router: str = "random") -> Controls:
    strategies = {"range": router, "knn": router}
    return Controls(folder, Settings(shards=3, strategies=strategies, only=("range", "knn")))


def export(path: Path, *shards: int) -> Export:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"moved")
    return Export("range", f"moves/{path.name}", len(shards), IDS[: len(shards)], list(shards))


def files(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted((folder / "control").glob("*"))}


def test_before_anything_was_decided(tmp_path: Path) -> None:
    c = controls(tmp_path)
    directions = c.directions(0)
    assert (directions.orders, directions.imports, directions.tables) == ({}, {}, {})
    assert {k: (type(r), r.table) for k, r in c.routers(7).items()} == {
        "range": (Random, b""),
        "knn": (Random, b""),
    }


def test_an_order_holds_in_the_next_batch_only(tmp_path: Path) -> None:
    c = controls(tmp_path)
    c.decide(0, [], LOADS)
    assert c.directions(1).orders == {"range": {"seed": 1}, "knn": {"seed": 1}}
    assert c.directions(2).orders == {}
    assert c.directions(0).orders == {}


def test_exports_become_a_table_and_imports(tmp_path: Path) -> None:
    c = controls(tmp_path)
    c.decide(0, [], LOADS)
    gone = export(tmp_path / "moves" / "a", 2, 0, 1)
    c.decide(1, [gone], LOADS)
    directions = c.directions(2)
    assert directions.imports == {"range": [gone.path]}
    router = c.routers(2)["range"]
    assert isinstance(router, Random)
    assert router.home(np.array(IDS, np.uint64)).tolist() == [2, 0, 1]
    assert directions.tables["range"] == router.table
    assert c.routers(1)["range"].table == b""  # a batch that is repeated is routed as before
    assert c.routers(9)["range"].table == router.table
    assert c.directions(9).imports == {}


def test_exports_of_several_shards(tmp_path: Path) -> None:
    c = controls(tmp_path)
    one = Export("range", "one", 1, [11], [2])
    two = Export("range", "two", 2, [22, 33], [1, 1])
    other = Export("knn", "three", 1, [11], [1])
    c.decide(1, [one, two, other], LOADS)
    assert c.directions(2).imports == {"range": ["one", "two"], "knn": ["three"]}
    homes = {k: r.home(np.array(IDS, np.uint64)).tolist() for k, r in c.routers(2).items()}  # type: ignore[attr-defined]
    assert homes == {"range": [2, 1, 1], "knn": [1, 22 % 3, 33 % 3]}


def test_deciding_again_says_the_same(tmp_path: Path) -> None:
    c = controls(tmp_path)
    c.decide(0, [], LOADS)
    gone = export(tmp_path / "moves" / "a", 2, 0)
    c.decide(1, [gone], LOADS)
    c.decide(2, [], LOADS)
    before = files(tmp_path)
    for batch, exports in ((1, [gone]), (2, []), (2, [])):
        controls(tmp_path).decide(batch, exports, LOADS)
    assert files(tmp_path) == before


def test_deciding_otherwise_replaces_what_was_said(tmp_path: Path) -> None:
    """A batch that is repeated may find fewer exports; what it said at first must not stay."""
    c = controls(tmp_path)
    c.decide(1, [export(tmp_path / "moves" / "a", 2, 0)], LOADS)
    c.decide(1, [], LOADS)
    assert c.directions(2).imports == {}
    assert c.routers(2)["range"].table == b""


def test_nothing_to_say_writes_nothing(tmp_path: Path) -> None:
    c = controls(tmp_path, "hash")
    for batch in range(4):
        c.decide(batch, [], LOADS)
    assert not (tmp_path / "control").exists()


def test_what_a_batch_without_rows_did_not_hear_is_told_again(tmp_path: Path) -> None:
    c = controls(tmp_path)
    gone = export(tmp_path / "moves" / "a", 2)
    c.decide(1, [gone], LOADS)
    c.decide(2, [], [])
    assert c.directions(3).imports == {"range": [gone.path]}


@pytest.mark.parametrize("last", [20, 21])
def test_old_files_are_forgotten(tmp_path: Path, last: int) -> None:
    c = controls(tmp_path)
    exports: dict[int, Path] = {}
    tables = {}
    for batch in range(last + 1):
        gone = []
        if batch % 2:
            exports[batch] = tmp_path / "moves" / str(batch)
            gone = [export(exports[batch], batch % 3)]
        c.decide(batch, gone, LOADS)
        tables[batch + 1] = c.routers(batch + 1)["range"].table
    kept = sorted(int(p.stem) for p in (tmp_path / "control").glob("*.bin"))
    assert len(kept) <= _KEEP + 3
    # All that a repeated batch may ask for is still there.
    for batch in range(last - _KEEP, last + 2):
        assert c.routers(batch)["range"].table == tables[batch]
        for paths in c.directions(batch).imports.values():
            assert all((tmp_path / p).exists() for p in paths)
    assert not exports[1].exists()
    assert len(list((tmp_path / "moves").iterdir())) <= _KEEP
