"""The way to the border of a box: no way out of it is shorter.

Together with the way to the box from outside it is never longer than the distance.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.objects.test_bounds import axes, boxes

from nearcast.kernels.boxes import at_least, less_slack_m, to_edge
from nearcast.model.space import GEOGRAPHIC_CODE, Space, distance


@pytest.mark.parametrize("space", list(Space))
@given(data=st.data())
def test_no_way_out_is_shorter(space: Space, data: st.DataObject) -> None:
    box = data.draw(boxes(space))
    across, up = axes(space)
    x = min(max(data.draw(across), box[0]), box[2])
    y = min(max(data.draw(up), box[1]), box[3])
    mx, my = data.draw(across), data.draw(up)
    if box[0] <= mx <= box[2] and box[1] <= my <= box[3]:
        return
    far = distance(space.code, x, y, mx, my)
    inner, outer = to_edge(space.code, x, y, box), at_least(space.code, mx, my, box)
    assert 0.0 <= inner <= far
    total = inner + outer
    if space.code == GEOGRAPHIC_CODE:
        total = less_slack_m(total)
    assert total * (1.0 - 1e-15) <= far


def test_the_border_is_as_far_as_it_is() -> None:
    box = np.array([10.0, 50.0, 12.0, 51.0])
    code = Space.GEOGRAPHIC.code
    assert to_edge(code, 10.1, 50.5, box) == pytest.approx(
        distance(code, 10.1, 50.5, 10.0, 50.5), rel=1e-3
    )
    assert to_edge(code, 11.0, 50.9, box) == pytest.approx(
        distance(code, 11.0, 50.9, 11.0, 51.0), rel=1e-6
    )
    assert to_edge(code, 10.0, 50.5, box) == 0.0
    plane = np.array([0.0, 0.0, 4.0, 4.0])
    assert to_edge(Space.PLANAR.code, 1.0, 3.5, plane) == pytest.approx(0.5)
    # The meridian of 180 degrees is a border like any other.
    assert to_edge(code, 179.9, 0.0, np.array([90.0, -80.0, 180.0, 80.0])) < 12_000
