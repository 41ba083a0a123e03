"""Bounds of boxes: every position of a box keeps to them, and they are not useless."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.kernels.boxes import at_least, at_most
from nearcast.model.geometry import region_contains
from nearcast.model.region import Bbox, Circle, Polygon, Region, encode, outer_boxes
from nearcast.model.space import Space, distance
from nearcast.objects.bounds import INSIDE, OUTSIDE, PARTLY, relation

SHARES = np.linspace(0, 1, 5)
LONGITUDE = st.one_of(st.sampled_from([-180.0, 180.0, 0.0, 179.9]), st.floats(-180, 180))
LATITUDE = st.one_of(st.sampled_from([-90.0, 90.0, 0.0, 89.99]), st.floats(-90, 90))
PLANE = st.one_of(st.sampled_from([0.0, -1.0, 1e200, 1e-310]), st.floats(-1e6, 1e6))


def axes(space: Space) -> tuple[st.SearchStrategy[float], st.SearchStrategy[float]]:
    return (LONGITUDE, LATITUDE) if space is Space.GEOGRAPHIC else (PLANE, PLANE)


@st.composite
def boxes(draw: st.DrawFn, space: Space) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    across, up = axes(space)
    xs, ys = sorted([draw(across), draw(across)]), sorted([draw(up), draw(up)])
    if draw(st.booleans()):  # small ones, as leaves have
        xs[1], ys[1] = min(xs[1], xs[0] + 0.01), min(ys[1], ys[0] + 0.01)
    return np.array([xs[0], ys[0], xs[1], ys[1]])


def positions(box: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[tuple[float, float]]:
    """Corners and a grid between them."""
    xs = {float(min(max(box[0] + s * (box[2] - box[0]), box[0]), box[2])) for s in SHARES}
    ys = {float(min(max(box[1] + s * (box[3] - box[1]), box[1]), box[3])) for s in SHARES}
    return [(x, y) for x in xs for y in ys]


@pytest.mark.parametrize("space", list(Space))
@given(data=st.data())
def test_no_position_of_a_box_is_nearer_or_further(space: Space, data: st.DataObject) -> None:
    box = data.draw(boxes(space))
    across, up = axes(space)
    x, y = data.draw(across), data.draw(up)
    least, most = at_least(space.code, x, y, box), at_most(space.code, x, y, box)
    for px, py in positions(box):
        assert least <= distance(space.code, x, y, px, py) <= most


def test_bounds_are_close_where_it_matters() -> None:
    box = np.array([10.0, 50.0, 10.01, 50.01])
    code = Space.GEOGRAPHIC.code
    near = distance(code, 9.0, 50.3, 10.0, 50.01)
    assert at_least(code, 9.0, 50.3, box) == pytest.approx(near, rel=1e-3)
    assert at_least(code, 10.005, 50.005, box) == 0.0
    far = distance(code, 9.0, 50.3, 10.01, 50.0)
    assert at_most(code, 9.0, 50.3, box) == pytest.approx(far, rel=1e-3)
    # A box behind the antimeridian is as near as it is.
    assert at_least(code, -179.9, 0.0, np.array([179.9, 0.0, 180.0, 0.0])) < 12_000


@st.composite
def regions(draw: st.DrawFn, space: Space) -> Region:
    across, up = axes(space)
    x, y, x2, y2 = draw(across), draw(up), draw(across), draw(up)
    if draw(st.booleans()):
        radius = draw(st.sampled_from([0.0, 10.0, 1e5, 1.2e7, 3e7]))
        return Circle(x, y, radius)
    if draw(st.booleans()):
        ring = ((x, y), (x2, y2), (draw(across), draw(up)), (x, y))
        return Polygon((ring,))
    wide = (x, x2) if space is Space.GEOGRAPHIC else (min(x, x2), max(x, x2))
    return Bbox(wide[0], min(y, y2), wide[1], max(y, y2))


@pytest.mark.parametrize("space", list(Space))
@given(data=st.data())
def test_the_relation_holds_for_every_position(space: Space, data: st.DataObject) -> None:
    region, box = data.draw(regions(space)), data.draw(boxes(space))
    code, flat = encode(region)
    numbers = np.array(flat, float)
    outer = np.array([v for b in outer_boxes(space, region) for v in b], float)
    found = relation(space.code, code, numbers, outer, box)
    inside = {region_contains(space.code, code, numbers, x, y) for x, y in positions(box)}
    assert found == PARTLY or inside == {found == INSIDE}


def test_boxes_inside_and_outside_are_recognised() -> None:
    here = np.array([1.0, 1.0, 2.0, 2.0])
    code = Space.PLANAR.code
    ring = ((0.0, 0.0), (9.0, 0.0), (9.0, 9.0), (0.0, 9.0), (0.0, 0.0))
    for region in (Bbox(0, 0, 9, 9), Circle(1.5, 1.5, 8), Polygon((ring,))):
        shape, flat = encode(region)
        outer = np.array([v for b in outer_boxes(Space.PLANAR, region) for v in b], float)
        numbers = np.array(flat, float)
        assert relation(code, shape, numbers, outer, here) == INSIDE
        assert relation(code, shape, numbers, outer, here + 20) == OUTSIDE
        assert relation(code, shape, numbers, outer, here * 7) == PARTLY
