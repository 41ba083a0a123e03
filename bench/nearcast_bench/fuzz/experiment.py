"""`nearcast bench fuzz`: so many fuzzed lines, each of which must be accepted or refused.

What decoding (`wire.jsonl`) makes of a line must be what the oracle's own reading of events says
(`testing.reading`), which shares no code with it. Every refusal has a reason of one line. Two sorts
of lines are only counted: those whose meaning JSON leaves open, and those that are not UTF-8 (bytes
of a field that nobody reads are not looked at).
"""

from __future__ import annotations

import json
import math
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from nearcast.kinds import KINDS
from nearcast.model.errors import Invalid, NearcastError
from nearcast.model.space import Space
from nearcast.testing.reading import read_event
from nearcast.wire.decode import Decoded
from nearcast.wire.jsonl import decode_jsonl, decode_values
from nearcast.wire.kind import needs_of
from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.fuzz.lines import fuzzed

PIECE = 1000  # lines decoded at a time
_SHOWN = 10  # lines that were judged differently, in the figure


@dataclass(slots=True)
class Tally:
    """What became of the lines."""

    lines: int = 0
    blank: int = 0
    accepted: int = 0
    rejected: int = 0
    fields: Counter[str] = field(default_factory=Counter)  # what was wrong
    differ: list[str] = field(default_factory=list)


def run_fuzz(lines: int, seed: int, spark: bool, say: Say) -> Iterator[Figure]:
    """The figure, and the claim."""
    tally, make = Tally(), fuzzed(seed)
    kept: list[bytes] = []
    while tally.lines < lines:
        piece = [make() for _ in range(min(PIECE, lines - tally.lines))]
        _check(piece, (Space.GEOGRAPHIC, Space.PLANAR)[tally.lines // PIECE % 2], tally)
        if spark:
            kept += piece
        if tally.lines % 100_000 == 0:
            say(f"{tally.lines:,} lines, {tally.rejected:,} refused, {len(tally.differ)} differ")
    yield {
        "figure": "fuzz",
        "lines": tally.lines,
        "seed": seed,
        "blank": tally.blank,
        "accepted": tally.accepted,
        "rejected": tally.rejected,
        "by_field": dict(tally.fields.most_common(12)),
        "judged_differently": len(tally.differ),
        "such_as": tally.differ[:_SHOWN],
    }
    if spark:
        say("the same through Spark …")
        yield _through_spark(kept)
    yield {
        "claim": "each line accepted or refused, as the oracle judges",
        "value": len(tally.differ),
        "target": 0,
        "held": not tally.differ,
    }


def _check(piece: list[bytes], space: Space, tally: Tally) -> None:
    """Decode some lines, all in one and one by one; raise if one is lost or has no reason."""
    needs = needs_of(KINDS)
    whole = decode_jsonl(b"\n".join(piece) + b"\n", space, KINDS, file="f", needs=needs)
    single = decode_values(piece, space, KINDS, file="f", needs=needs)
    blank = sum(not line.strip() for line in piece)
    refused = _refused(whole, len(piece))
    if _refused(single, len(piece)) != refused:
        raise NearcastError("bench: lines one by one are judged otherwise than in one go")
    accepted = _accepted(whole)
    if accepted != _accepted(single) or accepted + len(refused) + blank != len(piece):
        raise NearcastError(
            f"bench: {len(piece)} lines, {blank} blank, {accepted} accepted, {len(refused)} refused"
        )
    for n, line in enumerate(piece):
        if not line.strip():
            continue
        try:
            text = line.decode()
            if _ambiguous(text):
                continue
            right = read_event(text, space, KINDS) is not None
        except UnicodeDecodeError:
            continue
        except Invalid:
            right = False
        if right == (n + 1 in refused):
            why = refused.get(n + 1, "accepted")
            tally.differ.append(f"{space}: {line[:300].decode('utf-8', 'replace')}: {why}")
    tally.lines += len(piece)
    tally.blank += blank
    tally.accepted += accepted
    tally.rejected += len(refused)
    tally.fields.update(reason.partition(":")[0][:30] for reason in refused.values())


def _ambiguous(text: str) -> bool:
    """Whether JSON leaves open what it means: a name twice in an object, a number past float64."""
    found = False

    def look(pairs: list[tuple[str, object]]) -> None:
        nonlocal found
        found |= len(dict(pairs)) < len(pairs)

    def number(digits: str) -> float:
        nonlocal found
        found |= math.isinf(float(digits))
        return 0.0

    with suppress(ValueError, RecursionError):
        json.loads(text, object_pairs_hook=look, parse_float=number)
    return found


def _accepted(decoded: Decoded) -> int:
    """Events in the tables."""
    subscribes = sum(t.num_rows for t in decoded.subscribes.values())
    asks = sum(t.num_rows for t in decoded.asks.values())
    return int(decoded.objects.num_rows + subscribes + decoded.ends.num_rows + asks)


def _refused(decoded: Decoded, lines: int) -> dict[int, str]:
    """Reasons by line; raises if one is missing, or not one line."""
    found: dict[int, str] = {}
    for row in decoded.rejects.to_pylist():
        line, reason = row["line"], row["reason"]
        if line in found or not 1 <= line <= lines or not reason.strip() or "\n" in reason:
            raise NearcastError(f"bench: line {line} is refused with {reason!r}")
        found[line] = reason
    return found


def _through_spark(lines: list[bytes]) -> Figure:
    """A replay of the lines: what it read, and that every reject has its own line.

    Without kinds that report at moments of time: times reach from -2^63 to 2^63 here, and the
    contract has every moment between them reported.
    """
    from nearcast.engine import Engine

    with tempfile.TemporaryDirectory(prefix="nearcast-fuzz-") as folder:
        log = Path(folder, "fuzz.jsonl")
        log.write_bytes(b"\n".join(lines) + b"\n")
        out = Path(folder, "out")
        kinds = tuple(name for name, kind in KINDS.items() if not kind.after_objects)
        engine = Engine(master="local[2]", quiet=True, retain="all", kinds=kinds)
        summary = engine.replay([log], out, batch_events=max(len(lines) // 4, 1))
        rejects = [
            json.loads(line)
            for path in sorted((out / "rejected").glob("*.jsonl"))
            for line in path.read_bytes().splitlines()
        ]
    blank = sum(not line.strip() for line in lines)
    total = summary["events"]["total"]
    if total + blank != len(lines) or len({r["line"] for r in rejects}) != len(rejects):
        raise NearcastError(f"bench: {len(lines)} lines, {blank} blank, {total} read by Spark")
    if summary["rejects"] != len(rejects) or not all(r["reason"] for r in rejects):
        raise NearcastError(f"bench: {summary['rejects']} rejects, {len(rejects)} written")
    return {
        "figure": "fuzz-spark",
        "lines": len(lines),
        "blank": blank,
        "read": total,
        "rejected": len(rejects),
        "notifications": summary["notifications"]["total"],
    }
