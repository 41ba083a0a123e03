"""Random logs of edges: every index tells what the oracle tells, however the log is cut."""

from __future__ import annotations

import json
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nearcast.index import INDEXES, LocalIndex, Scan
from nearcast.index.arena import Arena, Memory, Part, Storage
from nearcast.index.compiled import CompiledIndex
from nearcast.index.notify import net
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
from nearcast.testing.drive import Batch, notifications, plan, run_index
from nearcast.testing.oracle import Order, replay
from nearcast.testing.strategies import batch_cuts, broken_lines, event_logs, spaces
from nearcast.wire.jsonl import decode_jsonl

Json = dict[str, Any]
EXAMPLES = 25
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


@pytest.mark.parametrize(("name", "kind"), CASES)
@quick
@given(space=spaces, data=st.data())
def test_by_time(name: str, kind: str, space: Space, data: st.DataObject) -> None:
    log = data.draw(event_logs(space))
    agrees(name, kind, log, space, "time", data.draw(batch_cuts(len(log))), data)


@pytest.mark.parametrize(("name", "kind"), CASES)
@quick
@given(space=spaces, data=st.data())
def test_as_it_arrives(name: str, kind: str, space: Space, data: st.DataObject) -> None:
    log = data.draw(event_logs(space))
    agrees(name, kind, log, space, "arrival", data.draw(batch_cuts(len(log))), data)


def agrees(
    name: str,
    kind: str,
    log: list[Json],
    space: Space,
    order: Order,
    cuts: list[int],
    data: st.DataObject,
) -> None:
    with TemporaryDirectory() as folder:
        place = Path(folder) if data.draw(st.booleans()) else None
        between = Disturbed(kind, place, data.draw(disturbances))
        told = run_index(name, log, kind, space, cuts, order, between.storage(), between)
    assert_same_story(told, wanted(log, kind, space, order))


def told_net(index: LocalIndex, batches: list[Batch]) -> list[Json]:
    told = []
    for batch in batches:
        index.apply(batch.controls, batch.at)
        changes = index.match(batch.objects, batch.clock, batch.now, net=True)
        told += notifications(index, net(changes))
        index.close()
    return told


@pytest.mark.parametrize(
    "name", [n for n, index in INDEXES.items() if issubclass(index, CompiledIndex)]
)
@quick
@given(space=spaces, order=st.sampled_from(["time", "arrival"]), data=st.data())
def test_a_search_for_many_finds_what_offers_leave(
    name: str, space: Space, order: Order, data: st.DataObject
) -> None:
    if "knn" not in INDEXES[name].kinds:
        return
    log = data.draw(event_logs(space))
    batches = plan(log, space, order, data.draw(batch_cuts(len(log))))
    index = INDEXES[name]("knn", space, Memory())
    assert isinstance(index, CompiledIndex)
    index.bulk_from = 1
    assert_same_story(told_net(index, batches), told_net(Scan("knn", space, Memory()), batches))


@pytest.mark.parametrize(
    "name",
    [n for n, i in INDEXES.items() if issubclass(i, CompiledIndex) and "range" in i.kinds],
)
@quick
@given(space=spaces, piece=st.integers(1, 6), in_order=st.booleans(), data=st.data())
def test_pieces_are_what_is_found_at_once(
    name: str, space: Space, piece: int, in_order: bool, data: st.DataObject
) -> None:
    log = data.draw(event_logs(space))
    whole, cut = (INDEXES[name]("range", space, Memory()) for _ in range(2))
    assert isinstance(cut, CompiledIndex)
    cut.piece, cut.scattered_from = piece, 0
    for batch in plan(log, space, "arrival", data.draw(batch_cuts(len(log)))):
        whole.apply(batch.controls, batch.at)
        cut.apply(batch.controls, batch.at)
        wanted_ = whole.match(batch.objects, batch.clock, batch.now)
        orders, slots = [], []
        for found in cut.matching(batch.objects, batch.clock, batch.now, in_order=in_order):
            orders += found.order.tolist()  # a copy: memory is used again
            slots += found.slot.tolist()
        told = list(zip(orders, slots, strict=True))
        runs = [order for order, _ in groupby(orders)]
        assert len(runs) == len(set(runs))  # what an object meets stands together
        if not in_order:
            told.sort(key=itemgetter(0))  # which leaves each object's as they were
        assert told == list(zip(wanted_.order.tolist(), wanted_.slot.tolist(), strict=True))
        assert cut.all_report == bool(cut.reports(np.arange(len(cut))).all())
        whole.close()
        cut.close()


@quick
@given(space=spaces, data=st.data())
def test_oracle_and_decoder_refuse_the_same_lines(space: Space, data: st.DataObject) -> None:
    lines = [json.dumps(event) for event in data.draw(event_logs(space, max_events=4))]
    for line in data.draw(st.lists(st.one_of(broken_lines(), st.just(" ")), max_size=4)):
        lines.insert(data.draw(st.integers(0, len(lines))), line)
    refused = decode_jsonl("\n".join(lines).encode(), space).rejects
    assert sorted(refused["pos"].to_pylist()) == [p for p, _ in replay(lines, space).rejected]
    assert all(refused["reason"].to_pylist())


# -- late events of a live stream --------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n, index in INDEXES.items() if "range" in index.kinds])
def test_late_unsubscribe_ends_only_what_has_the_id(name: str) -> None:
    log = [
        subscribe("s", 0, query_for("range")),
        subscribe("s", 10, query_for("knn")),
        unsubscribe("s", 5),
        publish("o", 7),
    ]
    told = run_index(name, log, "range", Space.PLANAR, (), "arrival")
    assert_same_story(told, of_kind(replay(log, Space.PLANAR, "arrival").notifications, "range"))


@pytest.mark.parametrize("name", [n for n, index in INDEXES.items() if "knn" in index.kinds])
@pytest.mark.parametrize("late", [3, 7])
def test_moments_pass_before_late_controls_in_one_batch(name: str, late: int) -> None:
    log = [
        subscribe("s", 0, query_for("knn", window=5 if late == 3 else 7)),
        publish("o", 0),
        subscribe("x", 7, query_for("range")),
        unsubscribe("s", late),
    ]
    told = run_index(name, log, "knn", Space.PLANAR, (), "arrival")
    assert_same_story(told, wanted(log, "knn", Space.PLANAR, "arrival"))
