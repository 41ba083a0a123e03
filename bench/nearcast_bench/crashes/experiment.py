"""`nearcast bench crashes`: rounds until so many crashes have happened, then what they were."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.common.in_memory import folder_in_memory
from nearcast_bench.crashes.round import Outcome, run_round


def run_campaign(points: int, seed: int, say: Say) -> Iterator[Figure]:
    """A line for each round that lost or repeated something, and one over all."""
    crashed: Counter[str] = Counter()
    ways: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    batches = notifications = lost = twice = rounds = 0
    while crashed.total() < points:
        with folder_in_memory() as folder:
            one = run_round(seed + rounds, folder, points - crashed.total())
        if one.lost or one.twice:
            yield _round(seed + rounds, one)
        rounds += 1
        crashed += one.crashed
        ways[one.settings["manifests"]] += one.crashed.total()
        kinds.update(dict.fromkeys(one.settings["kinds"], one.crashed.total()))
        batches += one.batches
        notifications += one.notifications
        lost += one.lost
        twice += one.twice
        say(f"{crashed.total():,} crashes, {batches:,} batches, {lost} lost, {twice} twice")
    yield {
        "figure": "crashes",
        "points": crashed.total(),
        "seed": seed,
        "rounds": rounds,
        "batches": batches,
        "notifications": notifications,
        "by_point": dict(sorted(crashed.items())),
        "by_manifests": dict(sorted(ways.items())),
        "by_kind": dict(sorted(kinds.items())),
        "lost": lost,
        "twice": twice,
    }
    yield {
        "claim": "nothing lost, nothing twice",
        "value": lost + twice,
        "target": 0,
        "held": lost + twice == 0,
    }


def _round(seed: int, one: Outcome) -> Figure:
    """What is needed to repeat a round that went wrong."""
    return {
        "figure": "crashes-round",
        "seed": seed,
        "lost": one.lost,
        "twice": one.twice,
        "crashes": dict(one.crashed),
        **one.settings,
    }
