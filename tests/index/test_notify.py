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

from nearcast.index import INDEXES
from nearcast.index.arena import Memory
from nearcast.index.base import ENTER, LEAVE, MATCH, Changes
from nearcast.index.notify import NOTIFICATIONS, Rows, net, render, tabulate, write_rows
from nearcast.model.space import Space
from nearcast.testing.cases import publish, query_for, subscribe
from nearcast.testing.drive import notifications, plan, step
from nearcast.testing.strategies import event_logs, spaces

quick = settings(max_examples=30)

Json = dict[str, Any]
Pair = tuple[int, int]  # slot, object

# -- net -----------------------------------------------------------------------------------------

pairs = st.tuples(st.integers(0, 2), st.integers(0, 3))


def changes_of(told: list[tuple[int, int, int]]) -> Changes:
    """Changes from (slot, object, event); `order` and `time` say which of them it was."""
    n = len(told)
    names = np.array([7 * name for _, name, _ in told], np.int64)
    return Changes(
        np.arange(n),
        np.array([slot for slot, _, _ in told], np.int64),
        np.array([event for _, _, event in told], np.uint8),
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
    now, told = set(before), []
    last: dict[Pair, int] = {}
    for n, pair in enumerate(flips):
        told.append((*pair, LEAVE if pair in now else ENTER))
        now ^= {pair}
        last[pair] = n
    found = net(changes_of(told))
    right = sorted(
        [(last[p], *p, LEAVE) for p in before - now] + [(last[p], *p, ENTER) for p in now - before]
    )
    rows = zip(found.order, found.slot, found.name_starts // 7, found.event, strict=True)
    assert [tuple(map(int, row)) for row in rows] == right
    assert found.time.tolist() == [10 * n for n, *_ in right]
    assert found.distance.tolist() == [n / 2 for n, *_ in right]


@quick
@given(st.lists(pairs, max_size=8))
def test_matches_are_all_told(told: list[Pair]) -> None:
    matches = [(*pair, MATCH) for pair in told]
    assert net(changes_of(matches)).order.tolist() == list(range(len(told)))


def test_matches_beside_results() -> None:
    told = [(0, 1, MATCH), (1, 1, ENTER), (0, 1, MATCH), (1, 1, LEAVE)]
    assert net(changes_of(told)).order.tolist() == [0, 2]


# -- lines and columns ---------------------------------------------------------------------------

CASES = [
    pytest.param(index.name, kind, id=f"{index.name}-{kind}")
    for index in INDEXES.values()
    for kind in index.kinds
]


def read(row: Json) -> Json:
    """A notification as both forms can say it: JSON has no infinity."""
    row = {k: v for k, v in row.items() if v is not None}
    if isinstance(row.get("meta"), str):
        row["meta"] = json.loads(row["meta"])
    if row["event"] == "enter" and row.get("distance", math.inf) == math.inf:
        row["distance"] = math.inf
    return row


def written(batches: Iterable[Rows]) -> list[dict[str, Any]]:
    """Rows of a Parquet file of them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.parquet")
        write_rows(batches, path)
        table = pq.read_table(path)
    assert table.schema == NOTIFICATIONS
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


@pytest.mark.parametrize(("name", "kind"), CASES)
@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(space=spaces, data=st.data())
def test_columns_say_what_lines_say(
    name: str, kind: str, space: Space, data: st.DataObject
) -> None:
    log = data.draw(event_logs(space, max_events=25))
    index = INDEXES[name](kind, space, Memory())
    for batch in plan(log, space, cuts=[len(log) // 2]):
        changes = step(index, batch)
        lines = render(index, changes).tobytes().decode().splitlines()
        from_lines = [read(json.loads(line)) for line in lines]
        assert from_lines == [read(row) for row in written(tabulate([(index, changes)]))]
        assert from_lines == [read(n) for n in notifications(index, changes)]
        index.close()


def test_a_line_by_hand() -> None:
    log = [
        subscribe('s"1', 0, query_for("knn"), owner="me", meta={"n": [1, None]}),
        publish("o\n1", -0, 3, 4),
    ]
    index = INDEXES["inverted"]("knn", Space.PLANAR, Memory())
    [batch] = plan(log, Space.PLANAR)
    changes = step(index, batch)
    assert render(index, changes).tobytes() == (
        b'{"id":"s\\"1","event":"enter","object":"o\\n1","time":0,"distance":5.0,'
        b'"owner":"me","meta":{"n":[1,null]}}\n'
    )
    assert written(tabulate([(index, changes)])) == [
        {
            "id": 's"1',
            "event": "enter",
            "object": "o\n1",
            "time": 0,
            "distance": 5.0,
            "owner": "me",
            "meta": '{"n":[1,null]}',
        }
    ]


@pytest.mark.parametrize("kind", ["range", "knn"])
def test_nothing_to_tell(kind: str) -> None:
    index = INDEXES["inverted"](kind, Space.PLANAR, Memory())
    [batch] = plan([publish("o", 0)], Space.PLANAR)
    changes = net(step(index, batch))
    assert render(index, changes).tobytes() == b""
    assert written(tabulate([(index, changes)])) == []


def test_many_matches_of_one_object() -> None:
    """Its id is written once, however often it is told; files may have rows of both kinds."""
    log = [subscribe(f"s{n}", 0, query_for("range"), meta={"n": n}) for n in range(10)]
    log += [publish('o"', 1), publish("p", 1)]
    batches: list[Rows] = []
    for kind in ("range", "knn"):
        index = INDEXES["inverted"](kind, Space.PLANAR, Memory())
        [batch] = plan(log, Space.PLANAR)
        batches += tabulate([(index, step(index, batch))])
    assert batches[0].columns[NOTIFICATIONS.names.index("object")].count == 2
    rows = written(batches)
    assert [r["object"] for r in rows] == 10 * ['o"'] + 10 * ["p"]
    assert [r["meta"] for r in rows] == 2 * [f'{{"n":{n}}}' for n in range(10)]
