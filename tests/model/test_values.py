"""Events refuse nonsense when they are made (queries: tests/kinds)."""

import dataclasses
import math
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from nearcast.kinds.range.definition import InRegion
from nearcast.model.errors import Invalid, NearcastError
from nearcast.model.events import Ask, Publish, Subscribe, Unsubscribe, order_class
from nearcast.model.expression import parse
from nearcast.model.region import Bbox
from nearcast.model.space import Space

RANGE = InRegion(Space.PLANAR, Bbox(0.0, 0.0, 1.0, 1.0), parse("a OR b"))
LIMIT = 2**61


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (lambda: Publish("", 0, 0.0, 0.0, {}), "id: not a string of 1 to 256 characters"),
        (lambda: Publish("x" * 257, 0, 0.0, 0.0, {}), "id"),
        (lambda: Publish("o", LIMIT, 0.0, 0.0, {}), "time: is not within"),
        (lambda: Publish("o", 0, math.nan, 0.0, {}), "at: [nan, 0.0]"),
        (lambda: Subscribe("s", 0, -LIMIT, RANGE), "expires"),
        (lambda: Unsubscribe("s", -LIMIT), "time"),
        (lambda: Ask("q", 0, 0, RANGE), "last: 0 is less than 1"),
        (lambda: Ask("q", 0, LIMIT, RANGE), "last"),
    ],
)
def test_nonsense_is_refused(make: Callable[[], Any], part: str) -> None:
    with pytest.raises(Invalid) as refused:
        make()
    assert part in str(refused.value)
    assert isinstance(refused.value, NearcastError)


def test_the_edges_of_what_is_allowed() -> None:
    Publish("x" * 256, LIMIT - 1, 0.0, 0.0, {})
    Subscribe("s", 10, 5, RANGE)
    Ask("q", 1 - LIMIT, 1, RANGE)


def test_order_at_equal_times() -> None:
    events = (
        Ask("q", 0, 1, RANGE),
        Publish("o", 0, 0.0, 0.0, {"a": 1}),
        Unsubscribe("s", 0),
        Subscribe("s", 0, None, RANGE, "me", {"n": 1}),
    )
    assert [order_class(event) for event in events] == [2, 1, 0, 0]
    assert [event.op for event in events] == ["ask", "publish", "unsubscribe", "subscribe"]


def test_values_are_frozen_and_can_be_sent() -> None:
    event = Subscribe("s", 0, None, RANGE, "me", {"n": 1})
    assert pickle.loads(pickle.dumps(event)) == event
    with pytest.raises(dataclasses.FrozenInstanceError):
        event.id = "t"  # type: ignore[misc]
