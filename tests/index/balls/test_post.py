"""The cheap look at an entry never refuses what lies in its ball, and refuses most corners."""

from __future__ import annotations

import numpy as np
import pytest

from nearcast.index.balls.post import in_a_corner
from nearcast.index.posting import outward
from nearcast.model.extent import circle_boxes
from nearcast.model.space import Space, distance


@pytest.mark.parametrize("space", list(Space))
def test_corners_hold_nothing_of_a_ball(space: Space) -> None:
    rng = np.random.default_rng(1)
    boxes, entry = np.empty((2, 4)), np.zeros((1, 5), np.float32)
    refused = outside = 0
    for _ in range(20_000):
        x, y = float(rng.uniform(-179.9, 179.9)), float(rng.uniform(-75, 75))
        degrees = 10.0 ** rng.uniform(-4, 0.3)
        radius = degrees * 111_195.0 if space is Space.GEOGRAPHIC else degrees
        if circle_boxes(space.code, x, y, radius, boxes) != 1:
            continue
        box = boxes[0]
        outward(entry[0, 1:], box[0], box[1], box[2], box[3])
        # Mostly near the edge of the ball: that is where a mistake would show.
        angle, out = rng.uniform(0, 2 * np.pi), rng.uniform(0.97, 1.4)
        px = (box[0] + box[2]) / 2 + np.cos(angle) * out * (box[2] - box[0]) / 2
        py = (box[1] + box[3]) / 2 + np.sin(angle) * out * (box[3] - box[1]) / 2
        inside_box = box[0] <= px <= box[2] and box[1] <= py <= box[3]
        held = distance(space.code, x, y, float(px), float(py)) < radius
        corner = in_a_corner(entry, 0, space.code, float(px), float(py))
        assert not (held and corner), (x, y, radius, px, py)
        outside += inside_box and not held
        refused += corner and inside_box
    assert refused > 0.3 * outside
