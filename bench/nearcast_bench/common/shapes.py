"""What papers claim, as shapes of figures: each held or not, with the values that say so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

from nearcast_bench.common.figures import Figure


def claim(figure: str, text: str, held: bool, **values: Any) -> Figure:
    """A claim about a figure of a paper. `vacuous=True`: there was nothing to judge it by."""
    return {"claim": text, "figure": figure, "held": bool(held), **values}


def matching(reported: Iterable[Figure], **wanted: Any) -> list[Figure]:
    """The points (claims are none) that have all these values."""
    return [
        t for t in reported if "claim" not in t and all(t.get(k) == v for k, v in wanted.items())
    ]


def by(reported: Sequence[Figure], key: str, value: str) -> dict[Any, Any]:
    """{point[key]: point[value]}, the last of each key."""
    return {t[key]: t[value] for t in reported}


def rising(values: Sequence[float]) -> bool:
    """Does each value exceed the one before?"""
    return all(b > a for a, b in pairwise(values))


def stable(values: Sequence[float], within: float) -> bool:
    """Is the largest at most `within` times the least?"""
    return max(values) <= within * min(values)


def judged(
    figure: str,
    text: str,
    points: list[Figure],
    holds: Callable[[list[Figure]], bool],
    value: Callable[[list[Figure]], Any],
) -> Figure:
    """A claim that must hold with every seed; `value`: what is shown of each seed."""
    seeds = sorted({p["seed"] for p in points})
    parts = [matching(points, seed=s) for s in seeds]
    values = {s: value(p) for s, p in zip(seeds, parts, strict=True)}
    return claim(figure, text, all(map(holds, parts)), seeds=len(seeds), values=values)


def claims_table(reported: Iterable[Figure]) -> str:
    """The claims as a table for people."""
    rows = ["| figure | claim | held | values |", "|---|---|---|---|"]
    for t in reported:
        if "claim" in t:
            hidden = ("claim", "figure", "held", "command", "vacuous")
            known = {k: v for k, v in t.items() if k not in hidden}
            values = "; ".join(f"{k} {_plain(v)}" for k, v in known.items())
            rows.append(f"| {t['figure']} | {t['claim']} | {_word(t)} | {values} |")
    return "\n".join([*rows, ""])


def _word(reported: Figure) -> str:
    if reported.get("vacuous"):
        return "says nothing here"
    return "held" if reported["held"] else "**not held**"


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k} {_plain(v)}" for k, v in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_plain(v) for v in value)
    return f"{value:,}" if isinstance(value, int) else str(value)
