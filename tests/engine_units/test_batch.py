"""The order of a batch against a plain sort of its events."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nearcast.engine.options.settings import Settings
from nearcast.engine.route.envelope import Envelope, unpack
from nearcast.engine.route.step import RouteStep
from nearcast.engine.shard.events import Ordered, in_order
from nearcast.kernels.slots import REPLACED, SUBSCRIBE, UNSUBSCRIBE
from nearcast.kinds import KINDS, Kind
from nearcast.model.space import Space
from nearcast.wire.decode import Decoded
from nearcast.wire.jsonl import decode_jsonl
from nearcast.wire.tables import NEVER

Event = tuple[str, int]  # op, or the kind of a subscribe; time
GRACE = 4
QUERIES: dict[str, Any] = {
    "range": {"kind": "range", "region": {"bbox": [0, 0, 1, 1]}},
    "knn": {"kind": "knn", "at": [0, 0], "k": 1},
}

ops = st.sampled_from(["publish", "publish", "unsubscribe", *QUERIES, "?"])
events = st.tuples(ops, st.integers(-4, 9))
splits_of_events = st.lists(st.lists(events, max_size=6), max_size=4)


def line(split: int, n: int, op: str, time: int) -> str:
    if op == "?":
        return "refused"
    if op in QUERIES:
        event = {"op": "subscribe", "id": f"{split}.{n}", "time": time, "query": QUERIES[op]}
        return json.dumps(event)
    return json.dumps({"op": op, "id": f"{split}.{n}", "time": time, "at": [0, 0]})


def decoded(split: int, log: list[Event]) -> Decoded:
    lines = [line(split, n, *e) for n, e in enumerate(log)]
    return decode_jsonl("\n".join(lines).encode(), Space.PLANAR, KINDS, split=split)


def envelope(split: int, log: list[Event], final: bool) -> Envelope:
    """What the only shard of a run gets."""
    step = RouteStep(Settings(shards=1), "no checkpoint", 0)
    [(_, data)] = step.envelopes(decoded(split, log), split, final)
    return unpack(data)


def plain(splits: list[list[Event]]) -> list[tuple[str, str, int]]:
    """(op, id, time) of all valid events, as they arrived."""
    return [
        (op, f"{s}.{n}", time)
        for s, log in enumerate(splits)
        for n, (op, time) in enumerate(log)
        if op != "?"
    ]


def found(
    splits: list[list[Event]], kind: Kind, order: str, now: int, final: bool = True
) -> Ordered:
    envelopes = [envelope(s, log, final) for s, log in enumerate(splits)]
    return in_order(envelopes[::-1], Settings(order=order, lateness_ms=GRACE), now).of(kind)


def ops_for(kind: Kind, right: list[tuple[str, str, int]]) -> list[int]:
    """What subscribes and unsubscribes are for an index of one kind."""
    known = {"unsubscribe": UNSUBSCRIBE, kind.name: SUBSCRIBE}
    return [int(known.get(op, REPLACED)) for op, _, _ in right if op != "publish"]


def interleaved(ordered: Ordered) -> list[str]:
    """Ids in the order in which they are handled."""
    o = ordered.objects
    ids = [bytes(o.id_bytes[o.id_offsets[r] : o.id_offsets[r + 1]]).decode() for r in o.order]
    controls = [i.decode() for i in ordered.controls["id"].to_pylist()]
    for at, control in reversed(list(zip(ordered.at.tolist(), controls, strict=True))):
        ids.insert(at, control)
    return ids


nows = st.sampled_from([NEVER, 0, 5])
quick = settings(max_examples=35, suppress_health_check=[HealthCheck.too_slow])


@quick
@given(splits_of_events, st.sampled_from(list(KINDS.values())), nows, st.booleans())
def test_by_time(splits: list[list[Event]], kind: Kind, now: int, final: bool) -> None:
    ordered = found(splits, kind, "time", now, final)
    right = sorted(plain(splits), key=lambda e: (e[2], e[0] == "publish"))
    assert interleaved(ordered) == [id_ for _, id_, _ in right]
    assert ordered.controls["op"].to_pylist() == ops_for(kind, right)
    times = [t for op, _, t in right if op == "publish"]
    assert ordered.clock.tolist() == [max(t, now) for t in times]
    assert ordered.objects.time[ordered.objects.order].tolist() == times
    assert ordered.objects.until.tolist() == ordered.objects.time.tolist()
    latest = max([now, *(t for _, _, t in right)])
    # What the latest instant itself changes waits, unless nothing more can come.
    assert ordered.now == (latest if final and splits else max(now, latest - 1))


@quick
@given(splits_of_events, st.sampled_from(list(KINDS.values())), nows)
def test_as_they_arrive(splits: list[list[Event]], kind: Kind, now: int) -> None:
    ordered = found(splits, kind, "arrival", now, final=False)
    right = plain(splits)
    assert interleaved(ordered) == [id_ for _, id_, _ in right]
    assert ordered.controls["op"].to_pylist() == ops_for(kind, right)
    clock, clocks, befores, untils = now, [], [], []
    for op, _, time in right:
        if op == "publish":
            clocks.append(max(clock, time))
            untils.append(max(time, clocks[-1] - GRACE))
        else:
            befores.append(clock)
        clock = max(clock, time)
    assert ordered.clock.tolist() == clocks
    assert ordered.objects.until.tolist() == untils
    assert ordered.controls["clock"].to_pylist() == befores
    assert ordered.now == clock - kind.after_objects  # more objects of this time may come


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda k: k.name)
@pytest.mark.parametrize("order", ["time", "arrival"])
def test_no_events(order: str, kind: Kind) -> None:
    nothing: list[list[list[Event]]] = [[], [[]], [[("?", 0)], []]]
    for splits in nothing:
        ordered = found(splits, kind, order, 7)
        assert len(ordered.at) == len(ordered.clock) == ordered.controls.num_rows == 0
        assert ordered.now == 7 - (kind.after_objects and order == "arrival")


def test_events_of_other_shards_move_the_clock() -> None:
    """An envelope says how far time has come in its split, also where it brings no event of it."""
    a, b = envelope(0, [], True), envelope(1, [("publish", 3)], True)
    a.latest = 100
    ordered = in_order([a, b], Settings(order="arrival"), 0).of(KINDS["range"])
    assert ordered.clock.tolist() == [100]
    assert ordered.now == 100


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda k: k.name)
def test_subscriptions_of_an_instant_come_before_its_objects(kind: Kind) -> None:
    log = [("publish", 1), ("unsubscribe", 1), ("publish", 0), ("unsubscribe", 2), ("publish", 1)]
    for first, second in (("unsubscribe", "unsubscribe"), ("range", "knn"), ("knn", "unsubscribe")):
        log[1], log[3] = (first, 1), (second, 2)
        by_time, live = (found([log], kind, order, NEVER) for order in ("time", "arrival"))
        assert interleaved(by_time) == ["0.2", "0.1", "0.0", "0.4", "0.3"]
        assert interleaved(live) == ["0.0", "0.1", "0.2", "0.3", "0.4"]
