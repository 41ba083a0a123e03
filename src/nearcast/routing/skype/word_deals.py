"""DSkype's distributions by keyword and by prefix, and both with place (7.3.3, 7.3.4, 8.2).

A level by words is made by Algorithm 4, one by place by Algorithm 3. The hybrids have both: by
`SpatialFirst` each leaf divides its own subscriptions by words, by `KeywordFirst` each set of words
divides its own by place. `Level.sets` of a leaf, or leaves of a set, are numbered shard by shard.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from nearcast.routing.skype.deals import Deal, Messages, Pairs
from nearcast.routing.skype.kd_tree import KdTree, Longs, Reals, shard_of
from nearcast.routing.skype.keyword_partition import keyword_partition
from nearcast.routing.skype.loose_prefix import Wanted, in_order, prefix_lengths
from nearcast.routing.skype.merging import Flags
from nearcast.routing.skype.spatial_partition import points, spatial_partition
from nearcast.routing.skype.words import Ragged, WordSets, rows_at, set_of, sets_of_rows

__all__ = ["ByKeyword", "ByPrefix", "ByWords", "KeywordFirst", "SpatialFirst"]


class ByWords(Deal):
    """Copies at the owners of words: of those of the loose prefix, if it `grows`, else of all."""

    parts = True

    def __init__(self, shards: int, of: Wanted, sample: Messages) -> None:
        super().__init__(shards)
        self.order: WordSets = keyword_partition(of.ragged, sample.ragged, 1)

    @abstractmethod
    def owners(self, of: Wanted) -> Longs:
        """By word and, in a hybrid, by place."""

    def dealt_by(self, of: Wanted, kscore: Reals) -> tuple[Wanted, Flags]:
        """Subscriptions, the rarest words first, and the words by which they are dealt."""
        of = in_order(of, self.order)
        if not self.grows:
            return of, np.ones(len(of.words), bool)
        rows = rows_at(of.offsets)
        place = np.arange(len(rows)) - of.offsets[:-1][rows]
        return of, place < prefix_lengths(of, kscore)[rows]

    def place(self, of: Wanted, kscore: Reals) -> Pairs:
        """At each owner once."""
        of, chosen = self.dealt_by(of, kscore)
        pairs = np.unique((rows_at(of.offsets) * self.shards + self.owners(of))[chosen])
        return pairs // self.shards, pairs % self.shards

    def made_from(self, of: Wanted, kscore: Reals) -> Ragged:
        """The words whose sets Algorithm 4 makes: N(W) counts by them."""
        of, chosen = self.dealt_by(of, kscore)
        kept = np.append(0, np.cumsum(chosen))
        return Ragged(kept[of.offsets], of.words[chosen])


class ByKeyword(ByWords):
    """Section 7.3.3: one set of words per shard."""

    name = "keyword"

    def __init__(self, shards: int, of: Wanted, kscore: Reals, sample: Messages) -> None:
        super().__init__(shards, of, sample)
        self.sets = keyword_partition(self.made_from(of, kscore), sample.ragged, shards)

    def owners(self, of: Wanted) -> Longs:
        """The set of each word."""
        return set_of(self.sets, of.words, self.shards)

    def route(self, messages: Messages) -> Pairs:
        """To the owners of its words."""
        return sets_of_rows(self.sets, messages.ragged, self.shards)


class ByPrefix(ByKeyword):
    """Section 7.3.4: the same, at the owners of the words of the loose prefix alone."""

    name = "prefix"
    grows = True


class SpatialFirst(ByWords):
    """Leaves of a kd-tree, each divided by prefixes; shard = leaf · sets + set."""

    name = "spatial-first"
    grows = True

    def __init__(self, leaves: int, sets: int, of: Wanted, kscore: Reals, sample: Messages) -> None:
        super().__init__(leaves * sets, of, sample)
        self.leaves, self.per_leaf = leaves, sets
        self.tree: KdTree = spatial_partition(points(of.x, of.y, sample.x, sample.y), leaves)
        home = shard_of(self.tree, of.x, of.y)
        self.sets: list[WordSets] = []
        for leaf in range(leaves):
            mine = np.flatnonzero(home == leaf)
            words = self.made_from(of.take(mine), kscore[mine])
            self.sets.append(keyword_partition(words, sample.ragged, sets))

    def owners(self, of: Wanted) -> Longs:
        """The set of each word in the leaf of the place."""
        leaf = shard_of(self.tree, of.x, of.y)[rows_at(of.offsets)]
        out = leaf * self.per_leaf
        for n, sets in enumerate(self.sets):
            mine = leaf == n
            out[mine] += set_of(sets, of.words[mine], self.per_leaf)
        return out

    def route(self, messages: Messages) -> Pairs:
        """In every leaf to the owners of its words."""
        found = [sets_of_rows(sets, messages.ragged, self.per_leaf) for sets in self.sets]
        rows = np.concatenate([r for r, _ in found])
        shards = np.concatenate([s + n * self.per_leaf for n, (_, s) in enumerate(found)])
        order = np.lexsort((shards, rows))
        return rows[order], shards[order]


class KeywordFirst(ByWords):
    """Sets of words, each divided by place; shard = set · leaves + leaf."""

    name = "keyword-first"
    grows = True

    def __init__(self, sets: int, leaves: int, of: Wanted, kscore: Reals, sample: Messages) -> None:
        super().__init__(sets * leaves, of, sample)
        self.number, self.per_set = sets, leaves
        self.sets = keyword_partition(self.made_from(of, kscore), sample.ragged, sets)
        ordered, chosen = self.dealt_by(of, kscore)
        of_word = set_of(self.sets, ordered.words, sets)
        rows = rows_at(ordered.offsets)
        seen = sets_of_rows(self.sets, sample.ragged, sets)
        self.trees: list[KdTree] = []
        for n in range(sets):
            mine = np.unique(rows[chosen & (of_word == n)])
            came = seen[0][seen[1] == n]
            of_set = points(of.x[mine], of.y[mine], sample.x[came], sample.y[came])
            self.trees.append(spatial_partition(of_set, leaves))

    def owners(self, of: Wanted) -> Longs:
        """The leaf of the place in the set of each word."""
        rows = rows_at(of.offsets)
        number = set_of(self.sets, of.words, self.number)
        out = number * self.per_set
        for n, tree in enumerate(self.trees):
            mine = np.flatnonzero(number == n)
            out[mine] += shard_of(tree, of.x[rows[mine]], of.y[rows[mine]])
        return out

    def route(self, messages: Messages) -> Pairs:
        """To all leaves of the sets that own its words."""
        rows, number = sets_of_rows(self.sets, messages.ragged, self.number)
        shards = np.repeat(number * self.per_set, self.per_set)
        return np.repeat(rows, self.per_set), shards + np.tile(np.arange(self.per_set), len(rows))
