"""Segments are removed when the run is done with them, and what they said is known."""

from __future__ import annotations

import json
from pathlib import Path

from tests.gateway.running import Running, running

from nearcast.engine import upkeep
from nearcast.gateway.inbox import segments_of
from nearcast.wire.consumed import read_consumed

QUERY = {"kind": "knn", "at": [0, 0], "k": 1}


def send(service: Running, n: int) -> None:
    body = json.dumps({"op": "publish", "id": f"o{n}", "at": [0, 0], "text": "x" * 300})
    key = {"Idempotency-Key": f"k{n}"}
    assert service.http.post("/v1/events", content=body, headers=key).status_code == 202


def test_a_run_of_long_has_few_segments(tmp_path: Path, memory: Path) -> None:
    every, kept = upkeep.EVERY, upkeep.KEPT
    upkeep.EVERY, upkeep.KEPT = 8, 8
    try:
        with running(tmp_path, memory, segment_bytes=600) as service:
            inbox, out = service.service.inbox, service.service.folder
            (inbox / "foreign.jsonl").write_text('{"op":"subscribe"\n')
            service.http.put("/v1/subscriptions/s", json={"query": QUERY})
            for n in range(30):
                send(service, n)
                service.settled()
            assert read_consumed(out)
            gateway = service.server.gateway
            before = segments_of(inbox)
            removed = gateway.registering.prune(out, gateway.inbox.current)
            assert removed > 5
            left = segments_of(inbox)
            assert left == before[removed:]
            assert gateway.inbox.current in left
            assert (inbox / "foreign.jsonl").exists()
            send(service, 99)
            service.settled()
            service.restart_gateway()
            send(service, 0)  # it was taken, though its segment is gone
            service.settled()
            assert service.http.get("/v1/subscriptions/s").status_code == 200
            result = service.http.get("/v1/subscriptions/s").json()["result"]["objects"]
            assert [o["id"] for o in result] == ["o0"]
            data = b"".join(p.read_bytes() for p in segments_of(inbox))
            assert b'"o99"' in data
            assert b'"o0"' not in data
    finally:
        upkeep.EVERY, upkeep.KEPT = every, kept
