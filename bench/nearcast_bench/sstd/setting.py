"""How large a run of `bench sstd` is, and what it measures."""

from __future__ import annotations

from dataclasses import dataclass

from nearcast.model.errors import NearcastError
from nearcast_bench.sstd.source import TW14

FIGURES = ("7", "8", "9", "10", "11", "12", "13", "14", "15", "tuning", "stores", "workers")


@dataclass(frozen=True, slots=True)
class Setting:
    """One run."""

    objects: int = 300_000  # stored; as many in each step of a stream as `step`
    queries: int = 20_000  # that stand
    step: int = 20_000
    asks: int = 60
    passes: int = 2  # of asks; the least time of each counts
    seeds: int = 3
    workers: int = 8
    scaling: tuple[int, ...] = (2, 4, 8, 16)
    index: str = "fast"
    store: str = "curve"
    data: str = TW14
    seed: int = 7
    figures: tuple[str, ...] = FIGURES

    def has(self, figure: str) -> bool:
        """Whether a figure is to be run."""
        return figure in self.figures


SMALL = Setting(3_000, 400, 800, asks=6, passes=1, seeds=1, workers=4, scaling=(2, 4))


def check(setting: Setting) -> None:
    """Raise if there is a figure that nobody has."""
    for name in setting.figures:
        if name not in FIGURES:
            raise NearcastError(f"bench: no figure {name!r}; there are {', '.join(FIGURES)}")
