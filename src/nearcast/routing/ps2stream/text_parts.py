"""What text-partitioning of a node works on: its terms, and who holds or wants them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.routing.grid.survey import Numbers
from nearcast.routing.ps2stream.nodes import Node, registered, terms_of
from nearcast.routing.ps2stream.workload import Workload


class Lists(NamedTuple):
    """Numbers in rows, one behind the other."""

    offsets: Numbers
    items: Numbers


class TextParts(NamedTuple):
    """T of a node, numbered from 0, with the objects and queries of each term, numbered likewise.

    `UNIVERSAL` is among them only where it counts.
    """

    terms: Numbers  # in the vocabulary, ascending
    counted: NDArray[np.bool_]  # whether objects are sent for the term
    objects: int
    queries: int
    holders: Lists  # of each term, the objects with it
    posted: Lists  # of each term, the queries that are posted under it
    held: Lists  # of each object, its terms
    posting_terms: Lists  # of each query, its terms

    def frequency(self) -> Numbers:
        """Of each term, objects that hold it and queries that are posted under it."""
        return np.diff(self.holders.offsets) + np.diff(self.posted.offsets)


def text_parts(w: Workload, node: Node) -> TextParts:
    """The terms of a node, laid out for dealing."""
    terms = terms_of(w, node)
    counted = np.ones(len(terms), bool)
    if w.discard:
        counted = registered(w, node)[terms] > 0
        if len(terms) and terms[0] == 0 and not counted[0]:
            terms, counted = terms[1:], counted[1:]
    local = np.full(len(w.vocabulary), -1)
    local[terms] = np.arange(len(terms))
    sides = []
    for rows, members in ((w.held, node.inside), (w.posting_terms, node.queries)):
        owner, term = rows.of(members)
        owner, term = np.searchsorted(members, owner), local[term]
        owner, term = owner[term >= 0], term[term >= 0]
        sides.append((_grouped(term, owner, len(terms)), _grouped(owner, term, len(members))))
    (holders, held), (posted, posting_terms) = sides
    n, q = len(node.inside), len(node.queries)
    return TextParts(terms, counted, n, q, holders, posted, held, posting_terms)


def of_vocabulary(w: Workload, parts: TextParts, part: Numbers) -> Numbers:
    """The part of each term of the vocabulary, -1 for those that were not dealt."""
    out = np.full(len(w.vocabulary), -1)
    out[parts.terms] = part
    return out


def _grouped(key: Numbers, value: Numbers, n: int) -> Lists:
    order = np.lexsort((value, key))
    counts = np.bincount(key, minlength=n)
    return Lists(np.concatenate([[0], np.cumsum(counts)]), value[order])
