"""The ledger: which logs are planned, and which have changed since."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from nearcast.engine.feed import ledger as ledgers
from nearcast.engine.feed.ledger import Ledger
from nearcast.model.errors import NearcastError


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.jsonl"
    path.write_text("{}\n")
    return path


def test_a_log_is_planned_once(tmp_path: Path, log: Path) -> None:
    ledger = Ledger(tmp_path / "checkpoint")
    assert (ledger.batches, ledger.events) == (0, 0)
    assert ledger.fresh([str(log)]) == [str(log)]
    ledger.add([str(log)], 3, 250)
    again = Ledger(tmp_path / "checkpoint")
    assert again.fresh([str(log)]) == []
    assert (again.batches, again.events) == (3, 250)


def test_new_logs_are_added(tmp_path: Path, log: Path) -> None:
    ledger = Ledger(tmp_path / "checkpoint")
    ledger.add([str(log)], 1, 1)
    other = tmp_path / "other.jsonl"
    other.write_text("{}\n{}\n")
    assert ledger.fresh([str(log), str(other)]) == [str(other)]
    ledger.add([str(other)], 2, 3)
    assert Ledger(tmp_path / "checkpoint").fresh([str(log), str(other)]) == []


def test_a_log_has_one_name(tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(tmp_path / "checkpoint")
    ledger.add([str(log)], 1, 1)
    monkeypatch.chdir(tmp_path)
    link = tmp_path / "link.jsonl"
    link.symlink_to(log)
    assert ledger.fresh(["log.jsonl", "./log.jsonl", str(link)]) == []


def test_a_log_that_changed_is_refused(tmp_path: Path, log: Path) -> None:
    ledger = Ledger(tmp_path / "checkpoint")
    ledger.add([str(log)], 1, 1)
    log.write_text("{}\n" * 500)
    with pytest.raises(NearcastError) as caught:
        ledger.fresh([str(log)])
    assert str(caught.value) == (
        f"{log}: the file had 3 bytes when this checkpoint planned it and has 1,500 now; "
        "put new events into a new file"
    )
    log.unlink()
    with pytest.raises(NearcastError, match="has -1 now"):
        ledger.fresh([str(log)])


@pytest.mark.parametrize("times_kept", [True, False])
def test_a_changed_log_of_equal_size_is_refused(
    tmp_path: Path, log: Path, times_kept: bool
) -> None:
    ledger = Ledger(tmp_path / "checkpoint")
    ledger.fresh([str(log)])
    ledger.add([str(log)], 1, 1)
    before = log.stat()
    log.write_text("[]\n")
    if times_kept:
        os.utime(log, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(NearcastError) as caught:
        Ledger(tmp_path / "checkpoint").fresh([str(log)])
    assert str(caught.value) == (
        f"{log}: the file has other content than when this checkpoint planned it; restore it, "
        "and put new events into a new file"
    )


def test_the_same_bytes_are_the_same_log(tmp_path: Path, log: Path) -> None:
    Ledger(tmp_path / "checkpoint").add([str(log)], 1, 1)
    copy = tmp_path / "copy.jsonl"
    shutil.copy(log, copy)
    copy.replace(log)
    assert Ledger(tmp_path / "checkpoint").fresh([str(log)]) == []
    os.utime(log, (1, 1))
    assert Ledger(tmp_path / "checkpoint").fresh([str(log)]) == []


def test_an_untouched_log_is_not_read_again(
    tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledgers, "_UNSURE_NS", -(10**12))  # as if it had been written long ago
    Ledger(tmp_path / "checkpoint").add([str(log)], 1, 1)
    monkeypatch.setattr(ledgers, "_digest", lambda _: "not to be computed")
    assert Ledger(tmp_path / "checkpoint").fresh([str(log)]) == []
