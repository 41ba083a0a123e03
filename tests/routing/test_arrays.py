"""Plans as files: a run that begins anew in the same folder reads its own, not the one before."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from nearcast.routing import arrays
from nearcast.wire.durable import write_atomic


def test_a_file_of_the_same_name_in_a_new_run(tmp_path: Path) -> None:
    """Python workers live longer than runs: one that replays into a folder twice keeps them."""
    folder = tmp_path / "checkpoint"
    token = arrays.FOLDER.set(folder)
    try:
        for owner in (1, 2, 3):
            write_atomic(folder / "plans" / "1.bin", arrays.pack({"cells": np.full(4, owner)}))
            found = arrays.read(arrays.reference("plans/1.bin"))
            assert found["cells"].tolist() == [owner] * 4
            again = arrays.read(arrays.reference("plans/1.bin"))
            assert again is found  # one that did not change is mapped once
            shutil.rmtree(folder)
    finally:
        arrays.FOLDER.reset(token)
