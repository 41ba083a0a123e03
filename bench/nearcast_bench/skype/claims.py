"""What Skype claims of its centralised figures, judged by the points of a run alone.

A claim is held if it holds with every seed. Times are those of the processor, for small workloads
mostly what a batch costs as such; so re-evaluation is judged by counted work too: `cost` weighs it
with what each kind of it was measured to cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from nearcast_bench.common.figures import Figure
from nearcast_bench.common.shapes import by, judged, matching
from nearcast_bench.skype.full import BYTES, FASTER
from nearcast_bench.skype.reevaluation import CSKYBAND, KMAX, OWN, SKYBAND
from nearcast_bench.skype.setting import DATA
from nearcast_bench.skype.sweeps import BASELINE, SKYPE
from nearcast_bench.skype.sweeps import OWN as OWN_SYSTEM

# ns, by least squares over the policies of figure 10 (docs/papers/skype.md)
CANDIDATE, TOUCHED, COMPARED, LOOKED_AT = 350.0, 0.7, 1.0, 150.0
_WHOLE = {"15": "keywords", "16": "k", "17": "subscriptions", "18": "window", "20": "k"}


def cost(p: Figure) -> float:
    """Counted work of a message, in microseconds."""
    return round(upkeep(p) + CANDIDATE * float(p["candidates"]) / 1000, 3)


def upkeep(p: Figure) -> float:
    """Of it, what buffers and searches cost, without dissemination: the paper's cost model.

    The paper finds dominated entries by counters, in the pass over a buffer that is counted anyway.
    We have none and compare pairs; `compared` says how many, and is no part of this.
    """
    return round(float(TOUCHED * p["touched"] + LOOKED_AT * p["searched"]) / 1000, 3)


def spent(p: Figure) -> float:
    """The paper's processing time: of a message that arrives and of one that expires, in µs."""
    return round(float(p["arrival_us"] + p["expiry_us"]), 2)


def with_pairs(p: Figure) -> float:
    """All counted work with the pairs that we compare."""
    return round(cost(p) + COMPARED * float(p["compared"]) / 1000, 3)


def claims(reported: list[Figure]) -> Iterator[Figure]:
    """All claims that the points of a run can decide."""
    for judge in (_tuning, _data, _sweeps, _zipf, _walk, _full):
        yield from judge(reported)


def _tuning(reported: list[Figure]) -> Iterator[Figure]:
    kmax, parts = matching(reported, figure="10(a)"), matching(reported, figure="10(b)")
    both = [*kmax, *parts, *matching(reported, figure="10")]
    if not kmax or not parts:
        return

    def lines(p: list[Figure], key: str, value: str) -> dict[Any, Any]:
        return by([q for q in p if key in q], key, value)

    yield judged("10(a)", "a small kmax is filled again most often, a large one least", kmax,
                  lambda p: _falls(lines(p, "kmax", "reevaluations")),
                  lambda p: lines(p, "kmax", "reevaluations"))  # fmt: skip
    yield judged("10(a)", "buffers grow with kmax", kmax,
                  lambda p: _rises(lines(p, "kmax", "buffer")),
                  lambda p: lines(p, "kmax", "buffer"))  # fmt: skip
    yield judged("10(b)", "a smaller part of the k-th score makes larger buffers", parts,
                  lambda p: _falls(lines(p, "part", "buffer")),
                  lambda p: lines(p, "part", "buffer"))  # fmt: skip
    yield judged("10(b)", "with 1.0 skyband is filled again most often", parts,
                  lambda p: _falls({-k: v for k, v in lines(p, "part", "reevaluations").items()}),
                  lambda p: lines(p, "part", "reevaluations"))  # fmt: skip

    def least(p: list[Figure]) -> dict[str, float]:
        return {o: min(cost(q) for q in p if q["policy"] == o) for o in (CSKYBAND, SKYBAND, KMAX)}

    yield judged("10(a)", "cSkyband costs less than every kmax, by counted work", both,
                  lambda p: least(p)[CSKYBAND] <= least(p)[KMAX], least)  # fmt: skip
    yield judged("10(b)", "cSkyband costs less than every skyband, by counted work", both,
                  lambda p: least(p)[CSKYBAND] <= least(p)[SKYBAND], least)  # fmt: skip


def _data(reported: list[Figure]) -> Iterator[Figure]:
    for data in DATA:
        points = matching(reported, figure="14", data=data)
        if points:
            yield from _on(data, points)


