"""A process that is kept alive."""

from __future__ import annotations

import pytest

from nearcast.serve.child import Child


def test_a_child_is_started_again_with_growing_pauses(capfd: pytest.CaptureFixture[str]) -> None:
    said: list[str] = []
    child = Child("nobody", ["nearcast.nothing"], lambda state, n: said.append(f"{state} {n}"))
    child.start()
    assert child.process is not None
    child.process.wait()
    assert child.look() is True
    assert child.status == 1
    assert child.look() is False  # not yet
    child._next = 0.0
    assert child.look() is False
    assert (child.restarts, child._pause) == (1, 2.0)
    child.ask_to_stop()
    child.join()
    assert said == ["starting 0", "down 0", "starting 1", "stopped 1"]
    assert "the nobody ended with status 1; it starts again" in capfd.readouterr().err
