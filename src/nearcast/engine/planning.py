"""Plans: what a router that can plan learns of objects and subscriptions, and when it acts.

It goes by batches, so that the stream never waits, and by files, so that a repeated batch repeats
it (`engine.moves` says what holds from which batch on):

1. while there is no plan, the route step keeps the objects of each split in `sample/`;
2. after the batch with which they are `warmup` objects, shards are asked for a survey;
3. at the end of the next batch each writes down what it holds, and the driver makes the plan;
4. at the end of the batch after that, shards export what the plan puts elsewhere;
5. from the next batch on the plan holds: a move like any other (DESIGN section 4).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.engine.files import write_atomic
from nearcast.index import LocalIndex
from nearcast.kernels.slots import CONJUNCTION
from nearcast.model.extent import circle_boxes
from nearcast.model.jit import njit
from nearcast.model.space import Space
from nearcast.routing import CanPlan, GridRouter, Router, Sample, Survey, table_of_plan
from nearcast.routing.balance import thinned
from nearcast.routing.dkm.arrays import pack, unpack
from nearcast.routing.grid.survey import RangeSurvey, join, survey_of
from nearcast.routing.grid.table import reference
from nearcast.wire.tables import lists, numbers

WARMUP = 10_000  # objects, unless told otherwise
MOST = 50_000  # that a table of cells and words is made from, unless told of more
# in an order
ASK = "survey"  # shards shall write a survey
TABLE = "table"  # this holds from the batch after that on; shards export what it puts elsewhere


class Surveyed(msgspec.Struct):
    """Where the survey of a shard is."""

    kind: str
    path: str


class Samples:
    """The objects kept for a plan, a file a split: `sample/BATCH-SPLIT-OBJECTS.bin`."""

    def __init__(self, checkpoint: Path) -> None:
        self.folder = checkpoint / "sample"

    def _files(self, before: int) -> list[tuple[int, int, int, Path]]:
        found = []
        for path in self.folder.glob("*.bin"):
            batch, split, objects = (int(part) for part in path.stem.split("-"))
            if batch < before:
                found.append((batch, split, objects, path))
        return sorted(found)

    def count(self, before: int) -> int:
        """Objects kept by the batches before `before`."""
        return sum(objects for _, _, objects, _ in self._files(before))

    def add(self, batch: int, split: int, objects: pa.RecordBatch) -> None:
        """Keep the objects of a split."""
        if objects.num_rows:
            name = f"{batch:012d}-{split:012d}-{objects.num_rows}.bin"
            offsets, words = lists(objects["words"], np.uint64)
            x, y = numbers(objects["x"]), numbers(objects["y"])
            data = pack({"x": x, "y": y, "offsets": offsets, "words": words})
            write_atomic(self.folder / name, data)

    def forget(self, before: int) -> None:
        """Let go what the batches before `before` kept: there is a plan."""
        for *_, path in self._files(before):
            path.unlink(missing_ok=True)

    def read(self, before: int) -> Sample:
        """All objects kept by the batches before `before`."""
        parts = [unpack(path.read_bytes()) for *_, path in self._files(before)]
        return Sample(
            np.concatenate([*(p["x"] for p in parts), np.empty(0)]),
            np.concatenate([*(p["y"] for p in parts), np.empty(0)]),
            _join_offsets([p["offsets"] for p in parts]),
            np.concatenate([*(p["words"] for p in parts), np.empty(0, np.uint64)]),
        )


def _join_offsets(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    lengths = [np.diff(part) for part in parts]
    return np.concatenate([[0], np.cumsum(np.concatenate([*lengths, np.empty(0, np.int64)]))])


def survey_for(router: Router, index: LocalIndex, slots: NDArray[np.int64], space: Space) -> bytes:
    """What a plan of `router` must know of the subscriptions in `slots`."""
    hashes = index.id_hashes(slots)
    controls, results = index.rows(slots)
    if isinstance(router, GridRouter):
        return pack(survey_of(controls, hashes)._asdict())
    return survey(controls, results, hashes, space)


def survey(
    controls: pa.RecordBatch, results: pa.RecordBatch, id_hash: NDArray[np.uint64], space: Space
) -> bytes:
    """What a plan must know of subscriptions, rows of CONTROLS with their RESULTS."""
    offsets, region = lists(controls["region"], np.float64)
    x, y = region[offsets[:-1]], region[offsets[:-1] + 1]
    reach = np.full(len(x), np.inf)
    starts, distances = lists(results["distance"], np.float64)
    slots = numbers(results["slot"])
    full = np.diff(starts) >= numbers(controls["k"])[slots]
    full &= numbers(controls["window"])[slots] == 0
    reach[slots[full]] = distances[starts[1:][full] - 1]
    cover, cover_words = lists(controls["cover"], np.uint64)
    program, program_words = lists(controls["program"], np.uint64)
    conjunction = numbers(controls["flags"]) & CONJUNCTION != 0
    return pack(
        {
            "id_hash": id_hash,
            "x": x,
            "y": y,
            "boxes": _balls(space.code, x.copy(), y.copy(), reach),
            "cover": np.diff(cover),
            "cover_words": cover_words,
            "conjunction": np.where(conjunction, np.diff(program), 0),
            "conjunction_words": program_words[np.repeat(conjunction, np.diff(program))],
        }
    )


@njit
def _balls(
    space: int, x: NDArray[np.float64], y: NDArray[np.float64], reach: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The box around each ball: all longitudes where it reaches over the antimeridian."""
    out = np.empty((len(x), 4))
    boxes = np.empty((2, 4))
    for i in range(len(x)):
        if reach[i] == np.inf:
            boxes[0, 0], boxes[0, 1], boxes[0, 2], boxes[0, 3] = -np.inf, -np.inf, np.inf, np.inf
        elif circle_boxes(space, x[i], y[i], reach[i], boxes) == 2:
            boxes[0, 0], boxes[0, 2] = -180.0, 180.0
        out[i] = boxes[0]
    return out


