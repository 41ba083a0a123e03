"""`inverted`: one inverted file a shard, as KOP keeps it (DkM-SKS section 3.1)."""

from __future__ import annotations

from nearcast.index.balls import EVERYWHERE
from nearcast.index.compiled import CompiledIndex


class Inverted(CompiledIndex):
    """A list a word; a conjunction hangs under its rarest word, a disjunction under each."""

    name = "inverted"
    kinds = ("range", "knn")
    paper = "DkM-SKS 3.1"
    about = "one inverted file: a posting list a word, no spatial pruning beyond a box an entry"
    cells = False
    layout = EVERYWHERE
