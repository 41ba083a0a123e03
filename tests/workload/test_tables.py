"""Tables made directly are those that decoding the same events gives."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nearcast.kernels.slots import UNSUBSCRIBE
from nearcast.kinds import KINDS
from nearcast.model.space import Space
from nearcast.model.standing import Needs
from nearcast.wire.columns import decode_columns
from nearcast.wire.idf import Fitted
from nearcast.workload.corpora import SKYPE_GN, TWEETS_UK
from nearcast.workload.events import publish_events, subscribe_events
from nearcast.workload.subscriptions import knn_subscriptions, range_subscriptions
from nearcast.workload.tables import publish_rows, subscribe_rows, top_rows, unsubscribe_rows
from nearcast.workload.top_queries import farthest, fitted, top_subscriptions


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


def test_subscriptions_with_scores_and_counts_are_as_decoded(rng: np.random.Generator) -> None:
    queried = top_subscriptions(SKYPE_GN, 300, rng)
    times, maxdist = np.arange(300), farthest(SKYPE_GN)
    made = top_rows(SKYPE_GN, queried, 7, times, maxdist)
    events = subscribe_events(SKYPE_GN, queried, 7, times, maxdist)
    read = decode_columns(events, Space.GEOGRAPHIC, KINDS).subscribes["topk"]
    assert made.schema == read.schema
    assert plain(made, ("clock",)) == plain(read, ("clock",))
    objects = SKYPE_GN.objects(200, rng)
    posted = publish_rows(SKYPE_GN, objects, 0, times[:200], Needs.COUNTS)
    events = publish_events(SKYPE_GN, objects, 0, times[:200])
    decoded = decode_columns(events, Space.GEOGRAPHIC, KINDS, needs=Needs.COUNTS)
    assert plain(posted, ()) == plain(decoded.objects, ())
    same = fitted(SKYPE_GN, objects)
    words = SKYPE_GN.words(objects.keywords).to_pylist()
    known = Fitted(200, dict(Counter(words)))
    assert [same.of(w) for w in ["nowhere", *words]] == [known.of(w) for w in ["nowhere", *words]]


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
