"""Circles by their rounded boxes: what is decided is what the contract's formula says."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nearcast.index.arena import Memory
from nearcast.kernels.rings import INSIDE, OUTSIDE, UNSURE, side_of_circle, spot_of
from nearcast.kinds import KINDS
from nearcast.model.extent import outer_boxes
from nearcast.model.predicate import contains
from nearcast.model.shapes import Circle
from nearcast.model.space import EARTH_RADIUS_M, Space
from nearcast.testing.cases import assert_same_story, publish, subscribe, wanted
from nearcast.testing.drive import notifications, plan, step

PLANE, EARTH = Space.PLANAR, Space.GEOGRAPHIC
RANGE = KINDS["range"]


def _side(space: Space, circle: Circle, x: float, y: float) -> int | None:
    """What the only box of the circle says; None: there are two, or the position is outside."""
    boxes = outer_boxes(space, circle)
    if len(boxes) != 1:
        return None
    with np.errstate(over="ignore"):
        rounded = [np.float32(v) for v in boxes[0]]
        if not (rounded[0] <= np.float32(x) <= rounded[2]):
            return None
        if not (rounded[1] <= np.float32(y) <= rounded[3]):
            return None
    return int(side_of_circle(spot_of(space.code, x, y), *rounded))


def _on_earth(circle: Circle, bearing: float, angle: float) -> tuple[float, float]:
    """The position so far away, in radians, from the middle of a circle."""
    latitude, turn = math.radians(circle.y), math.radians(bearing)
    sine = math.sin(latitude) * math.cos(angle) + math.cos(latitude) * math.sin(angle) * math.cos(
        turn
    )
    north = math.asin(max(-1.0, min(1.0, sine)))
    east = math.atan2(
        math.sin(turn) * math.sin(angle) * math.cos(latitude),
        math.cos(angle) - math.sin(latitude) * math.sin(north),
    )
    longitude = circle.x + math.degrees(east)
    longitude -= 360.0 * math.floor((longitude + 180.0) / 360.0)
    return max(-180.0, min(180.0, longitude)), max(-90.0, min(90.0, math.degrees(north)))


def _around(x: float, y: float, away: int) -> tuple[float, float]:
    """A position so many floats further on."""
    for _ in range(abs(away)):
        x, y = np.nextafter(x, math.copysign(9e307, away)), np.nextafter(y, 9e307)
    return float(x), float(y)


# From 1 µm to more than the series can do; within floats of the border, millimetres, half of it.
radii = st.one_of(st.floats(-6, 6).map(lambda e: 10.0**e), st.sampled_from([0.0, 440_000.0, 2e7]))
shares = st.one_of(
    st.sampled_from([1.0, 1.0 - 1e-15, 1.0 + 1e-9, 1.0 - 1e-7, 1.0 + 1e-5, 0.999, 1.001, 0.5]),
    st.floats(0.0, 1.4),
)
latitudes = st.one_of(st.floats(-90, 90), st.sampled_from([89.9, -89.999, 90.0, 0.0, 60.0]))
longitudes = st.one_of(st.floats(-180, 180), st.sampled_from([180.0, -180.0, 179.99, 139.7, 0.0]))


@settings(max_examples=400)
@given(longitudes, latitudes, radii, st.floats(0, 360), shares, st.integers(-3, 3))
@example(139.7, 35.6, 500.0, 90.0, 0.9, 0)
@example(10.0, 89.9, 11_000.0, 0.0, 1.0, 0)  # up to the pole, nearly
def test_on_the_earth(
    x: float, y: float, radius: float, bearing: float, share: float, away: int
) -> None:
    circle = Circle(x, y, radius)
    at = _around(*_on_earth(circle, bearing, radius * share / EARTH_RADIUS_M), away)
    at = max(-180.0, min(180.0, at[0])), max(-90.0, min(90.0, at[1]))
    side = _side(EARTH, circle, *at)
    if side in (INSIDE, OUTSIDE):
        assert contains(EARTH, circle, *at) == (side == INSIDE)


@settings(max_examples=300)
@given(
    st.one_of(st.floats(-1e6, 1e6), st.floats(-1e300, 1e300), st.just(0.0)),
    st.floats(-1e6, 1e6),
    st.one_of(st.floats(-320, 300).map(lambda e: 10.0**e), st.floats(0, 1e4)),
    st.floats(0, 2 * math.pi),
    shares,
    st.integers(-3, 3),
)
def test_in_the_plane(
    x: float, y: float, radius: float, turn: float, share: float, away: int
) -> None:
    circle = Circle(x, y, radius)
    at = _around(x + radius * share * math.cos(turn), y + radius * share * math.sin(turn), away)
    side = _side(PLANE, circle, *at)
    if side in (INSIDE, OUTSIDE):
        assert contains(PLANE, circle, *at) == (side == INSIDE)


@pytest.mark.parametrize("radius", [100.0, 5_000.0, 200_000.0])
@pytest.mark.parametrize("at", [(139.7, 35.6), (-170.0, 0.0), (0.0, -60.0)])
def test_only_a_thin_ring_is_not_decided(at: tuple[float, float], radius: float) -> None:
    """Some metres on each side, however large the circle is."""
    circle = Circle(*at, radius)
    assert _side(EARTH, circle, *at) == INSIDE
    for bearing in range(0, 360, 30):
        for metres, expected in ((-4.0, INSIDE), (0.0, UNSURE), (4.0, OUTSIDE)):
            angle = (radius + metres) / EARTH_RADIUS_M
            side = _side(EARTH, circle, *_on_earth(circle, bearing, angle))
            assert side == expected or (side is None and metres > 0)


CIRCLES: list[tuple[list[float], float]] = [
    ([139.7, 35.6], 700.0),
    ([139.7, 35.6], 3.0),
    ([139.7, 35.6], 0.0),
    ([179.999, 35.6], 900.0),
    ([0.0, 89.99], 5_000.0),
    ([139.7, 35.6], 2.0e7),
]
WHERES = [
    "a", "a AND b", "a AND NOT b", "a OR b", "a OR b OR c OR d", "a AND b AND c", "(a OR b) AND c",
    "", "a b c d",
]  # fmt: skip


def test_with_words_of_every_form(rng: np.random.Generator) -> None:
    """The words of an entry of a circle are read as those of a box."""
    log: list[dict[str, Any]] = []
    for i, (at, radius) in enumerate(CIRCLES):
        circle = {"circle": {"at": at, "radius": radius}}
        for j, where in enumerate(WHERES):
            log.append(subscribe(f"s{i}-{j}", 0, {"kind": "range", "region": circle}))
            if where:
                log[-1]["query"]["where"] = where
    standing = len(log)
    for n in range(120):
        (x, y), radius = CIRCLES[n % len(CIRCLES)]
        angle = rng.choice([0.0, 0.3, 0.999, 1.0, 1.001]) * radius / EARTH_RADIUS_M
        there = _on_earth(Circle(x, y, radius), rng.uniform(0, 360), angle)
        words = [w for w in "abcd" if rng.random() < 0.5]
        log.append(publish(f"o{n}", 1, *there, *words))
    right = wanted(log, RANGE, EARTH)
    assert len(right) > 500
    for cuts in ([standing], [standing - 20]):
        index = RANGE.index("pyramid")(EARTH, Memory())
        got = []
        for batch in plan(log, RANGE, EARTH, "time", cuts):
            got += notifications(index, step(index, batch), RANGE)
            index.close()
        assert_same_story(got, right)
