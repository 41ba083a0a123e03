"""`inverted`: one inverted file per shard (DkM-SKS section 3.1), for regions."""

from __future__ import annotations

from nearcast.index.regions.index import RegionIndex


class InvertedRegions(RegionIndex):
    """One list per word: a conjunction is posted under its rarest word, an OR under each."""

    name = "inverted"
    paper = "DkM-SKS 3.1"
    about = (
        "one inverted file: one posting list per word, no spatial pruning beyond one box per entry"
    )
    cells = False