def _on(data: str, points: list[Figure]) -> Iterator[Figure]:
    """Figure 14 and table 4 on one data set."""

    def of(value: Callable[[Figure], float]) -> Callable[[list[Figure]], dict[str, float]]:
        return lambda p: {q["policy"]: value(q) for q in p}

    measures: tuple[tuple[str, Callable[[Figure], float]], ...] = (
        ("by all counted work", cost),
        ("with the pairs that are compared here", with_pairs),
        ("by upkeep and searches", upkeep),
        ("by time at expiry", lambda q: float(q["expiry_us"])),
    )
    for text, value in measures:
        found = of(value)
        yield judged("14", f"cSkyband costs less than skyband and kmax on {data}, {text}", points,
                      _cheapest(found), found)  # fmt: skip
    sizes, costs = of(lambda q: float(q["buffer"])), of(with_pairs)
    yield judged("table 4", f"cSkyband has smaller buffers than skyband and kmax on {data}",
                  points, _cheapest(sizes), sizes)  # fmt: skip
    yield judged("own", f"nearcast's roots cost at most what cSkyband does on {data}, by counted "
                  "work", points, lambda p: costs(p)[OWN] <= costs(p)[CSKYBAND], costs)  # fmt: skip


def _cheapest(found: Callable[[list[Figure]], dict[str, float]]) -> Callable[[list[Figure]], bool]:
    """Whether cSkyband has the least of what the paper compares."""
    return lambda p: found(p)[CSKYBAND] < min(found(p)[SKYBAND], found(p)[KMAX])


def _rises(line: dict[float, float]) -> bool:
    values = [v for _, v in sorted(line.items())]
    return values[-1] > values[0] and all(b >= a for a, b in pairwise(values))


def _falls(line: dict[float, float]) -> bool:
    return _rises({-x: y for x, y in line.items()})


def _sweeps(reported: list[Figure]) -> Iterator[Figure]:
    for figure, x in _WHOLE.items():
        points = matching(reported, figure=figure)
        if points:
            yield from _sweep(figure, x, points)


def _sweep(figure: str, x: str, points: list[Figure]) -> Iterator[Figure]:
    """Whole systems in one figure."""

    def line(p: list[Figure], system: str, y: str = "") -> dict[Any, Any]:
        return {q[x]: q[y] if y else spent(q) for q in matching(p, system=system)}

    def faster(one: str, other: str) -> Callable[[list[Figure]], bool]:
        return lambda p: all(v < line(p, other)[at] for at, v in line(p, one).items())

    yield judged(figure, "Skype is faster than CIQ-kmax", points, faster(SKYPE, BASELINE),
                  lambda p: {s: line(p, s) for s in (SKYPE, BASELINE)})  # fmt: skip
    yield judged(figure, "nearcast's own is faster than Skype", points, faster(OWN_SYSTEM, SKYPE),
                  lambda p: line(p, OWN_SYSTEM))  # fmt: skip
    if figure in ("15", "16", "17"):
        yield judged(figure, f"an arrival has more candidates with more {x}", points,
                      lambda p: _rises(line(p, SKYPE, "candidates")),
                      lambda p: line(p, SKYPE, "candidates"))  # fmt: skip
    if figure == "18":
        yield judged(figure, "in a larger window fewer buffers take an arrival", points,
                      lambda p: _falls(line(p, SKYPE, "taken")),
                      lambda p: line(p, SKYPE, "taken"))  # fmt: skip


def _zipf(reported: list[Figure]) -> Iterator[Figure]:
    points = matching(reported, figure="19")
    if points:

        def found(p: list[Figure]) -> dict[str, float]:
            return {q["words"]: spent(q) for q in matching(p, system=SKYPE)}

        yield judged("19", "with words by a Zipf law the time is about the same (within 2 times)",
                      points, lambda p: max(found(p).values()) <= 2 * min(found(p).values()),
                      found)  # fmt: skip


def _walk(reported: list[Figure]) -> Iterator[Figure]:
    points = matching(reported, figure="walk")
    if points:

        def both(p: list[Figure]) -> dict[int, tuple[float, float]]:
            return {q["depth"]: (q["expected"], q["reevaluations"]) for q in p}

        def within(p: list[Figure]) -> bool:
            return all(a / 2 <= b <= 2 * a for a, b in both(p).values())

        yield judged("equation 12", "as many re-evaluations as expected, within 2 times "
                      "(expected, counted by depth)", points, within, both)  # fmt: skip


def _full(reported: list[Figure]) -> Iterator[Figure]:
    points = matching(reported, figure="full")
    if not points:
        return

    def of(p: list[Figure], system: str, y: str) -> float:
        return float(matching(p, system=system)[0][y])

    yield judged("full", f"at least {FASTER} times as fast as Skype, by time", points,
                  lambda p: of(p, SKYPE, "all_us") >= FASTER * of(p, OWN_SYSTEM, "all_us"),
                  lambda p: {s: of(p, s, "all_us") for s in (OWN_SYSTEM, SKYPE)})  # fmt: skip
    yield judged("full", f"at most {BYTES} bytes a subscription with its buffer", points,
                  lambda p: of(p, OWN_SYSTEM, "bytes") <= BYTES,
                  lambda p: of(p, OWN_SYSTEM, "bytes"))  # fmt: skip
