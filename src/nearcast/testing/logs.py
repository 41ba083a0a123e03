"""Event logs made of edges, from any source of random choices.

Objects and regions take their coordinates from one small pool, so that objects lie on edges and
corners of regions and at equal distances; times repeat, ids are used again. What is drawn comes
from a `random.Random`, which may be seeded (`random_log`) or be Hypothesis' own (`strategies`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from random import Random
from typing import Any

from nearcast.kinds import KINDS, Kind
from nearcast.model.errors import Invalid
from nearcast.model.region import region_from_json
from nearcast.model.space import Space, distance

__all__ = ["LogMaker", "random_log"]

Json = dict[str, Any]

# Cells are 4**n units wide, coarser grids 2**n: their borders, the ends of the world, plain places.
_LONGITUDES = (-180.0, 180.0, 179.5, -179.5, 0.0, 0.25, 1.0, 4.0, -4.0, 16.0, 64.0, 90.0, 139.7)
_LATITUDES = (-90.0, 90.0, 89.5, 0.0, 0.25, 1.0, 4.0, -4.0, 16.0, 64.0, 35.66)
_PLANE = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.25,
    4.0,
    -4.0,
    16.0,
    3.7,
    64.0,
    4.0**-10,
    4096.0,
    4.0**20,
    -1e18,
    1e200,
)
_POOL = 5

# Several of them are one keyword after NFKC and casefold.
_ENTRIES = [
    "a",
    "b",
    "c",
    "A",
    " b ",
    "Ａ",
    "hot dog",
    "Hot  Dog",
    "straße",
    "STRASSE",
    "ﬁ",
    "fi",
] + ["İ", "i̇", "", "  ", "a", "b", "d", "9", "e", "f"]
_TEXTS = ("a", "A, b!", "hot dog", "Straße_c", "ﬁ9 b", "", "…", "İ a a", "ｂ。d")
_WORDS = ("a", "b", "c", "d", "A", "Ａ", "straße", "ﬁ", "İ", "hot-dog", '"hot dog"', '"ß"', '"ﬁ"')
_ANY_OF = (*_WORDS, "e", "f", "9")
# Steps of the clock and sums of a few, so that ends fall on times of objects.
_LIVES = (-1, 0, 1, 2, 3, 4, 10, 13, 30)
_LASTS = (1, 2, 5, 13, 40, 2**60)
_IDS = ("s0", "s1", "s2", "s3", "s4", 's"\\\n', "ß☃")
_CROWD = (*_IDS, *(f"t{n}" for n in range(33)))
_NAMES = ("o\t'\"\\", "é☃", "o")


class LogMaker:
    """Makes the events of one log, one after the other.

    `late` is the share of events that come after the log has passed their time; `late_controls`
    says whether subscribes and unsubscribes may be among them. A `crowd` is forty ids for kinds
    that keep results: enough for each of a few shards to have some that can move. `lasts` is the
    share of subscribes that look back, of kinds that can.
    """

    def __init__(
        self,
        rng: Random,
        space: Space,
        late: float = 0.2,
        late_controls: bool = True,
        crowd: bool = False,
        kinds: Mapping[str, Kind] = KINDS,
        lasts: float = 0.0,
    ) -> None:
        self.lasts = lasts
        self.space = space
        self.ids = _CROWD if crowd else _IDS
        self.kinds = [k for k in kinds.values() if len(k.results) or not crowd]
        self.late = late
        self.late_controls = late_controls
        self.clock = rng.choice((0, -5, 1_700_000_000_000))
        if space is Space.GEOGRAPHIC:
            self.xs = [_nudged(rng, _LONGITUDES, 180.0) for _ in range(_POOL)]
            if rng.random() < 0.3:  # both names of one meridian: distances to them tie
                self.xs[:2] = [180.0, -180.0]
            self.ys = [_nudged(rng, _LATITUDES, 90.0) for _ in range(_POOL)]
        else:
            self.xs = [_nudged(rng, _PLANE, math.inf) for _ in range(_POOL)]
            self.ys = [_nudged(rng, _PLANE, math.inf) for _ in range(_POOL)]
        self.count = 0

    def event(self, rng: Random) -> Json:
        """The next event of the log; always a valid one."""
        self.count += 1
        self.clock += rng.choice((0, 0, 1, 1, 3, 10))
        # A log begins with subscriptions, or its first objects would find nobody.
        what = rng.random() * (0.5 if self.count <= _POOL else 1.0)
        control = what < 0.4
        time = self.clock
        if rng.random() < self.late and (self.late_controls or not control):
            time -= rng.randint(1, 8)
        if not control:
            return self._publish(rng, time)
        if what < 0.3:
            return self._subscribe(rng, time)
        return {"op": "unsubscribe", "id": rng.choice(self.ids), "time": _written(rng, time)}

    def _publish(self, rng: Random, time: int) -> Json:
        name = rng.choice(_NAMES) if rng.random() < 0.1 else f"o{self.count}"
        event: Json = {
            "op": "publish",
            "id": name,
            "time": _written(rng, time),
            "at": self.at(rng),
        }
        if rng.random() < 0.8:
            event["keywords"] = [rng.choice(_ENTRIES) for _ in range(rng.randint(0, 4))]
        if rng.random() < 0.3:
            event["text"] = rng.choice(_TEXTS)
        return event

    def _subscribe(self, rng: Random, time: int) -> Json:
        kind = rng.choice(self.kinds)
        query = kind.examples.draw(rng, self)
        if rng.random() < 0.6:
            query["where"] = _any_of(rng) if rng.random() < 0.3 else _where(rng, 3)
        event = {
            "op": "subscribe",
            "id": rng.choice(self.ids),
            "time": _written(rng, time),
            "query": query,
        }
        if rng.random() < 0.3:
            event["expires"] = _written(rng, time + rng.choice(_LIVES))
        if rng.random() < 0.15:
            event["owner"] = rng.choice(("me", 'q"☃', ""))
        if rng.random() < 0.15:
            event["meta"] = rng.choice(({}, {"k": [1, None, "ß"]}, {'"': 0.1}))
        if self.lasts and kind.firsts is not None and rng.random() < self.lasts:
            event["last"] = rng.choice(_LASTS)
        return event

    # -- places ------------------------------------------------------------------------------

    def at(self, rng: Random) -> list[float]:
        """A position of the pool."""
        return [rng.choice(self.xs), rng.choice(self.ys)]

    def region(self, rng: Random) -> Json:
        """A region with edges at the pool's positions."""
        shape = rng.choice(("bbox", "bbox", "circle", "circle", "polygon", "giant"))
        if shape == "giant":
            return self._giant()
        if shape == "circle":
            return {"circle": {"at": self.at(rng), "radius": self._radius(rng)}}
        south, north = sorted((rng.choice(self.ys), rng.choice(self.ys)))
        west, east = rng.choice(self.xs), rng.choice(self.xs)
        if shape == "polygon":
            west, east = sorted((west, east))
            return self._valid(_polygon(rng, west, south, east, north))
        if self.space is not Space.GEOGRAPHIC:
            west, east = sorted((west, east))
        return {"bbox": [west, south, east, north]}

    def _radius(self, rng: Random) -> float:
        """Nearly always one that puts some place of the pool on the edge."""
        choice = rng.random()
        if choice < 0.1:
            return 0.0
        if choice < 0.2:
            return 1e8
        exact = min(float(distance(self.space.code, *self.at(rng), *self.at(rng))), 1e300)
        return exact if choice < 0.8 else max(math.nextafter(exact, -math.inf), 0.0)

    def _giant(self) -> Json:
        if self.space is Space.GEOGRAPHIC:
            return {"bbox": [-180.0, -90.0, 180.0, 90.0]}
        return {"bbox": [-1e300, -1e300, 1e300, 1e300]}

    def _valid(self, region: Json) -> Json:
        """The region, or a giant one where the pool gave a polygon without area."""
        try:
            region_from_json(self.space, region)
        except Invalid:
            return self._giant()
        return region


