"""What a replay learns from its logs before it begins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nearcast.engine.feed.starting import refuse_unread
from nearcast.engine.options.settings import Settings
from nearcast.model.errors import NearcastError
from nearcast.model.space import Space
from nearcast.testing.cases import publish, subscribe
from nearcast.wire.logs import open_log

BEST = {"kind": "topk", "at": [0, 0], "k": 1, "keywords": ["a"], "alpha": 0.5}
NEAREST = {"kind": "knn", "at": [0, 0], "k": 1}
ASK = {"op": "ask", "id": "q", "time": 2, "last": 2, "query": BEST}
GIVEN: list[dict[str, Any]] = [{"window": "count:5"}, {"window": "count:5", "maxdist": 9.0}]


def check(folder: Path, event: dict[str, Any], **given: Any) -> None:
    """As a replay of a log in JSON and of one in columns does."""
    events = [publish("o", 1), event]
    lines, columns = folder / "log.jsonl", folder / "log.parquet"
    lines.write_text("".join(json.dumps(e) + "\n" for e in events))
    texts = [json.dumps(e["query"]) if "query" in e else None for e in events]
    named = {name: [e.get(name) for e in events] for name in ("op", "id", "time", "at", "last")}
    pq.write_table(pa.table(named | {"query": texts}), columns)
    settings = Settings(space=Space.PLANAR, **given)
    for path in (lines, columns):
        refuse_unread([open_log(str(path), False, folder / "spool")], settings)


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("event", [subscribe("s", 0, BEST), ASK], ids=["subscribe", "ask"])
def test_an_option_that_a_query_of_the_logs_reads(
    tmp_path: Path, event: dict[str, Any], given: dict[str, Any]
) -> None:
    check(tmp_path, event, **given)


@pytest.mark.parametrize("given", GIVEN)
def test_an_option_that_no_query_of_the_logs_reads(tmp_path: Path, given: dict[str, Any]) -> None:
    check(tmp_path, subscribe("s", 0, NEAREST))
    with pytest.raises(NearcastError, match="window has no effect: these logs have no query"):
        check(tmp_path, subscribe("s", 0, NEAREST), **given)


def test_the_difference_of_a_batch_where_nothing_ever_leaves(tmp_path: Path) -> None:
    region = {"kind": "range", "region": {"bbox": [0, 0, 1, 1]}}
    check(tmp_path, subscribe("s", 0, NEAREST), changes="net")
    check(tmp_path, subscribe("s", 0, BEST), changes="net")
    with pytest.raises(NearcastError, match=r"changes has no effect: .* reads it \(knn, topk\)"):
        check(tmp_path, subscribe("s", 0, region), changes="net")
