"""Workloads by name."""

import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from nearcast.model.expression import parse
from nearcast.model.region import region_from_json
from nearcast.model.space import Space
from nearcast.workload import GENERATORS, START_MS, generate

SUFFIXES = ("jsonl", "jsonl.gz", "parquet")
by_name = pytest.mark.parametrize("name", list(GENERATORS))


def events_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def test_the_promised_names() -> None:
    ps2stream = [f"ps2stream-{c}-q{q}" for c in ("us", "uk") for q in (1, 2, 3)]
    skype = ["skype-tweets", "skype-gn", "skype-yelp"]
    assert list(GENERATORS) == ["place", "twitter", *ps2stream, *skype, "pipeline", "city"]
    for name, generator in GENERATORS.items():
        assert generator.name == name
        assert generator.description
        assert "\n" not in generator.description


def check_position(at: object) -> None:
    assert isinstance(at, list)
    x, y = at
    assert math.isfinite(x) and math.isfinite(y) and abs(x) <= 180 and abs(y) <= 90  # noqa: PT018


def check_region(region: dict[str, Any]) -> str:
    region_from_json(Space.GEOGRAPHIC, region)  # refuses what is empty or crosses itself
    if "bbox" in region:
        west, south, east, north = region["bbox"]
        assert west < east
        assert south < north
        return "bbox"
    if "circle" in region:
        check_position(region["circle"]["at"])
        assert region["circle"]["radius"] > 0
        return "circle"
    assert region["type"] == "Polygon"
    (ring,) = region["coordinates"]
    assert ring[0] == ring[-1]
    area = sum(a[0] * b[1] - a[1] * b[0] for a, b in pairwise(ring))
    assert area > 0  # counter-clockwise, as RFC 7946 wants
    for corner in ring:
        check_position(corner)
    return "polygon"


def check(event: dict[str, Any]) -> str:
    """Assert docs/spec.md section 3's shape; what was seen, in a word."""
    assert isinstance(event["time"], int)
    assert 1 <= len(event["id"]) <= 256
    if event["op"] == "publish":
        assert set(event) <= {"op", "id", "time", "at", "text", "keywords"}
        check_position(event["at"])
        assert event.get("text") or event["keywords"]
        return "publish"
    if event["op"] == "unsubscribe":
        assert set(event) == {"op", "id", "time"}
        return "unsubscribe"
    assert event["op"] == "subscribe"
    assert set(event) <= {"op", "id", "time", "expires", "query", "owner", "meta"}
    assert isinstance(event.get("meta", {}), dict)
    query = event["query"]
    if query["kind"] == "topk":
        check_position(query["at"])
        assert 1 <= len(set(query["keywords"])) == len(query["keywords"]) <= 5
        assert 0 <= query["alpha"] <= 1
        assert query["k"] == 20
        assert query["maxdist"] > 1_000_000
        return "topk"
    parse(query["where"])
    if query["kind"] == "range":
        return check_region(query["region"])
    assert query["kind"] == "knn"
    assert 1 <= query["k"] <= 10
    assert query.get("window", 1) > 0
    check_position(query["at"])
    return "knn"


@by_name
def test_every_event_has_the_shape_of_the_contract(name: str, tmp_path: Path) -> None:
    reported: list[int] = []
    count = generate(name, 600, 300, 1, tmp_path / "e.jsonl", reported.append)
    events = events_of(tmp_path / "e.jsonl")
    assert count == len(events) == reported[-1]
    seen = {check(event) for event in events}
    ops = [event["op"] for event in events]
    assert ops.count("publish") == 600
    assert ops[:300] == ["subscribe"] * 300
    if not name.startswith("ps2stream"):
        assert ops.count("subscribe") == 300
    ids = [e["id"] for e in events if e["op"] == "publish"]
    assert len(set(ids)) == len(ids)
    times = [event["time"] for event in events]
    assert times[0] == START_MS
    assert times == sorted(times)
    expected = {
        "city": {"publish", "unsubscribe", "bbox", "circle", "polygon", "knn"},
        "pipeline": {"publish", "bbox"},
        "place": {"publish", "knn"},
        "twitter": {"publish", "knn"},
        **{f"skype-{data}": {"publish", "topk"} for data in ("tweets", "gn", "yelp")},
    }
    assert seen == expected.get(name, {"publish", "unsubscribe", "bbox"})


@by_name
def test_parquet_holds_what_jsonl_holds(name: str, tmp_path: Path) -> None:
    generate(name, 60, 30, 5, tmp_path / "e.jsonl")
    generate(name, 60, 30, 5, tmp_path / "e.parquet")
    rows = []
    for row in pq.read_table(tmp_path / "e.parquet").to_pylist():
        row = {k: v for k, v in row.items() if v is not None}
        rows.append(row | {k: json.loads(row[k]) for k in ("query", "meta") if k in row})
    assert rows == events_of(tmp_path / "e.jsonl")


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", ["twitter", "ps2stream-uk-q3", "pipeline", "city"])
def test_the_seed_decides_every_byte(name: str, suffix: str, tmp_path: Path) -> None:
    contents = []
    for i, seed in enumerate((3, 3, 4)):
        path = tmp_path / f"{i}.{suffix}"
        generate(name, 40, 20, seed, path)
        contents.append(path.read_bytes())
    assert contents[0] == contents[1] != contents[2]


def test_objects_do_not_depend_on_the_number_of_subscriptions(tmp_path: Path) -> None:
    found = []
    for n in (0, 7):
        generate("place", 20, n, 1, tmp_path / "e.jsonl")
        found.append([e for e in events_of(tmp_path / "e.jsonl") if e["op"] == "publish"])
    assert found[0] == found[1]


def test_the_city_is_readable_and_lively(tmp_path: Path) -> None:
    generate("city", 2_000, 1_000, 1, tmp_path / "e.jsonl")
    events = events_of(tmp_path / "e.jsonl")
    subscriptions = [e for e in events if e["op"] == "subscribe"]
    where = [e["query"]["where"] for e in subscriptions]
    assert any("NOT" in w for w in where)
    assert any("OR" in w for w in where)
    assert all(e["owner"] for e in subscriptions)
    last = events[-1]["time"]
    expiring = [e for e in subscriptions if "expires" in e]
    assert 50 < len(expiring) < 200
    assert all(START_MS < e["expires"] <= last for e in expiring)
    names = {e["id"] for e in subscriptions}
    leaving = [e for e in events if e["op"] == "unsubscribe"]
    assert 20 < len(leaving) < 100
    assert all(e["id"] in names for e in leaving)
    posts = [e for e in events if e["op"] == "publish"]
    assert all("keywords" not in e and " in " in e["text"] for e in posts)


@by_name
def test_nothing_asked_for_is_an_empty_log(name: str, tmp_path: Path) -> None:
    for suffix in SUFFIXES:
        assert generate(name, 0, 0, 1, tmp_path / f"e.{suffix}") == 0
    assert (tmp_path / "e.jsonl").read_bytes() == b""
    assert pq.read_table(tmp_path / "e.parquet").num_rows == 0


@pytest.mark.parametrize(
    ("name", "objects", "path", "reason"),
    [
        ("nowhere", 1, "e.jsonl", "choose one of: place"),
        ("place", -1, "e.jsonl", "negative"),
        ("place", 1, "e.csv", "must end in"),
    ],
)
def test_usage_errors_say_what_to_do(
    name: str, objects: int, path: str, reason: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=reason):
        generate(name, objects, 1, 1, tmp_path / path)
    assert not (tmp_path / path).exists()
