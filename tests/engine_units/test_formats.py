"""Files of a checkpoint carry their format, and one of another format is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from nearcast.engine.feed.ledger import Ledger
from nearcast.engine.feed.source import Feed
from nearcast.engine.formats import FIELD, FORMAT
from nearcast.engine.moves.control import Controls
from nearcast.engine.moves.parcels import export, take_in
from nearcast.engine.options.fitted import KeptWeights, copied
from nearcast.engine.options.settings import Settings, check_bound
from nearcast.engine.route.envelope import Directions
from nearcast.engine.shard.first_results import begin
from nearcast.engine.shard.objects import Past
from nearcast.engine.shard.state import Manifest, StateFiles, StoredFiles, read_manifest
from nearcast.engine.shard.waiting import write_firsts
from nearcast.index.arena import Memory
from nearcast.kinds import KINDS
from nearcast.model.errors import NearcastError
from nearcast.model.space import Space
from nearcast.objects.base import STORED
from nearcast.routing import Load
from nearcast.routing.orders import Leaving
from nearcast.wire.split import Split

Read = Callable[[], object]
ONE = {
    "id": b"o", "x": 0.0, "y": 0.0, "time": 5, "rank": 0, "words": [], "counts": [], "firsts": [],
    "text": b"", "keywords": b"",
}  # fmt: skip


def _index() -> dict[str, object]:
    return {"range": KINDS["range"].index("scan")(Space.GEOGRAPHIC, Memory())}


def _settings(folder: Path) -> tuple[Path, Read]:
    check_bound(Settings(), folder)
    return folder / "settings.json", lambda: check_bound(Settings(), folder)


def _ledger(folder: Path) -> tuple[Path, Read]:
    Ledger(folder).add([], 0, 0)
    return folder / "ledger.json", lambda: Ledger(folder)


def _feed(folder: Path) -> tuple[Path, Read]:
    Feed(folder).add(0, [Split("reject", "", "a")])
    return folder / "feed" / f"{0:012d}.json", lambda: Feed(folder).read(0)


def _state(folder: Path) -> tuple[Path, Read]:
    files = StateFiles(folder, 0)
    name = files.write(0, msgspec.msgpack.encode({}))
    return files.folder / name, lambda: files.rebuild(Manifest(files=[name]), {})


def _control(folder: Path) -> tuple[Path, Read]:
    controls = Controls(folder, Settings(shards=2, strategies={"knn": "random"}))
    loads = [Load(n, 100, 100, 100 * n, 1.0) for n in range(2)]
    for batch in range(20):
        controls.decide(batch, [], loads)
    [path, *_] = sorted((folder / "control").iterdir())
    return path, lambda: controls.at(int(path.stem))


def _objects(folder: Path) -> tuple[Path, Read]:
    store = Past(Settings(), folder, Memory())
    store.add(pa.RecordBatch.from_pylist([ONE], schema=STORED))
    files = store.save(0, StoredFiles(), 5, 0)
    [name] = files.rest
    return folder / name, lambda: Past(Settings(), folder, Memory()).rebuild(files)


def _firsts(folder: Path) -> tuple[Path, Read]:
    name = write_firsts(folder, 0, 0, {}, {}, {})
    return folder / name, lambda: begin(folder, 0, [name], {}, Settings(), Manifest())


def _idf(folder: Path) -> tuple[Path, Read]:
    folder.mkdir()
    table = folder.parent / "idf.jsonl"
    table.write_text('{"objects":3}\n{"keyword":"a","df":1}\n')
    copy = copied(str(table), folder)
    return Path(copy), lambda: KeptWeights(Path(copy)).hashed


def _move(folder: Path) -> tuple[Path, Read]:
    slots = np.zeros(1, np.int64)
    none = np.empty(0, np.int64)
    path = folder / "moves" / "a.bin"
    export("range", 0, _index()["range"], Leaving(slots, none, none), path)  # type: ignore[arg-type]
    directions = Directions(1, imports={"range": [str(path)]})
    return path, lambda: take_in(folder, 1, directions, _index(), 0)  # type: ignore[arg-type]


MADE = [_settings, _ledger, _feed, _state, _control, _move, _objects, _firsts, _idf]


@pytest.mark.parametrize("make", MADE)
def test_a_file_of_another_format_is_refused(
    make: Callable[[Path], tuple[Path, Read]], tmp_path: Path
) -> None:
    path, read = make(tmp_path / "checkpoint")
    read()
    data = path.read_bytes()
    if path.suffix == ".json":
        other = json.dumps(json.loads(data) | {FIELD: 77}).encode()
    else:
        line, _, rest = data.partition(b"\n")
        assert line.endswith(f" {FORMAT}".encode())
        other = line.removesuffix(str(FORMAT).encode()) + b"77\n" + rest
    path.write_bytes(other)
    with pytest.raises(NearcastError) as raised:
        read()
    assert str(raised.value) == (
        f"{path}: has format 77, and this nearcast reads format {FORMAT}; go on with the nearcast "
        "that made this checkpoint, or start with a new one"
    )


def test_what_spark_holds_of_another_format_is_refused(tmp_path: Path) -> None:
    manifest = Manifest(token="t", files=["f"])
    assert read_manifest(msgspec.msgpack.encode(manifest), tmp_path) == manifest
    for held, said in (({"token": "t"}, 1), ({"format": 77}, 77)):
        with pytest.raises(NearcastError, match=f"has format {said}, and this nearcast reads"):
            read_manifest(msgspec.msgpack.encode(held), tmp_path)


@pytest.mark.parametrize("make", MADE)
def test_a_file_from_before_there_were_formats_is_refused(
    make: Callable[[Path], tuple[Path, Read]], tmp_path: Path
) -> None:
    path, read = make(tmp_path / "checkpoint")
    if path.name.startswith("0000") and path.suffix == ".json":
        path.write_text("[]")
    elif path.suffix == ".json":
        values = json.loads(path.read_bytes())
        del values[FIELD]
        path.write_text(json.dumps(values))
    else:
        path.write_bytes(path.read_bytes().partition(b"\n")[2])
    with pytest.raises(NearcastError, match="has format 1"):
        read()
