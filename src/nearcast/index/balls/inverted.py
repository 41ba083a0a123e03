"""`inverted`: one inverted file per shard, as KOP keeps it (DkM-SKS section 3.1), for balls."""

from __future__ import annotations

from nearcast.index.balls.index import BallIndex
from nearcast.index.balls.post import EVERYWHERE


class InvertedBalls(BallIndex):
    """One list per word: a conjunction is posted under its rarest word, an OR under each."""

    name = "inverted"
    paper = "DkM-SKS 3.1"
    about = (
        "one inverted file: one posting list per word, no spatial pruning beyond one box per entry"
    )
    layout = EVERYWHERE
