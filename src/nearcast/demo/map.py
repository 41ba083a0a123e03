"""The map that a demo leaves: one HTML file that needs nothing else."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from nearcast.demo.city import City
from nearcast.demo.notes import all_notes, evenly
from nearcast.workload import CITY
from nearcast.workload.corpora import DISTRICTS

# More than this is not readable; the page says how many there are.
POSTS = 6_000
RANGES = 60
NEAREST = 120
MATCHES_EACH = 60

Json = dict[str, Any]


@dataclass(slots=True)
class Results:
    """What was reported to every subscription, from the notification files."""

    matches: dict[str, list[str]] = field(default_factory=dict)
    """Of range subscriptions: the objects, in order."""
    nearest: dict[str, dict[str, float]] = field(default_factory=dict)
    """Of knn subscriptions: objects and distances in metres, as they stood at the end."""
    reported: dict[str, int] = field(default_factory=dict)
    """Notifications of each subscription."""
    heard: set[str] = field(default_factory=set)
    """Objects that were reported to somebody."""

    @staticmethod
    def read(folder: Path) -> Results:
        """From all notification files of a run."""
        found = Results()
        for note in all_notes(folder):
            if not note.object:  # words of a district, or an answer: nothing that is drawn
                continue
            found.reported[note.id] = found.reported.get(note.id, 0) + 1
            found.heard.add(note.object)
            if note.event == "match":
                found.matches.setdefault(note.id, []).append(note.object)
            elif note.event == "enter":
                found.nearest.setdefault(note.id, {})[note.object] = note.distance or 0.0
            else:
                found.nearest.get(note.id, {}).pop(note.object, None)
        return found


def write_map(path: Path, city: City, notifications: Path, summary: Json) -> None:
    """Draw the city with who listens where, and what they heard."""
    data = map_data(city, Results.read(notifications), summary)
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    # Inside a script element only this could end it early.
    text = text.replace("<", "\\u003c")
    page = files("nearcast.demo").joinpath("map.html").read_text(encoding="utf-8")
    path.write_text(page.replace("__DATA__", text), encoding="utf-8")


def map_data(city: City, results: Results, summary: Json) -> Json:
    """Everything that the page shows; where it is a sample, also how many there are."""
    end = max((p["time"] for p in city.posts.values()), default=0)
    start = min((p["time"] for p in city.posts.values()), default=0)
    standing = [s for s in city.subscriptions.values() if _stands(s, city, end)]
    shown = _shown(standing, results)
    wanted = {name for _, names in shown for name in names}
    others = [name for name in city.posts if name not in wanted]
    names = [*evenly(others, max(POSTS - len(wanted), 0)), *(n for n in city.posts if n in wanted)]
    number = {name: i for i, name in enumerate(names)}
    reported = summary["notifications"]
    return {
        "bounds": CITY.bounds,
        "districts": [[name, *at] for name, at in DISTRICTS.items()],
        "posts": [_post(city.posts[n], n in results.heard, start) for n in names],
        "subscriptions": [
            _subscription(s, [number[n] for n in got if n in number], results) for s, got in shown
        ],
        "counts": {
            "posts": summary["events"].get("publish", 0),
            "heard": len(results.heard),
            "subscriptions": summary["events"].get("subscribe", 0),
            "standing": len(standing),
            "notifications": reported["total"],
            "match": reported.get("range", {}).get("match", 0),
            "enter": reported.get("knn", {}).get("enter", 0),
            "leave": reported.get("knn", {}).get("leave", 0),
            "seconds": round((end - start) / 1000),
            "shards": len(summary["shards"]),
        },
    }


def _stands(subscription: Json, city: City, now_ms: int) -> bool:
    gone = subscription["id"] in city.ended
    return not gone and subscription.get("expires", now_ms + 1) > now_ms


def _shown(standing: list[Json], results: Results) -> list[tuple[Json, list[str]]]:
    """The subscriptions to draw, each with the objects to draw for it."""
    ranges = [s for s in standing if results.matches.get(s["id"])]
    nearest = [s for s in standing if results.nearest.get(s["id"])]
    shown = [(s, results.matches[s["id"]][-MATCHES_EACH:]) for s in evenly(ranges, RANGES)]
    for s in evenly(nearest, NEAREST):
        found = results.nearest[s["id"]]
        shown.append((s, sorted(found, key=found.__getitem__)))
    return shown


def _post(post: Json, heard: bool, start_ms: int) -> list[Any]:
    """[x, y, text, seconds after the first post, whether somebody heard of it]."""
    x, y = post["at"]
    return [x, y, post["text"], round((post["time"] - start_ms) / 1000, 1), int(heard)]


def _subscription(subscription: Json, objects: list[int], results: Results) -> Json:
    query, name = subscription["query"], subscription["id"]
    drawn: Json = {
        "id": name,
        "owner": subscription["owner"],
        "where": query.get("where", ""),
        "reported": results.reported.get(name, 0),
        "posts": objects,
    }
    if query["kind"] == "knn":
        found = results.nearest[name]
        # The circle to the k-th: with fewer than k there is none, anything would still enter.
        full = len(found) == query["k"]
        reach = max(found.values()) if full else None
        return drawn | {
            "kind": "knn",
            "at": query["at"],
            "k": query["k"],
            "have": len(found),
            "window": query.get("window"),
            "reach": reach,
        }
    region = query["region"]
    drawn |= {"kind": "range", "found": len(results.matches[name])}
    if "bbox" in region:
        return drawn | {"bbox": region["bbox"]}
    if "circle" in region:
        return drawn | {"at": region["circle"]["at"], "radius": region["circle"]["radius"]}
    return drawn | {"rings": region["coordinates"]}
