"""Notifications: net changes against their definition, lines and columns against each other."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from nearcast.index.arena import Memory
from nearcast.kinds import KINDS, Event, Kind
from nearcast.model.space import Space
from nearcast.testing.cases import publish, query_for, subscribe
from nearcast.testing.drive import notifications, plan, step
from nearcast.testing.strategies import event_logs, spaces
from nearcast.wire.changes import Changes
from nearcast.wire.notifications import (
    Reported,
    Rows,
    net,
    notifications_schema,
    render,
    tabulate,
    write_rows,
)

quick = settings(max_examples=30)
RANGE, KNN = KINDS["range"], KINDS["knn"]
NOTIFICATIONS = notifications_schema(KINDS)
# Of a kind that has all there can be: an event of either sign, and one that is no change.
EVENTS = (Event("found"), Event("enter", value=True, sign=1), Event("leave", sign=-1))
FOUND, ENTER, LEAVE = range(3)

Json = dict[str, Any]
Pair = tuple[int, int]  # slot, object

# -- net -----------------------------------------------------------------------------------------

pairs = st.tuples(st.integers(0, 2), st.integers(0, 3))


def changes_of(reported: list[tuple[int, int, int]]) -> Changes:
    """Changes from (slot, object, event); `order` and `time` say which of them it was."""
    n = len(reported)
    names = np.array([7 * name for _, name, _ in reported], np.int64)
    return Changes(
        np.arange(n),
        np.array([slot for slot, _, _ in reported], np.int64),
        np.array([event for _, _, event in reported], np.uint8),
        np.arange(n) * 10,
        np.arange(n) / 2,
        names,
        np.ones(n, np.int64),
        np.zeros(50, np.uint8),
    )


@quick
@given(st.sets(pairs), st.lists(pairs, max_size=20))
@example({(0, 0)}, [(0, 0), (0, 0)])
@example(set(), [(0, 0), (0, 0), (0, 0)])
def test_net_is_the_difference_before_and_after(before: set[Pair], flips: list[Pair]) -> None:
    now, reported = set(before), []
    last: dict[Pair, int] = {}
    for n, pair in enumerate(flips):
        reported.append((*pair, LEAVE if pair in now else ENTER))
        now ^= {pair}
        last[pair] = n
    found = net(changes_of(reported), EVENTS)
    right = sorted(
        [(last[p], *p, LEAVE) for p in before - now] + [(last[p], *p, ENTER) for p in now - before]
    )
    rows = zip(found.order, found.slot, found.name_starts // 7, found.event, strict=True)
    assert [tuple(map(int, row)) for row in rows] == right
    assert found.time.tolist() == [10 * n for n, *_ in right]
    assert found.value.tolist() == [n / 2 for n, *_ in right]


@quick
@given(st.lists(pairs, max_size=8))
def test_matches_are_all_told(reported: list[Pair]) -> None:
    matches = [(*pair, 0) for pair in reported]
    for events in (RANGE.events, EVENTS):
        assert net(changes_of(matches), events).order.tolist() == list(range(len(reported)))


def test_matches_beside_results() -> None:
    reported = [(0, 1, FOUND), (1, 1, ENTER), (0, 1, FOUND), (1, 1, LEAVE)]
    assert net(changes_of(reported), EVENTS).order.tolist() == [0, 2]
    reported = [(0, 1, ENTER), (0, 1, FOUND), (0, 2, FOUND), (0, 2, LEAVE), (0, 2, FOUND)]
    assert net(changes_of(reported), EVENTS).order.tolist() == [0, 1, 2, 3, 4]


def test_events_are_counted_by_their_code() -> None:
    reported = [(0, 1, LEAVE), (1, 1, ENTER), (0, 1, LEAVE)]
    assert changes_of(reported).events() == {ENTER: 1, LEAVE: 2}
    assert changes_of([]).events() == {}


# -- lines and columns ---------------------------------------------------------------------------

CASES = [
    pytest.param(index, kind, id=f"{index}-{kind.name}")
    for kind in KINDS.values()
    for index in kind.indexes
]


def read(row: Json) -> Json:
    """A notification as both forms can say it: JSON has no infinity."""
    row = {k: v for k, v in row.items() if v is not None}
    for name in ("meta", "terms"):
        if isinstance(row.get(name), str):
            row[name] = json.loads(row[name])
    if row["event"] == "enter" and row.get("distance", math.inf) == math.inf:
        row["distance"] = math.inf
    return row


def written(batches: Iterable[Rows]) -> list[dict[str, Any]]:
    """Rows of a Parquet file of them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.parquet")
        write_rows(batches, path, KINDS)
        table = pq.read_table(path)
    assert table.schema == NOTIFICATIONS
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


