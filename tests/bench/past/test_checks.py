"""The experiment notices wrong answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from nearcast.model.errors import NearcastError
from nearcast_bench.past.experiment import Setting, _asks, _check

Json = dict[str, Any]
TABLE = pa.table(
    {
        "id": ["a", "b", "c"],
        "at": [[1.0, 1.0], [1.5, 1.0], [100.0, 10.0]],
        "keywords": [["w"], ["w", "v"], ["w"]],
    }
)


def right(ask: Json) -> list[str]:
    """Every one of the three has the words w; `v` only b."""
    query = ask["query"]
    ids = ["b"] if query["where"] == '"v"' else ["a", "b", "c"]
    if query["kind"] == "range":
        west, _, east, _ = query["region"]["bbox"]
        places = {"a": 1.0, "b": 1.5, "c": 100.0}
        return [i for i in ids if west <= places[i] <= east]
    x = query["at"][0]
    return sorted(ids, key=lambda i: abs({"a": 1.0, "b": 1.5, "c": 100.0}[i] - x))


def answered(out: Path, asks: list[Json], wrong: bool) -> None:
    (out / "notifications").mkdir(parents=True)
    lines = []
    for n, ask in enumerate(asks):
        found = right(ask)[1 if wrong and n == 3 else 0 :]
        lines.append({"id": ask["id"], "objects": [{"id": i} for i in found]})
    path = out / "notifications" / "b00000001-answers.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize("wrong", [False, True])
def test_a_wrong_answer_is_no_timing(tmp_path: Path, wrong: bool) -> None:
    asks = _asks(Setting(asks=8), TABLE, 10, 0)
    assert {ask["query"]["kind"] for ask in asks} == {"range", "knn"}
    answered(tmp_path, asks, wrong)
    if wrong:
        with pytest.raises(NearcastError, match="wrong answer"):
            _check(TABLE, asks, tmp_path, lambda _: None)
    else:
        _check(TABLE, asks, tmp_path, lambda _: None)


def test_a_missing_answer_is_no_timing(tmp_path: Path) -> None:
    asks = _asks(Setting(asks=4), TABLE, 10, 0)
    answered(tmp_path, asks[:-1], wrong=False)
    with pytest.raises(NearcastError, match="answers to"):
        _check(TABLE, asks, tmp_path, lambda _: None)
