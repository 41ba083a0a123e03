"""DSkype's distributions as functions of arrays: who is where, and which message goes where.

With `hash` and `location` each subscription rests once and each message goes everywhere. With the
others a message goes to the shards of its words alone, and a subscription has copies; each sees a
part of the messages, and the results of the parts are merged (`merging`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np

from nearcast.routing.hash import home_of
from nearcast.routing.skype.kd_tree import KdTree, Longs, Reals, shard_of
from nearcast.routing.skype.loose_prefix import Wanted
from nearcast.routing.skype.spatial_partition import points, spatial_partition
from nearcast.routing.skype.words import Hashes, Ragged

__all__ = ["ByHash", "ByLocation", "Deal", "Messages", "Pairs", "everywhere"]

Pairs = tuple[Longs, Longs]
"""(rows, shards), by row, each pair once."""


class Messages(NamedTuple):
    """Messages as they are dealt; each word of a row once."""

    x: Reals
    y: Reals
    offsets: Longs
    words: Hashes

    @property
    def ragged(self) -> Ragged:
        """Their words alone."""
        return Ragged(self.offsets, self.words)


def everywhere(rows: int, shards: int) -> Pairs:
    """All rows to all shards."""
    return np.repeat(np.arange(rows), shards), np.tile(np.arange(shards), rows)


class Deal(ABC):
    """A distribution of one kind of subscriptions to shards, made from what is there."""

    name: ClassVar[str]
    parts: ClassVar[bool] = False  # a copy may see a part of the messages that concern it
    grows: ClassVar[bool] = False  # a copy may be needed elsewhere when the k-th score falls

    def __init__(self, shards: int) -> None:
        self.shards = shards

    @abstractmethod
    def place(self, of: Wanted, kscore: Reals) -> Pairs:
        """Where subscriptions go, whose k-th scores are these (minus infinity: fewer than k)."""

    def route(self, messages: Messages) -> Pairs:
        """Where messages go."""
        return everywhere(len(messages.x), self.shards)

    def owners(self, of: Wanted) -> Longs:
        """For each word of a subscription: where a copy sees the messages that hold it."""
        raise NotImplementedError(f"{self.name}: all messages come to the one copy")


class ByHash(Deal):
    """Section 7.3.1."""

    name = "hash"

    def place(self, of: Wanted, kscore: Reals) -> Pairs:
        """By the hash of the id."""
        del kscore
        return np.arange(len(of.x)), home_of(of.id_hash, self.shards)


class ByLocation(Deal):
    """Section 7.3.2."""

    name = "location"

    def __init__(self, shards: int, of: Wanted, sample: Messages) -> None:
        super().__init__(shards)
        self.tree: KdTree = spatial_partition(points(of.x, of.y, sample.x, sample.y), shards)

    def place(self, of: Wanted, kscore: Reals) -> Pairs:
        """By the leaf of the place."""
        del kscore
        return np.arange(len(of.x)), shard_of(self.tree, of.x, of.y)
