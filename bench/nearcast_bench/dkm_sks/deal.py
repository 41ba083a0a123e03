"""Who gets which subscription: the algorithms of the experiment of DkM-SKS as main servers."""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index.base import wanted_words
from nearcast.index.posting import UNIVERSAL
from nearcast.kernels.hashing import hash_ids
from nearcast.model.errors import NearcastError
from nearcast.model.jit import njit
from nearcast.routing import ROUTERS, Router, Sample
from nearcast.routing.dkm.survey import Survey
from nearcast.routing.grid.router import GridRouter
from nearcast.routing.grid.survey import RegionSurvey, take
from nearcast.routing.grid.table import GridTable, owner
from nearcast.wire.tables import numbers, strings
from nearcast_bench.dkm_sks.load import Loaded

Homes = NDArray[np.int64]
_PS2STREAM_SAMPLE = 20_000  # objects and subscriptions each: its planner is made for samples


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A way to deal subscriptions, and the index of each worker."""

    name: str
    router: str  # of ROUTERS
    index: str


ALGORITHMS = (
    Algorithm("ps2stream", "ps2stream", "inverted"),
    Algorithm("kop", "kop", "inverted"),
    Algorithm("sop", "sop", "rect-inverted"),
    Algorithm("dkm-sks", "dkm-sks", "grid-inverted"),
    Algorithm("dkm-sks+pyramid", "dkm-sks", "pyramid"),
    Algorithm("hash+pyramid", "hash", "pyramid"),
)


def chosen(names: list[str]) -> tuple[Algorithm, ...]:
    """The algorithms with these names, in their usual order; without any, all."""
    there = [a.name for a in ALGORITHMS]
    unknown = [n for n in names if n not in there]
    if unknown:
        raise NearcastError(f"bench: no algorithm {unknown[0]!r}; there are {', '.join(there)}")
    return tuple(a for a in ALGORITHMS if a.name in names or not names)


class MainServer(ABC):
    """Knows the worker of each subscription (`homes`, by number) and deals those that come."""

    homes: Homes

    @abstractmethod
    def insert(self, controls: pa.RecordBatch) -> Homes:
        """The workers of new subscriptions."""

    @abstractmethod
    def delete(self, controls: pa.RecordBatch, worker: int) -> None:
        """Take note that subscriptions of a worker end."""


def main_server(loaded: Loaded, algorithm: Algorithm, m: int) -> MainServer:
    """The main server of an algorithm, all of S dealt."""
    router = ROUTERS[algorithm.router](m)
    if router.keeps_costs:
        return _Planned(loaded, router)
    if isinstance(router, GridRouter):
        return _Ps2Stream(loaded, router)
    return _ByHash(loaded, m)


class _ByHash(MainServer):
    """By id: what nearcast does by default."""

    def __init__(self, loaded: Loaded, m: int) -> None:
        self._m = np.uint64(m)
        self.homes = (loaded.survey.id_hash % self._m).astype(np.int64)

    def insert(self, controls: pa.RecordBatch) -> Homes:
        homes: Homes = (_hashes(controls) % self._m).astype(np.int64)
        return homes

    def delete(self, controls: pa.RecordBatch, worker: int) -> None:
        pass  # it keeps no account


class _Planned(MainServer):
    """KOP, SOP, DkM-SKS: by C(w), which insertions add to and deletions take from."""

    def __init__(self, loaded: Loaded, router: Router) -> None:
        plan = router.plan(loaded.sample, loaded.survey, {})
        self.homes = plan.homes
        # A name of its own: plans are mapped and remembered by their paths.
        with tempfile.NamedTemporaryFile(dir=loaded.folder, delete=False) as file:
            file.write(plan.data)
        self._router = router.with_table(router.table_at(plan, file.name))

    def insert(self, controls: pa.RecordBatch) -> Homes:
        place = self._router.place(controls, _hashes(controls))
        assert place.costs is not None
        self._adjust(place.shards, place.costs)
        return place.shards

    def delete(self, controls: pa.RecordBatch, worker: int) -> None:
        costs = self._router.costs(controls)
        self._adjust(np.full(len(costs), worker), -costs)

    def _adjust(self, homes: Homes, costs: NDArray[np.float64]) -> None:
        m = self._router.shards
        table = self._router.adjusted(np.bincount(homes, costs, m).astype(np.float64))
        self._router = self._router.with_table(table)


class _Queried(NamedTuple):
    """Places of subscriptions, and the first word that each is posted under."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    word: NDArray[np.uint64]


class _Ps2Stream(MainServer):
    """PS2Stream for the k nearest: the paper says that it was extended, not how.

    Its plan takes a subscription for a query of no extent at the subscription's place. Objects go
    to all workers, as with the others: so one copy does, at the owner of the first of its words.
    """

    def __init__(self, loaded: Loaded, router: GridRouter) -> None:
        rng = np.random.default_rng(loaded.setting.seed)
        s = loaded.survey
        rows = _some(len(s.x), rng)
        plan = router.plan(_some_objects(loaded.sample, rng), take(_as_ranges(s), rows), {})
        grid = router.with_table(plan.data).grid
        assert grid is not None
        self._grid: GridTable = grid
        self.homes = _owners(self._grid, _Queried(s.x, s.y, _first_words(s.word_offsets, s.words)))

    def insert(self, controls: pa.RecordBatch) -> Homes:
        x, y = numbers(controls["x"]), numbers(controls["y"])
        offsets, words, _ = wanted_words(controls)
        return _owners(self._grid, _Queried(x, y, _first_words(offsets, words)))

    def delete(self, controls: pa.RecordBatch, worker: int) -> None:
        pass  # the plan stands


@njit
def _owners(t: GridTable, queried: _Queried) -> Homes:
    homes = np.empty(len(queried.x), np.int64)
    for i in range(len(homes)):
        homes[i] = owner(t, queried.x[i], queried.y[i], queried.word[i])
    return homes


def _first_words(
    offsets: NDArray[np.int64], words: NDArray[np.uint64]
) -> NDArray[np.uint64]:  # fmt: skip
    padded = np.append(words, UNIVERSAL)
    return np.where(np.diff(offsets) > 0, padded[offsets[:-1]], UNIVERSAL)


def _as_ranges(s: Survey) -> RegionSurvey:
    n = len(s.x)
    boxes = np.stack([s.x, s.y, s.x, s.y], axis=1)
    return RegionSurvey(
        s.id_hash, np.arange(n + 1), boxes, s.word_offsets, s.words, np.zeros(n, bool)
    )


def _some(n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    return np.sort(rng.choice(n, min(n, _PS2STREAM_SAMPLE), replace=False))


def _some_objects(sample: Sample, rng: np.random.Generator) -> Sample:
    rows = _some(len(sample.x), rng)
    counts = np.diff(sample.word_offsets)
    held = np.isin(np.repeat(np.arange(len(counts)), counts), rows)
    offsets = np.append(0, np.cumsum(counts[rows]))
    return Sample(sample.x[rows], sample.y[rows], offsets, sample.words[held])


def _hashes(controls: pa.RecordBatch) -> NDArray[np.uint64]:
    offsets, data = strings(controls["id"])
    return hash_ids(data, offsets)
