"""Summaries: what a call did, and what the checkpoint knows of the calls before it."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from nearcast.engine.moves.balancer import LOG, NOTHING, Balancer, Record
from nearcast.engine.options.settings import Settings
from nearcast.engine.output.batch_files import kinds_of
from nearcast.engine.output.reports import BatchRecord, summarise
from nearcast.engine.shard.report import Report
from nearcast.routing.balance import Balance
from nearcast.wire.durable import write_atomic
from nearcast.wire.tables import REJECTS, table_of


def test_the_rate_is_that_of_this_call() -> None:
    records = [BatchRecord(n, 1.0, [Report(0, n, events={"publish": 100})]) for n in range(5)]
    whole = summarise(records, 2.0, Settings())
    assert (whole["events"]["total"], whole["events_per_second"]) == (500, 250.0)
    resumed = summarise(records, 2.0, Settings(), done=3)
    assert (resumed["events"]["total"], resumed["events_per_second"]) == (500, 100.0)
    assert resumed["resumed_after_batches"] == 3


def test_looks_that_found_nothing_are_told_apart() -> None:
    def record(batch: int, what: str) -> Record:
        decisions = [{"kind": what, "reason": "because"}]
        return Record(batch, "range", [3.0, 1.0], decisions, [], [], [], [], [])

    looks = [record(3, NOTHING), record(9, "migrate")]
    balance = summarise([], 1.0, Settings(), looks)["balance"]
    assert [a["batch"] for a in balance["adjustments"]] == [9]
    line = {"batch": 3, "kind": "range", "imbalance": 1.5, "decision": NOTHING, "reason": "because"}
    assert balance["left_alone"] == [line]


def test_the_log_of_decisions_goes_on_and_a_repeated_batch_writes_the_same(tmp_path: Path) -> None:
    balancer = Balancer(tmp_path / "checkpoint", Balance(mode="auto"))

    def decided(batch: int, what: str) -> None:
        decisions = [{"kind": what, "reason": "because"}]
        record = Record(batch, "range", [3.0, 1.0], decisions, [], [], [], [], [])
        path = balancer.folder / f"{batch:012d}-range.json"
        write_atomic(path, msgspec.json.encode(record))

    decided(3, NOTHING)
    decided(9, "migrate")
    for batch in (2, 3, 4, 9, 9):
        balancer.write_log(batch, tmp_path)
    lines = [json.loads(line) for line in (tmp_path / LOG).read_text().splitlines()]
    assert [(line["batch"], line["decision"]) for line in lines] == [(3, NOTHING), (9, "migrate")]


def test_rejects_are_told_by_what_was_wrong() -> None:
    reasons = [
        "region.bbox: x",
        "region.coordinates[0]: y",
        "query.where: z",
        "at: 7",
        "not JSON: a",
    ]
    rows = [(n, "f", n, reason, "") for n, reason in enumerate(reasons * 2)]
    kinds = kinds_of(table_of(rows, REJECTS))
    assert kinds == dict.fromkeys(
        ("region.bbox", "region.coordinates", "query.where", "at", "line"), 2
    )
    report = Report(0, 0, rejects=10, reject_kinds=kinds)
    summary = summarise([BatchRecord(0, 1.0, [report])], 1.0, Settings())
    assert (summary["rejects"], summary["rejects_by_kind"]) == (10, kinds)
    assert kinds_of(table_of([], REJECTS)) == {}
