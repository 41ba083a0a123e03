"""Random logs of edges: every index reports what the oracle reports, however the log is cut."""

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

from nearcast.index import INDEXES, LocalIndex
from nearcast.index.arena import Arena, Memory, Part, Storage
from nearcast.index.balls.index import BallIndex
from nearcast.index.regions.index import RegionIndex
from nearcast.kinds import KINDS, Kind
from nearcast.model.space import Space
from nearcast.testing.cases import (
    assert_same_story,
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
from nearcast.wire.notifications import net

Json = dict[str, Any]
EXAMPLES = 25
CASES = [
    pytest.param(index, kind, id=f"{index}-{kind.name}")
    for kind in KINDS.values()
    for index in kind.indexes
]
RANGE, KNN = KINDS["range"], KINDS["knn"]
quick = settings(
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


class Disturbed:
    """What may happen to an index between two batches, drawn as a list of choices."""

    def __init__(self, kind: Kind, folder: Path | None, choices: list[str]) -> None:
        self.kind, self.folder, self.choices = kind, folder, choices

    def storage(self) -> Storage:
        return Memory() if self.folder is None else Part(Arena(self.folder / "arena"), "part")

    def __call__(self, index: LocalIndex, batch: Batch) -> LocalIndex:
        choice = self.choices.pop() if self.choices else "nothing"
        if choice == "compact":
            index.compact(batch.settled)
        elif choice == "attach" and self.folder is not None:
            return self.kind.index(index.name)(index.space, self.storage())
        return index


disturbances = st.lists(st.sampled_from(["nothing", "compact", "attach"]), max_size=8)


@pytest.mark.parametrize(("name", "kind"), CASES)
@quick
@given(space=spaces, data=st.data())
def test_by_time(name: str, kind: Kind, space: Space, data: st.DataObject) -> None:
    log = data.draw(event_logs(space))
    agrees(name, kind, log, space, "time", data.draw(batch_cuts(len(log))), data)


@pytest.mark.parametrize(("name", "kind"), CASES)
@quick
@given(space=spaces, data=st.data())
def test_as_it_arrives(name: str, kind: Kind, space: Space, data: st.DataObject) -> None:
    log = data.draw(event_logs(space))
    agrees(name, kind, log, space, "arrival", data.draw(batch_cuts(len(log))), data)


def agrees(
    name: str,
    kind: Kind,
    log: list[Json],
    space: Space,
    order: Order,
    cuts: list[int],
    data: st.DataObject,
) -> None:
    with TemporaryDirectory() as folder:
        place = Path(folder) if data.draw(st.booleans()) else None
        between = Disturbed(kind, place, data.draw(disturbances))
        reported = run_index(name, log, kind, space, cuts, order, between.storage(), between)
    assert_same_story(reported, wanted(log, kind, space, order))


def told_net(name: str, space: Space, batches: list[Batch], bulk: bool = False) -> list[Json]:
    index = KNN.index(name)(space, Memory())
    if bulk:
        assert isinstance(index, BallIndex)
        index.bulk_from = 1
    reported = []
    for batch in batches:
        index.apply(batch.controls, batch.at)
        changes = index.match(batch.objects, batch.clock, batch.now, net=True)
        reported += notifications(index, net(changes, KNN.events), KNN)
        index.close()
    return reported


@pytest.mark.parametrize(
    "name", [n for n, index in INDEXES["balls"].items() if issubclass(index, BallIndex)]
)
@quick
@given(space=spaces, order=st.sampled_from(["time", "arrival"]), data=st.data())
def test_a_search_for_many_finds_what_offers_leave(
    name: str, space: Space, order: Order, data: st.DataObject
) -> None:
    log = data.draw(event_logs(space))
    batches = plan(log, KNN, space, order, data.draw(batch_cuts(len(log))))
    assert_same_story(told_net(name, space, batches, bulk=True), told_net("scan", space, batches))


@pytest.mark.parametrize("bulk", [False, True])
@pytest.mark.parametrize("cut", range(1, 6))
def test_a_batch_that_ends_within_an_instant_knows_its_moment(cut: int, bulk: bool) -> None:
    """What ages out at time 2 has left before the object of time 2, whether that concerns it."""
    query = {"kind": "knn", "at": [0, 0], "k": 1, "window": 2, "where": "a"}
    log: list[Json] = [{"op": "subscribe", "id": "s", "time": 0, "query": query}]
    for n, (time, text) in enumerate([(0, "a"), (1, "b"), (2, "b"), (2, "a")]):
        log.append({"op": "publish", "id": f"o{n}", "time": time, "at": [0, 0], "text": text})
    batches = plan(log, KNN, Space.PLANAR, "time", [cut])
    reported = told_net("pyramid", Space.PLANAR, batches, bulk)
    assert_same_story(reported, told_net("scan", Space.PLANAR, batches))


@pytest.mark.parametrize(
    "name",
    [n for n, i in INDEXES["regions"].items() if issubclass(i, RegionIndex)],
)
@quick
@given(space=spaces, piece=st.integers(1, 6), in_order=st.booleans(), data=st.data())
def test_pieces_are_what_is_found_at_once(
    name: str, space: Space, piece: int, in_order: bool, data: st.DataObject
) -> None:
    log = data.draw(event_logs(space))
    whole, cut = (INDEXES["regions"][name](space, Memory()) for _ in range(2))
    assert isinstance(cut, RegionIndex)
    cut.piece, cut.scattered_from = piece, 0
    for batch in plan(log, RANGE, space, "arrival", data.draw(batch_cuts(len(log)))):
        whole.apply(batch.controls, batch.at)
        cut.apply(batch.controls, batch.at)
        wanted_ = whole.match(batch.objects, batch.clock, batch.now)
        orders, slots = [], []
        for found in cut.matching(batch.objects, batch.clock, batch.now, in_order=in_order):
            orders += found.order.tolist()  # a copy: memory is used again
            slots += found.slot.tolist()
        reported = list(zip(orders, slots, strict=True))
        runs = [order for order, _ in groupby(orders)]
        assert len(runs) == len(set(runs))  # what an object meets stands together
        if not in_order:
            reported.sort(key=itemgetter(0))  # which leaves each object's as they were
        assert reported == list(zip(wanted_.order.tolist(), wanted_.slot.tolist(), strict=True))
        assert cut.all_report == bool(cut.reports(np.arange(len(cut))).all())
        whole.close()
        cut.close()


@quick
@given(space=spaces, data=st.data())
def test_oracle_and_decoder_refuse_the_same_lines(space: Space, data: st.DataObject) -> None:
    lines = [json.dumps(event) for event in data.draw(event_logs(space, max_events=4))]
    for line in data.draw(st.lists(st.one_of(broken_lines(), st.just(" ")), max_size=4)):
        lines.insert(data.draw(st.integers(0, len(lines))), line)
    refused = decode_jsonl("\n".join(lines).encode(), space, KINDS).rejects
    assert sorted(refused["pos"].to_pylist()) == [p for p, _ in replay(lines, space).rejected]
    assert all(refused["reason"].to_pylist())


# -- late events of a live stream --------------------------------------------------------------


@pytest.mark.parametrize("name", RANGE.indexes)
def test_late_unsubscribe_ends_only_what_has_the_id(name: str) -> None:
    log = [
        subscribe("s", 0, query_for(RANGE)),
        subscribe("s", 10, query_for(KNN)),
        unsubscribe("s", 5),
        publish("o", 7),
    ]
    reported = run_index(name, log, RANGE, Space.PLANAR, (), "arrival")
    assert_same_story(reported, wanted(log, RANGE, Space.PLANAR, "arrival"))


@pytest.mark.parametrize("name", KNN.indexes)
@pytest.mark.parametrize("late", [3, 7])
def test_moments_pass_before_late_controls_in_one_batch(name: str, late: int) -> None:
    log = [
        subscribe("s", 0, query_for(KNN, window=5 if late == 3 else 7)),
        publish("o", 0),
        subscribe("x", 7, query_for(RANGE)),
        unsubscribe("s", late),
    ]
    reported = run_index(name, log, KNN, Space.PLANAR, (), "arrival")
    assert_same_story(reported, wanted(log, KNN, Space.PLANAR, "arrival"))
