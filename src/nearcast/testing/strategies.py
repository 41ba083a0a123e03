"""Hypothesis strategies for event logs, batch cuts and lines that are no events.

Hypothesis is needed for this module only, and is not among the packages that nearcast needs to run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from nearcast.kinds import KINDS, Kind
from nearcast.model.space import Space
from nearcast.testing.logs import LogMaker

__all__ = ["batch_cuts", "broken_lines", "event_logs", "spaces"]

Json = dict[str, Any]
# Draws what it needs from Hypothesis, so that what it makes shrinks.
_randoms = st.randoms(use_true_random=False)

spaces = st.sampled_from(list(Space))


@st.composite
def event_logs(
    draw: st.DrawFn,
    space: Space,
    max_events: int = 40,
    late: float = 0.2,
    late_controls: bool = True,
    crowd: bool = False,
    kinds: Mapping[str, Kind] = KINDS,
) -> list[Json]:
    """Valid events that favour edges (see `nearcast.testing.logs`), times out of order."""
    maker = LogMaker(draw(_randoms), space, late, late_controls, crowd, kinds)
    # Left to itself, a list has five elements or so: too few for results that change.
    least = draw(st.integers(0, max_events))
    return draw(st.lists(_randoms.map(maker.event), min_size=least, max_size=max_events))


@st.composite
def batch_cuts(draw: st.DrawFn, events: int) -> list[int]:
    """Where to cut that many events into batches: nowhere, everywhere, or anywhere."""
    if draw(st.booleans()):
        return list(range(events)) if draw(st.booleans()) else []
    return sorted(draw(st.sets(st.integers(1, max(events, 1)), max_size=8)))


_PUBLISH = {"op": "publish", "id": "o", "time": 1, "at": [0, 0]}
_QUERY = next(iter(KINDS.values())).examples.everything
_SUBSCRIBE = {"op": "subscribe", "id": "s", "time": 1, "query": _QUERY}
_UNSUBSCRIBE = {"op": "unsubscribe", "id": "s", "time": 1}
_BAD_FIELDS: list[tuple[Json, str, list[Any]]] = [
    (_PUBLISH, "op", [None, 1, "Publish", "delete", "ask"]),
    (_PUBLISH, "id", [None, 7, "", "x" * 257, ["o"]]),
    (_PUBLISH, "time", [None, 1.5, True, "yesterday", "2023-02-29T00:00:00Z", 2**61, -(2**70)]),
    (_PUBLISH, "at", [None, [], [1], [1, 2, 3], ["1", 2], [True, 0], {"x": 1}, [10**400, 0]]),
    (_PUBLISH, "text", [7, ["a"]]),
    (_PUBLISH, "keywords", ["a", [1], [None], {"a": 1}]),
    (_SUBSCRIBE, "expires", [1.5, "never", True]),
    (_SUBSCRIBE, "owner", [7, {}]),
    (_SUBSCRIBE, "meta", ["m", [1]]),
    (_SUBSCRIBE, "last", [0, 1.5, "1h", 60_000]),
    (_SUBSCRIBE, "query", [None, [], {}, {"kind": "circle"}]),
    (_UNSUBSCRIBE, "id", [None, ""]),
    (_UNSUBSCRIBE, "time", [None, "12:00", 2**63]),
]
_BAD_QUERIES = [bad for kind in KINDS.values() for bad in kind.examples.bad]
_BAD_LINES = (
    "{", "nothing", "[]", "7", "null", '{"op":"publish"}', '{"a":NaN}', '"\\ud800"', "[" * 5000,
    '{"op":"publish","id":"\\ud800","time":1,"at":[0,0]}',
    '{"op":"unsubscribe","id":"s","time":01}',
)  # fmt: skip


@st.composite
def broken_lines(draw: st.DrawFn) -> str:
    """A line that is no valid event in either space."""
    if draw(st.booleans()):
        event, name, values = draw(st.sampled_from(_BAD_FIELDS))
        return json.dumps({**event, name: draw(st.sampled_from(values))})
    if draw(st.booleans()):
        query, name, values = draw(st.sampled_from(_BAD_QUERIES))
        return json.dumps({**_SUBSCRIBE, "query": {**query, name: draw(st.sampled_from(values))}})
    return draw(st.sampled_from(_BAD_LINES))
