"""Logs and a twin for tests of indexes of the shape `tops`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random
from typing import Any

from nearcast.index.arena import Memory
from nearcast.index.tops.base import TopIndex
from nearcast.index.tops.reach.index import Reach
from nearcast.index.tops.state import Weighed
from nearcast.kinds.topk import Topk
from nearcast.model.frame import Frame, Window
from nearcast.model.space import Space
from nearcast.model.standing import Seen
from nearcast.testing.cases import publish, subscribe, unsubscribe
from nearcast.testing.drive import Batch, notifications, step
from nearcast.wire.idf import Fitted

Json = dict[str, Any]
FITTED = Fitted(40, {"a": 30, "b": 3, "c": 1, "d": 12})


def topk(k: int, *keywords: str, at: Iterable[float] = (0, 0), **fields: Any) -> Json:
    usual = {"alpha": 0.5, "maxdist": 10}
    return {"kind": "topk", "at": list(at), "k": k, "keywords": list(keywords), **usual, **fields}


def bound(window: Window, fitted: bool = False) -> Topk:
    return Topk(Frame(window, 10.0, FITTED)) if fitted else Topk(Frame(window, 10.0))


def mixed(seed: int, events: int, space: Space = Space.PLANAR) -> list[Json]:
    """Few subscriptions early, then objects, with ties and without, some of them late."""
    rng, log, clock = Random(seed), [], 0
    side = 9.0 if space is Space.PLANAR else 60.0
    for n in range(events):
        clock += rng.choice((0, 0, 1, 2))
        if n < 8 or rng.random() < 0.04:
            words = rng.sample("abcde", rng.randint(1, 4))
            query = topk(
                rng.choice((1, 2, 4, 50)),
                *words,
                at=[rng.uniform(-side, side), rng.randint(-1, 1)],
                alpha=rng.choice((0, 1, 0.5, rng.random())),
                maxdist=rng.choice((3, 20, 1e7)),
                **({"where": "NOT e"} if rng.random() < 0.2 else {}),
            )
            log.append(subscribe(f"s{rng.randint(0, 20)}", clock, query))
        elif rng.random() < 0.03:
            log.append(unsubscribe(f"s{rng.randint(0, 20)}", clock))
        else:
            at = (rng.uniform(-side, side), rng.randint(-1, 1))
            words = rng.choices("aaaabbcde", k=rng.randint(0, 4))
            log.append(publish(f"o{n % 70}", clock, *at, *words))
    return log


class Watched:
    """An index and, in plain Python, the window that it should know."""

    def __init__(self, kind: Topk, space: Space, index: type[TopIndex] = Reach) -> None:
        self.kind, self.space = kind, space
        self.index = index(space, Memory(), kind.frame)
        self.objects: list[Seen] = []
        self.now = 0

    def step(self, batch: Batch) -> None:
        changes = step(self.index, batch)
        notifications(self.index, changes, self.kind)
        self.index.close()
        o, carried = batch.objects, batch.carried
        for i, row in enumerate(o.order.tolist()):
            words = carried.words(row, o.word_offsets, o.words)
            assert carried.ranks is not None
            rank, at = int(carried.ranks[row]), (float(o.x[row]), float(o.y[row]))
            self.objects.append(Seen(i, int(o.time[row]), *at, words, 0, rank))
        self.now = max(batch.now, int(batch.clock.max(initial=batch.now)))

    def window(self) -> list[Seen]:
        published, window = len(self.objects), self.kind.frame.window
        return [o for o in self.objects if window.holds(o.time, o.rank, self.now, published)]

    def slots(self) -> Iterator[tuple[int, Any]]:
        """Living slots with their definitions."""
        slots = self.index.living(self.now)
        rows = self.index.rows(slots)[0].to_pylist()
        for slot, row in zip(slots.tolist(), rows, strict=True):
            yield slot, self.kind.standing(row, self.space)


def leaves(window: Window, o: Seen) -> int:
    return o.rank + window.count if window.count else o.time + window.span_ms


def weighed(index: TopIndex, batch: Batch) -> Weighed:
    index.carry(batch.carried)
    return index._weighed(batch.objects, batch.clock)


def crowd(subs: int, before: int, seed: int = 1) -> tuple[Topk, list[Json]]:
    rng = Random(seed)
    kind = bound(Window(count=before), fitted=True)
    log = []
    for n in range(before):
        log.append(publish(f"o{n}", 0, rng.uniform(-9, 9), 0, *rng.sample("abcd", 2)))
    for n in range(subs):
        words = rng.sample("abcd", rng.randint(1, 3))
        at = (rng.uniform(-9, 9), rng.uniform(-9, 9))
        log.append(subscribe(f"s{n}", 1, topk(2, *words, at=at, alpha=rng.random())))
    log += [publish(f"p{n}", 2 + n, rng.uniform(-9, 9), 0, "a", "b") for n in range(80)]
    return kind, log
