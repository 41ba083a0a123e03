"""The demo's folder: an earlier demo may be replaced, nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from nearcast.demo.folder import DemoFolder
from nearcast.model.errors import NearcastError


def test_makes_a_folder_and_replaces_its_own(tmp_path: Path) -> None:
    folder = DemoFolder(tmp_path / "deep" / "out")
    folder.prepare()
    folder.map.write_text("old")
    folder.notifications.mkdir()
    (folder.notifications / "b00000000-s0000.jsonl").write_text("{}")
    folder.prepare()
    assert not folder.map.exists()
    assert not folder.notifications.exists()
    assert folder.log.read_bytes() == b""


def test_takes_an_empty_folder(tmp_path: Path) -> None:
    DemoFolder(tmp_path).prepare()
    assert (tmp_path / "events" / "city.jsonl").exists()


def test_refuses_a_folder_of_somebody_else(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    with pytest.raises(NearcastError, match=r"holds files that no demo made \(events\)"):
        DemoFolder(tmp_path).prepare()
    assert (tmp_path / "events").exists()


def test_refuses_if_something_was_put_beside_an_old_demo(tmp_path: Path) -> None:
    folder = DemoFolder(tmp_path)
    folder.prepare()
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(NearcastError, match=r"thesis\.tex"):
        folder.prepare()
    assert (tmp_path / "thesis.tex").read_text() == "precious"
    assert folder.log.exists()


def test_refuses_a_file(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(NearcastError, match="is a file"):
        DemoFolder(tmp_path / "out").prepare()


def test_a_link_is_removed_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("")
    folder = DemoFolder(tmp_path / "out")
    folder.prepare()
    (folder.path / "_arena").symlink_to(precious)
    folder.prepare()
    assert (precious / "file").exists()


def test_tidy_leaves_what_a_reader_wants(tmp_path: Path) -> None:
    folder = DemoFolder(tmp_path)
    folder.prepare()
    folder.checkpoint.mkdir()
    folder.map.write_text("")
    folder.tidy()
    assert sorted(p.name for p in tmp_path.iterdir()) == [".nearcast-demo", "events", "map.html"]