def join_surveys(surveys: list[bytes], sample: Sample) -> Survey:
    """One survey of all shards. A conjunction is known by its rarest word in the sample."""
    parts = [unpack(data) for data in surveys]
    whole = {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}
    x, cover, conjunction = whole["x"], whole["cover"], whole["conjunction"]
    conjunction_words = whole["conjunction_words"]
    known, counts = np.unique(sample.words, return_counts=True)
    at = np.minimum(np.searchsorted(known, conjunction_words), max(len(known) - 1, 0))
    frequency = np.zeros(len(conjunction_words), np.int64)
    if len(known):
        frequency = np.where(known[at] == conjunction_words, counts[at], 0)
    rows = np.repeat(np.arange(len(x)), conjunction)
    sort = np.lexsort((frequency, rows))
    has, first = np.unique(rows[sort], return_index=True)
    chosen = has[cover[has] == 0]
    rarest = conjunction_words[sort[first]][cover[has] == 0]
    # Both kinds, subscription by subscription.
    owner = np.concatenate([np.repeat(np.arange(len(x)), cover), chosen])
    words = np.concatenate([whole["cover_words"], rarest])
    order = np.argsort(owner, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(x)))])
    return Survey(
        whole["id_hash"], x, whole["y"], whole["boxes"], offsets.astype(np.int64), words[order]
    )


def make_plan(
    router: CanPlan | GridRouter,
    checkpoint: Path,
    batch: int,
    kind: str,
    paths: list[str],
    most: int,
) -> dict[str, Any]:
    """Plan from the objects and surveys up to `batch`; the order for shards to export by.

    Tables of cells and words are made from about `most` objects: batches may bring many more.
    """
    sample = Samples(checkpoint).read(batch + 1)
    surveys = [Path(path).read_bytes() for path in sorted(paths)]
    folder = checkpoint / "plans"
    if isinstance(router, GridRouter):
        known = join([RangeSurvey(**unpack(data)) for data in surveys])
        table = router.plan(thinned(sample, most)[0], known, {})
        return table_order(table, folder / f"{batch:012d}-{kind}.bin")
    held = join_surveys(surveys, sample)
    data, homes, costs = router.plan(sample, held, {})
    plan, moves = (folder / f"{batch:012d}-{kind}{end}.bin" for end in ("", "-homes"))
    write_atomic(plan, data)
    sort = np.argsort(held.id_hash, kind="stable")
    write_atomic(moves, pack({"ids": held.id_hash[sort], "homes": homes[sort]}))
    table = table_of_plan(costs, path=str(plan.resolve()))
    return {"homes": str(moves.resolve()), TABLE: table}


def table_order(table: bytes, path: Path) -> dict[str, Any]:
    """The order for shards to export by a table of cells and words, which goes into a file."""
    write_atomic(path, table)
    return {TABLE: reference(str(path.resolve()))}


def homes_by(order: dict[str, Any], shard: int, id_hash: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Where a plan puts each subscription; those it does not know stay at `shard`."""
    known = unpack(Path(order["homes"]).read_bytes())
    ids, homes = known["ids"], known["homes"]
    if len(ids) == 0:
        return np.full(len(id_hash), shard)
    at = np.minimum(np.searchsorted(ids, id_hash), len(ids) - 1)
    return np.where(ids[at] == id_hash, homes[at], shard)
