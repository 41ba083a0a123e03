"""Plans: what a router that can plan learns of objects and subscriptions, and when it acts.

It goes by batches, so that the stream never waits, and by files, so that a repeated batch repeats
it (`engine.moves.control` says what holds from which batch on):

1. while there is no plan, the route step keeps the objects of each split in `sample/`;
2. after the batch with which they are `warmup` objects, shards get the order to write a survey;
3. at the end of the next batch each writes down what it holds, and the driver makes the plan;
4. at the end of the batch after that, shards export what the plan puts elsewhere;
5. from the next batch on the plan holds: a move like any other (`engine.moves.control`).
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.engine.files import inside
from nearcast.routing import Router, Sample
from nearcast.routing.arrays import pack, unpack
from nearcast.routing.orders import HOMES, TABLE, Order
from nearcast.routing.sampling import thinned
from nearcast.wire.durable import write_atomic
from nearcast.wire.tables import lists, numbers

WARMUP = 10_000  # objects, by default
SURVEY = "survey"  # in an order: shards shall write a survey


class Surveyed(msgspec.Struct):
    """Where the survey of a shard is."""

    kind: str
    path: str  # relative to the checkpoint


class Samples:
    """The objects kept for a plan, one file per split: `sample/BATCH-SPLIT-OBJECTS.bin`."""

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


def make_plan(
    router: Router, checkpoint: Path, batch: int, kind: str, paths: list[str], warmup: int
) -> Order:
    """Plan from the objects and surveys up to `batch`; the order for shards to export by.

    Where a router plans from a limited number of objects, batches may bring many more.
    """
    sample = Samples(checkpoint).read(batch + 1)
    if router.plans_from:
        sample, _ = thinned(sample, max(warmup, router.plans_from))
    surveys = [unpack((checkpoint / path).read_bytes()) for path in sorted(paths)]
    plan = router.plan(sample, router.join(surveys, sample), {})
    path, homes = (checkpoint / "plans" / f"{batch:012d}-{kind}{end}.bin" for end in ("", "-homes"))
    write_atomic(path, plan.data)
    order: Order = {TABLE: router.table_at(plan, inside(checkpoint, path))}
    if len(plan.ids):
        sort = np.argsort(plan.ids, kind="stable")
        write_atomic(homes, pack({"ids": plan.ids[sort], "homes": plan.homes[sort]}))
        order[HOMES] = inside(checkpoint, homes)
    return order