@pytest.mark.parametrize(("name", "kind"), CASES)
@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(space=spaces, data=st.data())
def test_columns_say_what_lines_say(
    name: str, kind: Kind, space: Space, data: st.DataObject
) -> None:
    log = data.draw(event_logs(space, max_events=25))
    index = kind.index(name)(space, Memory())
    for batch in plan(log, kind, space, cuts=[len(log) // 2]):
        changes = step(index, batch)
        reported = Reported(kind, index, changes)
        lines = render(reported).tobytes().decode().splitlines()
        from_lines = [read(json.loads(line)) for line in lines]
        assert from_lines == [read(row) for row in written(tabulate([reported], KINDS))]
        assert from_lines == [read(n) for n in notifications(index, changes, kind)]
        index.close()


def test_a_line_by_hand() -> None:
    log = [
        subscribe('s"1', 0, query_for(KNN), owner="me", meta={"n": [1, None]}),
        publish("o\n1", -0, 3, 4),
    ]
    index = KNN.index("inverted")(Space.PLANAR, Memory())
    [batch] = plan(log, KNN, Space.PLANAR)
    reported = Reported(KNN, index, step(index, batch))
    assert render(reported).tobytes() == (
        b'{"id":"s\\"1","event":"enter","object":"o\\n1","time":0,"distance":5.0,'
        b'"owner":"me","meta":{"n":[1,null]}}\n'
    )
    assert written(tabulate([reported], KINDS)) == [
        {
            "id": 's"1',
            "event": "enter",
            "object": "o\n1",
            "time": 0,
            "distance": 5.0,
            "score": None,
            "terms": None,
            "owner": "me",
            "meta": '{"n":[1,null]}',
        }
    ]


@pytest.mark.parametrize("kind", [RANGE, KNN], ids=lambda kind: kind.name)
def test_nothing_to_tell(kind: Kind) -> None:
    index = kind.index("inverted")(Space.PLANAR, Memory())
    [batch] = plan([publish("o", 0)], kind, Space.PLANAR)
    reported = Reported(kind, index, net(step(index, batch), kind.events))
    assert render(reported).tobytes() == b""
    assert written(tabulate([reported], KINDS)) == []


def test_many_matches_of_one_object() -> None:
    """Its id is written once, however often it is reported; files may have rows of both kinds."""
    log = [subscribe(f"s{n}", 0, query_for(RANGE), meta={"n": n}) for n in range(10)]
    log += [publish('o"', 1), publish("p", 1)]
    batches: list[Rows] = []
    for kind in (RANGE, KNN):
        index = kind.index("inverted")(Space.PLANAR, Memory())
        [batch] = plan(log, kind, Space.PLANAR)
        batches += tabulate([Reported(kind, index, step(index, batch))], KINDS)
    assert batches[0].columns[NOTIFICATIONS.names.index("object")].count == 2
    rows = written(batches)
    assert [r["object"] for r in rows] == 10 * ['o"'] + 10 * ["p"]
    assert [r["meta"] for r in rows] == 2 * [f'{{"n":{n}}}' for n in range(10)]