def _nudged(rng: Random, values: tuple[float, ...], limit: float) -> float:
    """One of the values, or its next neighbour on either side."""
    value = rng.choice(values)
    towards = rng.choice((None, None, -math.inf, math.inf))
    if towards is None:
        return value
    return min(max(math.nextafter(value, towards), -limit), limit)


def _polygon(rng: Random, west: float, south: float, east: float, north: float) -> Json:
    box = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    triangle = [[west, south], [east, south], [west, north], [west, south]]
    other = [[east, south], [east, north], [west, north], [east, south]]
    dx, dy = (east - west) / 4, (north - south) / 4
    hole = [[west + dx, south + dy], [west + dx, north - dy], [east - dx, north - dy]]
    shape = rng.choice(("box", "triangle", "hole", "two"))
    if shape == "box":
        return {"type": "Polygon", "coordinates": [box]}
    if shape == "triangle":
        return {"type": "Polygon", "coordinates": [triangle]}
    if shape == "hole":
        return {"type": "Polygon", "coordinates": [box, [*hole, hole[0]]]}
    half = [[[x + (east - west), y] for x, y in triangle]]
    return {"type": "MultiPolygon", "coordinates": [[other], half]}


def _where(rng: Random, depth: int) -> str:
    form = rng.choice(("word", "or", "or", "not", "and", "beside", "deep", "blank", "many"))
    if depth == 0 or form == "word":
        return rng.choice(_WORDS)
    if form == "blank":
        return rng.choice(("", " ")) if depth == 3 else rng.choice(_WORDS)
    if form == "many":
        return rng.choice((" OR ", " AND ")).join(
            rng.choice(_WORDS) for _ in range(rng.randint(4, 7))
        )
    if form == "deep":
        n = rng.choice((1, 2, 40))
        return "(" * n + _where(rng, 0) + ")" * n if n % 2 else "NOT " * n + _where(rng, 0)
    if form == "not":
        return f"NOT ({_where(rng, depth - 1)})"
    glue = {"and": " AND ", "or": " OR ", "beside": " "}[form]
    parts = [_where(rng, depth - 1).strip() or "a" for _ in range(rng.randint(2, 3))]
    return glue.join(part if rng.random() < 0.5 else f"({part})" for part in parts)


