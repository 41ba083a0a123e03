"""Runs that make each kind of decision on the balance, by name: for tests that need that very kind.

Their logs are towns whose hot spot moves, with subscriptions that end in every way there is.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tests.engine.contract import Miniature, run_log

from nearcast.engine.moves.balancer import HOLDS_AFTER
from nearcast.engine.options.settings import Settings
from nearcast.routing.balance import Balance
from nearcast.testing.oracle import Order

Json = dict[str, Any]
# Decide whenever it can be, but little at once: one round shows what sixty would.
EAGER: dict[str, Any] = {"threshold": 1.0, "ratio": 1.0, "least": 0, "wait": 0, "rounds": 1}
BATCH_EVENTS = 12


Places = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Way:
    """How to make a kind of decision happen."""

    kind: str
    router: str
    balance: Balance
    shards: int = 3
    events: int = 84
    axes: tuple[int, int] = (1, 1)  # along which things lie
    spread: float = 3.0  # of the hot spot
    reach: int = 4  # of a subscription to all sides
    wide: bool = False  # some subscriptions cover all of it
    places: tuple[Places, Places] | None = None  # instead: where things are at first, and then
    seeds: tuple[int, int] = (0, 0)  # the first to be tried, by time and by arrival

    def settings(
        self, index: str, order: str, folder: Path, router: str = "", balance: Balance | None = None
    ) -> Settings:
        """Of a run in a folder; also with another router, or another output."""
        return Settings(
            shards=self.shards,
            strategies={"range": f"{router or self.router}+{index}"},
            order=order,
            warmup=5,
            balance=balance or self.balance,
            arena=str(folder / "arena"),
        )

    def log(self, seed: int, order: str) -> list[Json]:
        """One of its logs."""
        rng = Random(seed)
        return [self._event(rng, n, order) for n in range(self.events)]

    def _event(self, rng: Random, n: int, order: str) -> Json:
        """Around a spot that jumps, after a spread-out beginning; on whole numbers, so that objects
        lie on the edges of boxes."""
        if self.places:
            now = self.places[n >= 24]
            x, y = now[(n + n // 4) % len(now)]  # subscriptions, every fourth event, at all of them
            return self._at(rng, n, order, x + rng.randint(-1, 1), y + rng.randint(-1, 1))
        early, spot = n < 10 or n % 10 == 0, 5 + 10 * (n // 45 % 3)
        x, y = (
            (rng.randint(0, 30) if early else round(rng.gauss(spot, self.spread))) if lies else 1
            for lies in self.axes
        )
        return self._at(rng, n, order, x, y)

    def _at(self, rng: Random, n: int, order: str, x: int, y: int) -> Json:
        # Live streams have late events; in a replayed log they would only stand elsewhere.
        time = n - rng.choice((0, 0, 0, 4)) if order == "arrival" else n
        if n % 4 == 0:
            size = 40 if self.wide and n % 16 == 0 else self.reach
            return _subscribe(rng, n % 60, time, [x - size, y - size, x + size, y + size])
        if n % 15 == 5:
            return {"op": "unsubscribe", "id": f"s{rng.randrange(0, 60, 4)}", "time": time}
        words = " ".join(rng.sample("abcdef", 2))
        return {"op": "publish", "id": f"o{n}", "time": time, "at": [x, y], "text": words}


def _words(kind: str, seeds: tuple[int, int]) -> Way:
    balance = Balance(mode="local", side=4, slack=1.0, cells=4, **EAGER)
    return Way(kind, "ps2stream", balance, spread=1.0, wide=True, seeds=seeds)


def _cells(selection: str, **way: Any) -> Way:
    balance = Balance(mode="local", side=16, selection=selection, **EAGER)
    return Way("migrate", "ps2stream", balance, **{"seeds": (0, 2), **way})


def _two(kind: str, events: int, **way: Any) -> Way:
    balance = Balance(mode="global", side=16, gain=0.0, few=0.4, every=4, **EAGER)
    return Way(kind, "ps2stream", balance, events=events, **way)


def _tornado(kind: str, mode: str = "local", **way: Any) -> Way:
    return Way(kind, "tornado", Balance(mode=mode, beta=0.0, **EAGER), **way)


def _sstd(kind: str, mode: str, ratio: float = 1.0, **way: Any) -> Way:
    settings = EAGER | {"rounds": 8, "ratio": ratio}
    return Way(kind, "sstd", Balance(mode=mode, **settings), **way)


# One part on the left, two on the right, of which the upper one has nothing to do: it takes over
# the upper half of the left one, which no one else could.
_CORNER = (
    ((3, 12), (27, 5), (27, 25), (3, 12), (27, 5), (27, 25), (3, 12)),
    ((3, 5), (3, 26), (3, 5), (3, 26), (27, 5)),
)
# The plan is made in one place, then all goes on far from it.
_AWAY = (
    ((0, 0), (9, 0), (0, 9), (9, 9), (4, 5)),
    ((60, 30), (66, 33), (63, 38), (60, 30)),
)
_CHAIN = Balance(mode="auto", beta=0.0, **EAGER | {"rounds": 8})
WAYS = {
    "split": _words("split", (0, 3)),
    "merge": _words("merge", (15, 20)),
    "migrate by dp": _cells("dp"),
    "migrate by gr": _cells("gr"),
    "migrate by si": _cells("si", seeds=(2, 10)),
    # Cells at random pay only where no subscription is in many of them.
    "migrate by ra": _cells("ra", reach=0, seeds=(2, 2)),
    "a new strategy beside the old": _two("repartition", 84, wide=True),
    "the end of the old strategy": _two("retire", 168, shards=4, reach=8, seeds=(5, 0)),
    "horizontal shift": _tornado("horizontal shift", shards=2, axes=(0, 1), seeds=(5, 0)),
    "vertical shift": _tornado("vertical shift", shards=2, axes=(1, 0), seeds=(5, 0)),
    "corner shift": _tornado("corner shift", places=_CORNER, seeds=(26, 0)),
    "split/merge": _tornado("split/merge", shards=4, seeds=(3, 4)),
    "new partitions": _tornado("new partitions", mode="global", seeds=(0, 1)),
    "parts of shards": Way("split", "tornado", _CHAIN, shards=4, events=120, seeds=(2, 2)),
    "new bounds": _tornado("new bounds", mode="auto", shards=4, places=_AWAY),
    "PM": _sstd("PM", "local"),
    "FM": _sstd("FM", "global", 2.5),
    "FG": _sstd("FG", "global", seeds=(3, 0)),
}


def _subscribe(rng: Random, n: int, time: int, bbox: list[float]) -> Json:
    where = rng.choice(("a", "a OR c", "d AND e", "NOT f", "", ""))
    query = {"kind": "range", "region": {"bbox": bbox}, "where": where}
    event = {"op": "subscribe", "id": f"s{n}", "time": time, "query": query}
    return event | ({"expires": time + rng.choice((9, 40))} if n % 12 == 4 else {})


TRIES = 10


def index_for(way: Way, order: Order) -> str:
    """The usual index by time, that of the router's paper as events arrive."""
    if order == "time":
        return "pyramid"
    return "gi2" if way.router == "ps2stream" else "fast"


def decided_after(run: Miniature, kind: str) -> list[int]:
    """The batches after which this kind of decision was made."""
    return [r.batch for r in run.decided() if any(d["kind"] == kind for d in r.decisions)]


def made(
    way: Way, index: str, order: Order, folder: Path, trouble: Random | None = None
) -> tuple[Miniature, int]:
    """A run, equal to the oracle, in which the kind of decision came to hold; the seed of its log.

    What is decided depends on what things are reckoned to cost: if the first log does not lead to
    it, another one does.
    """
    first = way.seeds[order == "arrival"]
    for seed in range(first, first + TRIES):
        place = folder / str(seed)
        settings = way.settings(index, order, place)
        run = run_log(place, way.log(seed, order), settings, BATCH_EVENTS, trouble)
        if any(batch + HOLDS_AFTER < run.next for batch in decided_after(run, way.kind)):
            return run, seed
    raise AssertionError(f"no log led to a {way.kind}")
