"""Random logs of edges: every index tells what the oracle tells, however the log is cut."""

from __future__ import annotations

import json
import math
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from nearcast.index import INDEXES, LocalIndex
from nearcast.index.arena import Arena, Memory, Part, Storage
from nearcast.model.space import Space
from nearcast.testing.cases import (
    assert_same_story,
    of_kind,
    publish,
    query_for,
    subscribe,
    unsubscribe,
    wanted,
)
from nearcast.testing.drive import Batch, late_control_cuts, run_index
from nearcast.testing.oracle import Order, replay
from nearcast.testing.reading import read_time
from nearcast.testing.strategies import batch_cuts, broken_lines, event_logs, spaces
from nearcast.wire.jsonl import decode_jsonl

Json = dict[str, Any]
EXAMPLES = 40
CASES = [
    pytest.param(index.name, kind, id=f"{index.name}-{kind}")
    for index in INDEXES.values()
    for kind in index.kinds
]
quick = settings(
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


class Disturbed:
    """What may happen to an index between two batches, drawn as a list of choices."""

    def __init__(self, kind: str, folder: Path | None, choices: list[str]) -> None:
        self.kind, self.folder, self.choices = kind, folder, choices

    def storage(self) -> Storage:
        return Memory() if self.folder is None else Part(Arena(self.folder / "arena"), "part")

    def __call__(self, index: LocalIndex, batch: Batch) -> LocalIndex:
        choice = self.choices.pop() if self.choices else "nothing"
        if choice == "compact":
            index.compact(batch.settled)
        elif choice == "attach" and self.folder is not None:
            return type(index)(self.kind, index.space, self.storage())
        return index


disturbances = st.lists(st.sampled_from(["nothing", "compact", "attach"]), max_size=8)


def agrees(
    name: str, kind: str, log: list[Json], space: Space, order: Order, data: st.DataObject
) -> None:
    right = wanted(log, kind, space, order)
    assert_same_story(run_index(name, log, kind, space, (), order) if order == "time" else [], right
                      if order == "time" else [])
    cuts = data.draw(batch_cuts(len(log)))
    if order == "arrival":
        cuts = sorted({*cuts, *late_control_cuts(log, space)})
    with TemporaryDirectory() as folder:
        between = Disturbed(
            kind, Path(folder) if data.draw(st.booleans()) else None, data.draw(disturbances)
        )
        told = run_index(name, log, kind, space, cuts, order, between.storage(), between)
    assert_same_story(told, right)