def _any_of(rng: Random) -> str:
    """An OR of 4 to 8 words, alone or as a part: a subscription that is posted under each word."""
    words = " OR ".join(rng.sample(_ANY_OF, rng.randint(4, 8)))
    form = rng.choice(("alone", "alone", "and", "not", "both"))
    if form == "alone":
        return words
    if form == "both":
        return f"({words}) AND ({' OR '.join(rng.sample(_ANY_OF, 4))})"
    return f"({words}) {'AND' if form == 'and' else 'AND NOT'} {rng.choice(_WORDS)}"


def _written(rng: Random, time: int) -> int | str:
    """A time as milliseconds, or now and then as text."""
    if rng.random() < 0.95 or not 0 <= time < 1000:
        return time
    return f"1970-01-01T01:00:00.{time:03d}+01:00"


def random_log(
    seed: int,
    space: Space,
    events: int,
    late: float = 0.0,
    late_controls: bool = False,
    crowd: bool = False,
    kinds: Mapping[str, Kind] = KINDS,
    lasts: float = 0.0,
) -> list[Json]:
    """A log of valid events; the same for the same arguments."""
    rng = Random(seed)
    maker = LogMaker(rng, space, late, late_controls, crowd, kinds, lasts)
    return [maker.event(rng) for _ in range(events)]
