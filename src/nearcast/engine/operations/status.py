"""`nearcast status`: what a run holds, live or stopped, read from its checkpoint alone."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from nearcast.engine.feed.source import Feed
from nearcast.engine.formats import check_format
from nearcast.engine.operations.in_use import runner_of
from nearcast.engine.output.reports import Reports
from nearcast.engine.output.totals import Totals
from nearcast.model.errors import NearcastError

__all__ = ["status", "table"]


def status(checkpoint: Path) -> dict[str, Any]:
    """What there is to say, as JSON values. It changes nothing, and may be called at any time."""
    settings = _settings(checkpoint)
    reports = Reports(checkpoint)
    # A live run folds records into sums meanwhile: what is gone then is read again from these.
    for attempt in range(5):
        try:
            totals, last = reports.totals(), reports.count() - 1
            latest = reports.read(last) if last >= 0 else None
            break
        except FileNotFoundError:
            if attempt == 4:
                raise
    feed = Feed(checkpoint)
    runner = runner_of(checkpoint)
    planned = len(feed) if feed.folder.is_dir() else totals.batches
    written = (reports.folder / f"{last:012d}.json").stat().st_mtime if latest else None
    shards = {r.shard: r for r in latest.reports} if latest else {}
    return {
        "checkpoint": str(checkpoint),
        "state": "live" if runner else "stopped",
        "process": runner.process if runner else None,
        "host": runner.host if runner else None,
        "metrics": (runner.metrics or None) if runner else None,
        "running_seconds": round(time.time() - runner.since, 1) if runner else None,
        "settings": settings,
        "batches": totals.batches,
        "waiting_batches": max(planned - totals.batches, 0),
        "last_batch_seconds_ago": round(time.time() - written, 1) if written else None,
        "last_batch_seconds": round(latest.seconds, 3) if latest else None,
        "events": {op: n for op, n in sorted(totals.events.items()) if op != "reject"},
        "notifications": dict(sorted(totals.notifications.items())),
        "rejects": totals.rejects,
        "rejects_by_kind": dict(sorted(totals.reject_kinds.items())),
        "moved": totals.moved,
        "shards": [_shard(totals, shard, shards.get(shard)) for shard in sorted(totals.loads)],
    }


def _settings(checkpoint: Path) -> dict[str, Any]:
    path = checkpoint / "settings.json"
    try:
        settings = json.loads(path.read_text())
    except FileNotFoundError as error:
        raise NearcastError(
            f"{checkpoint}: not a nearcast checkpoint; name the folder that the run was given as "
            "[state] checkpoint or --checkpoint"
        ) from error
    except ValueError as error:
        raise NearcastError(f"{path}: not a nearcast checkpoint ({error})") from error
    check_format(path, settings)
    names = ("space", "order", "shards", "strategies", "window", "manifests")
    return {name: settings.get(name) for name in names}


def _shard(totals: Totals, shard: int, latest: Any) -> dict[str, Any]:
    load = totals.loads[shard]
    objects = load.get("objects", 0)
    return {
        "shard": shard,
        "subscriptions": latest.subscriptions if latest else 0,
        "objects": int(objects),
        "candidates_per_object": round(load.get("examined", 0) / objects, 2) if objects else 0.0,
        "busy_seconds": round(load.get("seconds", 0), 1),
        "rebuilds": int(load.get("rebuilds", 0)),
        "state_bytes": latest.state_bytes if latest else 0,
        "arena_bytes": latest.arena_bytes if latest else 0,
    }


def table(found: dict[str, Any]) -> str:
    """The same for people."""
    lines = [*_head(found), "", *_rows(found["shards"])]
    return "\n".join(lines)


def _head(found: dict[str, Any]) -> list[str]:
    chosen = found["settings"]
    state = found["state"]
    if state == "live":
        state += f", process {found['process']} on {found['host']}"
        state += f" for {found['running_seconds']:,.0f} s"
        state += f", metrics on {found['metrics']}" if found["metrics"] else ""
    batches = f"{found['batches']:,} done, {found['waiting_batches']:,} planned and not done"
    if found["last_batch_seconds_ago"] is not None:
        batches += f"; the last {found['last_batch_seconds_ago']:,.0f} s ago, "
        batches += f"in {found['last_batch_seconds']:.3f} s"
    rows = [
        ("checkpoint", found["checkpoint"]),
        ("state", state),
        ("space", f"{chosen['space']}, order by {chosen['order']}, window {chosen['window']}"),
        ("manifests", str(chosen["manifests"])),
        ("batches", batches),
        ("events", _counts(found["events"])),
        ("notifications", _counts(found["notifications"])),
        ("rejects", f"{found['rejects']:,}" + _by(found["rejects_by_kind"])),
        ("moved", f"{found['moved']:,} copies of subscriptions"),
    ]
    return [f"{name:14}{value}" for name, value in rows]


def _counts(counts: dict[str, int]) -> str:
    total = sum(counts.values())
    return f"{total:,}" + _by(counts)


def _by(counts: dict[str, int]) -> str:
    named = ", ".join(f"{name} {n:,}" for name, n in counts.items())
    return f" ({named})" if named else ""


def _rows(shards: list[dict[str, Any]]) -> list[str]:
    """A table of shards, a line each."""
    names = [
        "shard", "subscriptions", "objects", "candidates/object", "busy s", "rebuilds", "state",
        "arena",
    ]  # fmt: skip
    rows = [
        [
            str(s["shard"]),
            f"{s['subscriptions']:,}",
            f"{s['objects']:,}",
            f"{s['candidates_per_object']:,.2f}",
            f"{s['busy_seconds']:,.1f}",
            f"{s['rebuilds']:,}",
            _size(s["state_bytes"]),
            _size(s["arena_bytes"]),
        ]
        for s in shards
    ]
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    return ["  ".join(f"{v:>{w}}" for v, w in zip(r, widths, strict=True)) for r in [names, *rows]]


def _size(size: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:,.0f} {unit}" if unit == "B" else f"{size:,.1f} {unit}"
        size /= 1024
    return f"{size:,.1f} TiB"
