"""`skype-hash`: subscriptions dealt by a uniform hash of their id (DSkype, section 7.3.1)."""

from __future__ import annotations

from nearcast.routing.hash import Hash


class SkypeHash(Hash):
    """Equation 14: as many subscriptions on each shard, one copy of each; objects to all."""

    name = "skype-hash"
    paper = "DSkype (Wang et al.)"
    about = "subscriptions dealt by id, objects to every shard"
    by_id = False  # other kinds have no such router: an id has no one home
