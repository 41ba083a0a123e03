"""Routers that are wrong on purpose, each in one way: what checks of whole strategies bite."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.routing import Hash, Placement, Router
from nearcast.routing.grid.survey import RegionSurvey
from nearcast.routing.grid.table import Pairs
from nearcast.routing.ps2stream.hybrid import Ps2Stream
from nearcast.routing.ps2stream.text_frequency import TextFrequency
from nearcast.routing.tornado.tornado_uniform import TornadoUniform


class FlatWorld(TornadoUniform):
    """Of a region over the antimeridian, which has two boxes, it knows the first."""

    name = "flat-world"

    def copies(self, survey: RegionSurvey) -> Pairs:
        boxes = survey.boxes[survey.box_offsets[:-1]]
        return super().copies(survey._replace(box_offsets=np.arange(len(boxes) + 1), boxes=boxes))


class OneCopyOnly(TornadoUniform):
    """Places a subscription in the first of the parts that it reaches into."""

    name = "one-copy-only"

    def copies(self, survey: RegionSurvey) -> Pairs:
        rows, shards = super().copies(survey)
        rows, first = np.unique(rows, return_index=True)
        return rows, shards[first]


class OneWordOnly(TextFrequency):
    """Places a subscription under the first of the words that it can be posted under."""

    name = "one-word-only"

    def copies(self, survey: RegionSurvey) -> Pairs:
        has = np.diff(survey.word_offsets) > 0
        words = survey.words[survey.word_offsets[:-1][has]]
        offsets = np.append(0, np.cumsum(has))
        return super().copies(survey._replace(word_offsets=offsets, words=words))


class TellsTwice(Hash):
    """Two copies of each subscription, both of which report."""

    name = "reports-twice"
    by_id = False

    def place(self, controls: pa.RecordBatch, id_hash: NDArray[np.uint64]) -> Placement:
        del controls  # ids alone decide
        home = self.home(id_hash)
        rows = np.repeat(np.arange(len(home)), 2)
        shards = np.column_stack([home, (home + 1) % self.shards]).ravel()
        return Placement(rows, shards, np.ones(len(rows), bool))


class LeavesThemBehind(Ps2Stream):
    """Plans, and takes it that everybody is where the plan wants them already."""

    name = "leaves-them-behind"

    def stand(self, survey: RegionSurvey, parity: NDArray[np.bool_]) -> Pairs:
        del survey  # everything goes to one shard
        rows = np.arange(len(parity))
        return rows, np.zeros(len(rows), np.int64)


BROKEN: list[type[Router]] = [FlatWorld, OneCopyOnly, OneWordOnly, TellsTwice, LeavesThemBehind]
