"""The map: what it holds is what the files say, and it needs nothing but itself."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from nearcast.demo import map as city_map
from nearcast.demo.city import City
from nearcast.demo.map import Results, map_data, write_map

NOW = 1_800_000_000_000
SUMMARY: dict[str, Any] = {
    "events": {"publish": 40, "subscribe": 30, "total": 70},
    "notifications": {"range": {"match": 2}, "knn": {"enter": 3, "leave": 1}, "total": 6},
    "shards": [{}, {}],
}


@pytest.fixture
def city() -> City:
    city = City(1, 30.0)
    city.opening(NOW, 30)
    city.moment(NOW, NOW + 1_000, 40, 0)
    return city


@pytest.fixture
def folder(tmp_path: Path, city: City) -> Path:
    standing = [s for s in city.subscriptions.values() if "expires" not in s]
    near = next(s for s in standing if s["query"]["kind"] == "knn" and s["query"]["k"] > 1)
    area = next(s for s in standing if s["query"]["kind"] == "range")
    near["query"]["k"] = 2
    a, b, c, *_ = city.posts
    notes = [
        {"id": area["id"], "event": "match", "object": a, "time": 1},
        {"id": area["id"], "event": "match", "object": b, "time": 2},
        {"id": near["id"], "event": "enter", "object": a, "time": 1, "distance": 300.0},
        {"id": near["id"], "event": "enter", "object": b, "time": 2, "distance": 90.0},
        {"id": near["id"], "event": "enter", "object": c, "time": 3, "distance": 120.0},
        {"id": near["id"], "event": "leave", "object": a, "time": 3},
    ]
    folder = tmp_path / "notifications"
    folder.mkdir()
    (folder / "b00000000-s0000.jsonl").write_text("".join(json.dumps(n) + "\n" for n in notes))
    return folder


def test_results_are_those_at_the_end(folder: Path) -> None:
    results = Results.read(folder)
    assert [len(m) for m in results.matches.values()] == [2]
    assert [sorted(n.values()) for n in results.nearest.values()] == [[90.0, 120.0]]
    assert sorted(results.reported.values()) == [2, 4]
    assert len(results.heard) == 3


def test_the_ring_goes_to_the_kth(city: City, folder: Path) -> None:
    data = map_data(city, Results.read(folder), SUMMARY)
    area, near = data["subscriptions"]
    assert (near["kind"], near["reach"], near["have"]) == ("knn", 120.0, 2)
    texts = [data["posts"][i][2] for i in near["posts"]]
    names = list(city.posts)
    assert texts == [city.posts[names[1]]["text"], city.posts[names[2]]["text"]]
    assert (area["kind"], area["found"], len(area["posts"])) == ("range", 2, 2)


def test_no_ring_while_fewer_than_k(city: City, folder: Path) -> None:
    results = Results.read(folder)
    next(iter(results.nearest.values())).popitem()
    near = map_data(city, results, SUMMARY)["subscriptions"][1]
    assert (near["reach"], near["have"]) == (None, 1)


def test_a_sample_says_of_how_many(
    city: City, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(city_map, "POSTS", 10)
    data = map_data(city, Results.read(folder), SUMMARY)
    assert len(data["posts"]) == 10
    assert data["counts"]["posts"] == 40
    assert data["counts"]["notifications"] == 6


def test_who_has_left_is_not_drawn(city: City, folder: Path) -> None:
    results = Results.read(folder)
    city.ended.update(results.matches)
    data = map_data(city, results, SUMMARY)
    assert [s["kind"] for s in data["subscriptions"]] == ["knn"]


def test_the_page_needs_nothing_else(tmp_path: Path, city: City, folder: Path) -> None:
    first = next(iter(city.posts.values()))
    first["text"] = "</script><script>alert(1)</script>"
    write_map(tmp_path / "map.html", city, folder, SUMMARY)
    page = (tmp_path / "map.html").read_text(encoding="utf-8")
    assert not re.search(r"https?:|\bsrc=|@import|<link|url\(", page)
    assert "__DATA__" not in page
    assert page.count("</script>") == 2
    found = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data = json.loads(found[1])
    assert first["text"] in [p[2] for p in data["posts"]]


def test_an_empty_city_has_a_map_too(tmp_path: Path) -> None:
    empty: dict[str, Any] = {"events": {}, "notifications": {"total": 0}, "shards": []}
    write_map(tmp_path / "map.html", City(1, 30.0), tmp_path / "none", empty)
    assert (tmp_path / "map.html").exists()
