"""PS2Stream's stream: objects with insertions and deletions of subscriptions among them."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from nearcast.workload.corpus import Corpus
from nearcast.workload.events import (
    START_MS,
    publish_events,
    subscribe_events,
    unsubscribe_events,
)
from nearcast.workload.ragged import Flags, Floats, Longs
from nearcast.workload.subscriptions import Group, range_subscriptions

OBJECTS_AN_UPDATE = 5
_PERIOD = OBJECTS_AN_UPDATE + 1
_CHUNK_UPDATES = 16_000
_CHUNK_SUBSCRIPTIONS = 100_000
_SIGMA = 0.2


def mix(
    corpus: Corpus,
    objects: int,
    mu: int,
    rng: np.random.Generator,
    group: Group = "Q1",
    start_ms: int = START_MS,
    gap_ms: int = 1,
) -> Iterator[pa.RecordBatch]:
    """``mu`` standing subscriptions, then ``objects`` objects, an update after every fifth.

    A subscription lives for N(mu, (0.2 mu)^2) arrivals of other subscriptions (section VI-A), so
    insertions and deletions are equally frequent and about ``mu`` stand at any time. The paper
    waits until that is so; here the first ``mu`` get the remaining lives of a stream that has
    long been running, which makes it so from the first event. They are inserted at ``start_ms``;
    event e of the stream follows at ``start_ms + (e + 1) * gap_ms``.
    """
    lives, standing, arriving, publishing = rng.spawn(4)
    for first in range(0, mu, _CHUNK_SUBSCRIPTIONS):
        n = min(_CHUNK_SUBSCRIPTIONS, mu - first)
        subscriptions = range_subscriptions(corpus, n, standing, group)
        yield subscribe_events(corpus, subscriptions, first, np.full(n, start_ms, dtype=np.int64))
    # Without standing subscriptions there is nothing to keep stable: objects only.
    deletes, numbers = updates(objects // OBJECTS_AN_UPDATE if mu else 0, max(mu, 1), lives)
    inserted = mu
    for first in range(0, -(-objects // OBJECTS_AN_UPDATE), _CHUNK_UPDATES):
        chosen = slice(first, first + _CHUNK_UPDATES)
        chunk_objects = min(_CHUNK_UPDATES * OBJECTS_AN_UPDATE, objects - first * OBJECTS_AN_UPDATE)
        is_delete, number = deletes[chosen], numbers[chosen]
        origin = start_ms + gap_ms * (first * _PERIOD + 1)
        at = np.arange(chunk_objects, dtype=np.int64)
        at += at // OBJECTS_AN_UPDATE
        slot = np.arange(len(number), dtype=np.int64) * _PERIOD + OBJECTS_AN_UPDATE
        new = int(len(number) - is_delete.sum())
        subscriptions = range_subscriptions(corpus, new, arriving, group)
        parts = [
            publish_events(
                corpus,
                corpus.objects(chunk_objects, publishing),
                first * OBJECTS_AN_UPDATE,
                origin + at * gap_ms,
            ),
            subscribe_events(corpus, subscriptions, inserted, origin + slot[~is_delete] * gap_ms),
            unsubscribe_events(number[is_delete], origin + slot[is_delete] * gap_ms),
        ]
        inserted += new
        order = np.argsort(np.concatenate([at, slot[~is_delete], slot[is_delete]]))
        yield pa.concat_batches(parts).take(pa.array(order))


def updates(n: int, mu: int, rng: np.random.Generator) -> tuple[Flags, Longs]:
    """The first ``n`` updates after the start: is it a deletion, and of which subscription.

    Subscriptions 0..mu-1 stand at the start; the j-th arrival (from 0) is number mu + j. Each
    arrival is followed by the deletions that fall due with it.
    """
    standing_due = np.ceil(_remaining_lives(mu, rng)).astype(np.int64)
    arrivals = np.arange(n, dtype=np.int64)
    lives = np.maximum(np.rint(rng.normal(mu, _SIGMA * mu, n)), 1.0).astype(np.int64)
    due = np.concatenate([standing_due - 1, arrivals + lives])
    dying = np.flatnonzero(due < n)
    # Sort key: arrival number, the insertion before the deletions it brings.
    keys = np.concatenate([2 * arrivals, 2 * due[dying] + 1])
    order = np.argsort(keys, kind="stable")[:n]
    return order >= n, np.concatenate([mu + arrivals, dying])[order]


def _remaining_lives(mu: int, rng: np.random.Generator) -> Floats:
    """What is left, in arrivals, of the lives of ``mu`` subscriptions in a steady stream.

    Renewal theory: the density at r is P(life > r) / mu; drawn by inverting its table.
    """
    grid = np.linspace(0.0, 2.0, 4097)
    survival = np.array([0.5 * math.erfc((x - 1.0) / (_SIGMA * math.sqrt(2.0))) for x in grid])
    steps = 0.5 * (survival[1:] + survival[:-1])
    cumulative = np.concatenate([[0.0], np.cumsum(steps)])
    left = np.interp(rng.random(mu), cumulative / cumulative[-1], grid)
    return np.maximum(left * mu, 1e-9)
