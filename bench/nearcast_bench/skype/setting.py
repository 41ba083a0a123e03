"""Sizes of the experiments of Skype (section 8.1): from some seconds to the paper's."""

from __future__ import annotations

from dataclasses import dataclass

from nearcast.kinds import KINDS
from nearcast.model.errors import NearcastError
from nearcast.workload import SKYPE_GN, SKYPE_TWEETS, SKYPE_YELP

TWEETS, GN, YELP = SKYPE_TWEETS.name, SKYPE_GN.name, SKYPE_YELP.name
DATA = (TWEETS, GN, YELP)
FIGURES = (
    "table 3", "10", "11", "12", "13", "14", "table 4", "15", "16", "17", "18", "19", "20",
    "walk",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Setting:
    """What is measured. The paper: |S| = |W| = 1,000,000, k = 20, 100,000 messages."""

    subscriptions: int = 2_000
    window: int = 40_000
    messages: int = 20_000
    """That are timed. As many before them are not: a run begins in the middle of its life."""
    batch: int = 200
    """Messages that are handled at once: what leaves the window in one must be little of it."""
    k: int = 20
    data: str = TWEETS
    """For figures on one data set: a name, or a Parquet file."""
    seed: int = 7
    seeds: int = 3
    figures: tuple[str, ...] = ()
    dissemination: str = "reach"
    """The index behind which the policies are compared."""

    def has(self, figure: str) -> bool:
        """Whether a figure was requested."""
        return not self.figures or figure in self.figures


SMALL = Setting(subscriptions=60, window=400, messages=200, batch=25, seeds=1)
FULL = Setting(subscriptions=1_000_000, window=1_000_000, messages=100_000, batch=512, seeds=1)


def check(setting: Setting) -> None:
    """Refuse figures that there are not, and an index that is none of `topk`."""
    for name in setting.figures:
        if name not in FIGURES:
            raise NearcastError(f"bench: no figure {name!r}; there are {', '.join(FIGURES)}")
    fit = [name for name in KINDS["topk"].indexes if name != "scan"]
    if setting.dissemination not in fit:
        raise NearcastError(
            f"bench: no index {setting.dissemination!r} to compare with; there are {', '.join(fit)}"
        )
