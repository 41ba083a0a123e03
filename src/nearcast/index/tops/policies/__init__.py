"""How deep buffers of `tops` are, and what they keep; the same for every index of that shape.

- `roots`: k and a few roots of it besides (nearcast's own);
- `cskyband`: the k-skyband above the threshold of least cost (Skype section 6.2);
- `skyband`: the k-skyband above a part of the k-th score (Mouratidis et al.; Skype section 6.1);
- `skyband-full`: the k-skyband of the whole window;
- `kmax`: the best k to kmax (Yi et al.; Skype section 2.3).
"""

from __future__ import annotations

import math

from nearcast.index.tops.policies.cost_skyband import CostSkyband
from nearcast.index.tops.policies.kmax import Kmax
from nearcast.index.tops.policies.skyband import FullSkyband, Skyband
from nearcast.index.tops.policy import Policy, Roots
from nearcast.model.errors import NearcastError

__all__ = ["POLICIES", "CostSkyband", "FullSkyband", "Kmax", "Policy", "Roots", "Skyband", "policy"]

POLICIES: dict[str, type[Policy]] = {
    p.name: p for p in (Roots, CostSkyband, Skyband, FullSkyband, Kmax)
}


def policy(text: str) -> Policy:
    """`NAME` or `NAME=NUMBER`: a new policy, perhaps with its number."""
    name, given, number = text.partition("=")
    if name not in POLICIES:
        raise NearcastError(f"strategy: no policy {name!r}; there are {', '.join(POLICIES)}")
    made = POLICIES[name]
    if not given:
        return made()
    if made.__init__ is Policy.__init__:
        raise NearcastError(f"strategy: {name} takes no number; write {name}")
    try:
        value = float(number)
        if not math.isfinite(value):
            raise ValueError("write a finite number")
        return made(value)  # type: ignore[call-arg]
    except ValueError as error:
        raise NearcastError(f"strategy: {text}: {error}") from None
