"""Metrics, health, status, the JSON log and the lock of a run, without a JVM."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from nearcast.cli import main
from nearcast.engine.operations.in_use import InUse, runner_of
from nearcast.engine.operations.json_log import JsonLines, log_batch
from nearcast.engine.operations.metrics import Metrics
from nearcast.engine.operations.server import OperationsServer
from nearcast.engine.operations.status import status, table
from nearcast.engine.options.run_options import RunOptions
from nearcast.engine.options.settings import Settings, check_bound
from nearcast.engine.output.reports import Reports
from nearcast.model.errors import NearcastError
from nearcast.model.space import Space
from nearcast.testing.live_run import LiveRun
from nearcast.testing.logs import random_log


@pytest.fixture(scope="module")
def done(module_memory: Path) -> LiveRun:
    """A live run of some batches, with rejects and moves."""
    settings = Settings(
        order="arrival",
        arena=str(module_memory / "arena"),
        strategies={"range": "random", "knn": "random"},
        manifests="files",
        only=("range", "knn"),
    )
    folder = module_memory / "run"
    check_bound(settings, folder / "checkpoint")
    run = LiveRun(settings, folder)
    events = random_log(3, Space.GEOGRAPHIC, 60)
    for at in range(0, 60, 10):
        run.write([*events[at : at + 10], "broken"])
        assert run.step()
    run.write(events[:5])  # not read yet
    return run


def get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_metrics_are_the_sums_of_the_records(done: LiveRun) -> None:
    records = Reports(done.run.checkpoint).all()
    metrics = Metrics(done.run.checkpoint)
    server = OperationsServer("127.0.0.1:0", metrics)
    try:
        assert get(server.port, "/healthz")[0] == 200
        for record in records:
            server(record)
        metrics.lag = done.tailer.lag_bytes
        code, page = get(server.port, "/metrics")
        assert code == 200
        health = json.loads(get(server.port, "/healthz")[1])
        assert health["status"] == "ok"
        assert health["batch"] == records[-1].batch
        server.trouble = lambda: "the disk is full"
        code, text = get(server.port, "/healthz")
        assert (code, json.loads(text)["detail"]) == (503, "the disk is full")
        assert get(server.port, "/other")[0] == 404
    finally:
        server.close()
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            found[sample.name] = found.get(sample.name, 0.0) + sample.value
    totals = Reports(done.run.checkpoint).totals()
    assert found["nearcast_batches_total"] == len(records) == 6
    assert found["nearcast_batch_seconds_count"] == 6
    assert found["nearcast_notifications_total"] == sum(totals.notifications.values()) > 0
    assert found["nearcast_rejects_total"] == totals.rejects >= 6
    assert found["nearcast_events_total"] == totals.read - totals.rejects > 0
    assert found["nearcast_moved_total"] == totals.moved > 0
    assert found["nearcast_subscriptions"] == sum(r.subscriptions for r in records[-1].reports)
    assert found["nearcast_replanned_total"] > 0
    assert found["nearcast_input_lag_bytes"] == done.tailer.lag_bytes() > 0
    for name in ("state_bytes", "arena_bytes", "candidates_per_object", "shard_load"):
        assert found[f"nearcast_{name}"] > 0, name


def test_status_is_what_the_checkpoint_holds(
    done: LiveRun, capsys: pytest.CaptureFixture[str]
) -> None:
    found = status(done.run.checkpoint)
    totals = Reports(done.run.checkpoint).totals()
    assert found["state"] == "stopped"
    assert (found["batches"], found["waiting_batches"]) == (6, 0)
    assert found["events"]["publish"] == totals.events["publish"]
    assert found["notifications"] == totals.notifications
    assert found["rejects"] == totals.rejects
    assert [s["shard"] for s in found["shards"]] == [0, 1]
    assert sum(s["subscriptions"] for s in found["shards"]) > 0
    done.tailer.poll()
    in_use = InUse(done.run.checkpoint)
    in_use.note("127.0.0.1:9100")
    assert main(["status", str(done.run.checkpoint)]) == 0
    in_use.release()
    said = capsys.readouterr().out
    assert f"live, process {os.getpid()} on " in said
    assert "metrics on 127.0.0.1:9100" in said
    assert "6 done, 1 planned and not done" in said
    assert said.splitlines()[-2].split()[0] == "0"
    assert main(["status", str(done.run.checkpoint), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "stopped"


def test_status_of_a_run_without_batches(tmp_path: Path) -> None:
    check_bound(Settings(), tmp_path / "checkpoint")
    found = status(tmp_path / "checkpoint")
    assert (found["batches"], found["shards"]) == (0, [])
    assert "0 done" in table(found)


def test_status_of_no_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", str(tmp_path)]) == 2
    assert "not a nearcast checkpoint; name the folder" in capsys.readouterr().err


def test_a_checkpoint_has_one_driver(tmp_path: Path) -> None:
    program = (
        "import sys, pathlib; from nearcast.engine.operations.in_use import InUse\n"
        f"held = InUse(pathlib.Path({str(tmp_path)!r})); print('held', flush=True)\n"
        "sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        runner = runner_of(tmp_path)
        assert runner is not None
        assert runner.process == other.pid
        with pytest.raises(NearcastError, match=rf"process {other.pid} on .* stop that run first"):
            InUse(tmp_path)
        other.kill()
        other.wait()
    assert runner_of(tmp_path) is None
    InUse(tmp_path).release()
    assert runner_of(tmp_path) is None


def test_the_log_as_json(done: LiveRun, caplog: pytest.LogCaptureFixture) -> None:
    record = Reports(done.run.checkpoint).all()[0]
    with caplog.at_level(logging.INFO, "nearcast"):
        log_batch(record)
        logging.getLogger("nearcast.live").warning("%s: gone", "a")
        try:
            raise ValueError("no")
        except ValueError:
            logging.getLogger("nearcast.live").exception("failed")
    lines: list[dict[str, Any]] = [json.loads(JsonLines().format(r)) for r in caplog.records]
    assert (lines[0]["batch"], lines[0]["events"]) == (0, record.events)
    assert lines[0]["level"] == "info"
    assert (lines[1]["message"], lines[1]["logger"]) == ("a: gone", "nearcast.live")
    assert "ValueError: no" in lines[2]["error"]


@pytest.mark.parametrize(
    ("given", "kept"),
    [("9100", "127.0.0.1:9100"), (9100, "127.0.0.1:9100"), ("0.0.0.0:80", "0.0.0.0:80"), ("", "")],
)
def test_an_address(given: str | int, kept: str) -> None:
    assert RunOptions.of({"metrics": given}).metrics == kept


@pytest.mark.parametrize("given", ["localhost", "a:b", "1:70000", ":9", True, 1.5])
def test_no_address(given: Any) -> None:
    with pytest.raises(NearcastError, match=r"metrics: .* write HOST:PORT"):
        RunOptions.of({"metrics": given})


def test_a_port_that_is_taken(done: LiveRun) -> None:
    metrics = Metrics(done.run.checkpoint)
    server = OperationsServer("127.0.0.1:0", metrics)
    try:
        with pytest.raises(NearcastError, match=r"cannot listen on .* choose another port"):
            OperationsServer(f"127.0.0.1:{server.port}", metrics)
    finally:
        server.close()
