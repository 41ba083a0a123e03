"""Tables made directly are those that decoding the same events gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nearcast.kernels.slots import UNSUBSCRIBE
from nearcast.kinds import KINDS
from nearcast.model.space import Space
from nearcast.wire.columns import decode_columns
from nearcast.workload.corpora import TWEETS_UK
from nearcast.workload.events import publish_events, subscribe_events
from nearcast.workload.subscriptions import knn_subscriptions, range_subscriptions
from nearcast.workload.tables import publish_rows, subscribe_rows, unsubscribe_rows


def plain(table: pa.RecordBatch, but: tuple[str, ...]) -> list[dict[str, Any]]:
    rows = []
    for row in table.to_pylist():
        kept = {k: v for k, v in row.items() if k not in but}
        kept["cover"] = sorted(kept.get("cover", []))  # a set: its order means nothing
        rows.append(kept)
    return rows


def test_subscriptions_are_as_decoded(rng: np.random.Generator) -> None:
    queried = range_subscriptions(TWEETS_UK, 300, rng, "Q2")
    times = np.arange(300)
    made = subscribe_rows(TWEETS_UK, queried, 7, times)
    events = subscribe_events(TWEETS_UK, queried, 7, times)
    decoded = decode_columns(events, Space.GEOGRAPHIC, KINDS)
    assert list(decoded.subscribes) == ["range"]
    assert decoded.ends.num_rows == 0
    read = decoded.subscribes["range"]
    assert made.schema == read.schema
    assert plain(made, ("clock",)) == plain(read, ("clock",))


def test_objects_are_as_decoded(rng: np.random.Generator) -> None:
    objects = TWEETS_UK.objects(300, rng)
    times = np.arange(300)
    made = publish_rows(TWEETS_UK, objects, 0, times)
    events = publish_events(TWEETS_UK, objects, 0, times)
    read = decode_columns(events, Space.GEOGRAPHIC, KINDS).objects
    assert plain(made, ()) == plain(read, ())


def test_an_end_keeps_what_was_asked_for(rng: np.random.Generator) -> None:
    begun = subscribe_rows(TWEETS_UK, range_subscriptions(TWEETS_UK, 20, rng), 0, np.arange(20))
    ended = unsubscribe_rows(begun, np.full(20, 99))
    assert set(ended["op"].to_pylist()) == {UNSUBSCRIBE}
    assert set(ended["time"].to_pylist()) == {99}
    assert plain(ended, ("op", "time")) == plain(begun, ("op", "time"))


def test_nearest_neighbours_have_no_region(rng: np.random.Generator) -> None:
    queried = knn_subscriptions(TWEETS_UK, 5, 3, rng)
    with pytest.raises(ValueError, match="no region"):
        subscribe_rows(TWEETS_UK, queried, 0, np.arange(5))
