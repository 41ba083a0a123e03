"""Memory of matches: never shared with somebody who still reads it."""

import numpy as np
import pyarrow as pa

from nearcast.index.regions.room import Room


def test_memory_is_used_again_when_nobody_holds_it() -> None:
    room = Room()
    first = room.take(1000).ctypes.data
    assert room.take(900).ctypes.data == first


def test_memory_that_is_held_is_left_alone() -> None:
    room = Room()
    view = room.take(1000)[1, :10]
    view[:] = 7
    arrow = pa.array(room.take(1000)[0, :10])
    assert room.take(1000)[1, :10].ctypes.data not in (view.ctypes.data, arrow.buffers()[1].address)
    assert np.all(view == 7)


def test_memory_far_larger_than_needed_is_given_back() -> None:
    room = Room()
    room.take(1_000_000)
    assert room.take(1000).shape == (2, 1000)
