"""The stream of objects, insertions and deletions."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from nearcast.workload import PLACE, START_MS, mix
from nearcast.workload.mix import updates
from nearcast.workload.ragged import Longs


def run(objects: int, mu: int, rng: np.random.Generator) -> pa.Table:
    return pa.Table.from_batches(mix(PLACE, objects, mu, rng))


def test_shape_of_the_stream(rng: np.random.Generator) -> None:
    events = run(1_003, 200, rng)
    ops = events["op"].to_pylist()
    assert Counter(ops)["publish"] == 1_003
    assert ops[:200] == ["subscribe"] * 200
    assert set(events["time"].to_pylist()[:200]) == {START_MS}
    stream = ops[200:]
    assert len(stream) == 1_003 + 200
    for i, op in enumerate(stream):
        assert (op != "publish") == (i % 6 == 5)
    assert events["time"].to_pylist()[200:] == list(range(START_MS + 1, START_MS + 1 + len(stream)))
    published = [i for i, op in zip(events["id"].to_pylist(), ops, strict=True) if op == "publish"]
    assert published == [f"o{i}" for i in range(1_003)]


def test_chunks_join_without_a_seam(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(mix.__globals__, "_CHUNK_UPDATES", 7)
    monkeypatch.setitem(mix.__globals__, "_CHUNK_SUBSCRIPTIONS", 9)
    test_shape_of_the_stream(rng)


def test_what_is_deleted_stands_and_the_number_is_stable(rng: np.random.Generator) -> None:
    events = run(20_000, 500, rng)
    standing: set[str] = set()
    sizes = []
    for op, event_id in zip(events["op"].to_pylist(), events["id"].to_pylist(), strict=True):
        if op == "subscribe":
            assert event_id not in standing
            standing.add(event_id)
        elif op == "unsubscribe":
            standing.remove(event_id)
        else:
            sizes.append(len(standing))
    assert min(sizes) > 400
    assert max(sizes) < 600


def test_lives_are_normal(rng: np.random.Generator) -> None:
    mu = 1_000
    deletes, numbers = updates(60_000, mu, rng)
    assert deletes.mean() == pytest.approx(0.5, abs=0.02)
    arrival = np.cumsum(~deletes)  # how many have arrived, with each update
    born = np.full(numbers.max() + 1, -1)
    born[numbers[~deletes]] = arrival[~deletes]
    late = deletes & (born[numbers] >= 0)
    lives: Longs = (arrival - born[numbers])[late]
    # Those born near the end are seen only if they die young: leave their generation out.
    lives = lives[born[numbers][late] < arrival[-1] - 2 * mu]
    assert lives.mean() == pytest.approx(mu, rel=0.02)
    assert lives.std() == pytest.approx(0.2 * mu, rel=0.05)


def test_without_subscriptions_there_are_objects_only(rng: np.random.Generator) -> None:
    assert set(run(100, 0, rng)["op"].to_pylist()) == {"publish"}


def test_without_objects_there_are_subscriptions_only(rng: np.random.Generator) -> None:
    assert run(0, 10, rng)["op"].to_pylist() == ["subscribe"] * 10
