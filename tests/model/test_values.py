"""Queries, events and notifications refuse nonsense when they are made."""

import dataclasses
import math
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from nearcast.model.errors import Invalid, NearcastError
from nearcast.model.events import Ask, Publish, Subscribe, Unsubscribe, order_class
from nearcast.model.expression import TRUE, parse
from nearcast.model.notification import Notification
from nearcast.model.query import KnnQuery, RangeQuery, TermsQuery, TopkQuery
from nearcast.model.region import Bbox

BOX = Bbox(0.0, 0.0, 1.0, 1.0)
RANGE = RangeQuery(BOX, parse("a OR b"))
LIMIT = 2**61


def test_kinds() -> None:
    kinds = [query.kind for query in (RangeQuery, KnnQuery, TopkQuery, TermsQuery)]
    assert kinds == ["range", "knn", "topk", "terms"]


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (lambda: KnnQuery(0.0, 0.0, 0, TRUE), "query.k: 0 is less than 1"),
        (lambda: KnnQuery(0.0, 0.0, -(10**9999), TRUE), "query.k"),
        (lambda: KnnQuery(0.0, 0.0, 1, TRUE, LIMIT), "query.window"),
        (lambda: KnnQuery(0.0, 0.0, True, TRUE), "query.k: True is not an integer"),
        (lambda: KnnQuery(math.nan, 0.0, 1, TRUE), "query.at"),
        (lambda: KnnQuery(0.0, 0.0, 1, TRUE, 0), "query.window: 0 is less than 1"),
        (lambda: TopkQuery(0.0, 0.0, -1, ("a",), 0.5), "query.k"),
        (lambda: TopkQuery(0.0, math.inf, 1, ("a",), 0.5), "query.at"),
        (lambda: TopkQuery(0.0, 0.0, 1, ("a",), 1.01), "query.alpha: 1.01 is outside [0, 1]"),
        (lambda: TopkQuery(0.0, 0.0, 1, ("a",), math.nan), "query.alpha"),
        (lambda: TermsQuery(BOX, 0, 1, 1), "query.k"),
        (lambda: TermsQuery(BOX, 1, 0, 1), "query.window"),
        (lambda: TermsQuery(BOX, 1, 1, 0), "query.every"),
        (lambda: Publish("", 0, 0.0, 0.0, {}), "id: not a string of 1 to 256 characters"),
        (lambda: Publish("x" * 257, 0, 0.0, 0.0, {}), "id"),
        (lambda: Publish("o", LIMIT, 0.0, 0.0, {}), "time: is not within"),
        (lambda: Publish("o", 0, math.nan, 0.0, {}), "at: [nan, 0.0]"),
        (lambda: Subscribe("s", 0, -LIMIT, RANGE), "expires"),
        (lambda: Unsubscribe("s", -LIMIT), "time"),
        (lambda: Ask("q", 0, 0, RANGE), "last: 0 is less than 1"),
        (lambda: Ask("q", 0, LIMIT, RANGE), "last"),
        (lambda: Notification("s", "matched", "o", 0), "event: 'matched' is not one of"),
    ],
)
def test_nonsense_is_refused(make: Callable[[], Any], part: str) -> None:
    with pytest.raises(Invalid) as refused:
        make()
    assert part in str(refused.value)
    assert isinstance(refused.value, NearcastError)


def test_the_edges_of_what_is_allowed() -> None:
    KnnQuery(0.0, 0.0, 1, TRUE, 1)
    TopkQuery(0.0, 0.0, 1, (), 0.0)
    TopkQuery(0.0, 0.0, 1, ("a",), 1)
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
    told = Notification("s", "enter", "o", 5, 1.5, "me", {"n": 1})
    assert pickle.loads(pickle.dumps(told)) == told
