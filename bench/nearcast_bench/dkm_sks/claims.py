"""What the paper on DkM-SKS claims of its figures, as shapes: each held or not.

Where a claim is about algorithms that were not measured, it is not reported at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from nearcast_bench.common.figures import Figure
from nearcast_bench.dkm_sks.paper import AXES, FIRST

_OTHERS = ("ps2stream", "kop", "sop")
_OURS = "dkm-sks+pyramid"
_MUCH = 1.25  # a median that grows by less from the first half of the ticks to the second: steady
_LINEAR = (0.5, 1.5)  # exponent of growth that passes for linear
_SLIGHT = 2.0  # growth of the update time over five times the k: less is "slightly"
_BALANCE = 0.1  # of the update time: what nearcast wants


def claims(reported: list[Figure]) -> Iterator[Figure]:
    """All that the figures measured can hold or not."""
    for workload in dict.fromkeys(p["workload"] for p in reported):
        mine = [p for p in reported if p["workload"] == workload]
        first = {p["algorithm"]: p for p in mine if p["figure"] == FIRST}
        for claim in (*_first_claims(first), *_our_claims(first), *_series_claims(mine)):
            yield {**claim, "workload": workload}


def _claim(text: str, held: Any, **more: Any) -> Figure:
    return {"claim": text, "held": bool(held), **more}


def _first_claims(by: dict[str, Figure]) -> Iterator[Figure]:
    """Tables 2 and 3, figure 7."""
    dkm, others = by.get("dkm-sks"), [by[a] for a in _OTHERS if a in by]
    if dkm and others:
        ratios = {o["algorithm"]: round(o["update_ms"] / dkm["update_ms"], 2) for o in others}
        least = min(ratios.values())
        yield _claim("DkM-SKS has the least update time of the four", least > 1, times=ratios)
        yield _claim(
            "DkM-SKS is more than 10 times faster than the others", least > 10, times=ratios
        )
        yield _claim(
            "DkM-SKS has the best load balance of the four",
            all(dkm["load_balance_ms"] < o["load_balance_ms"] for o in others),
            ms={p["algorithm"]: p["load_balance_ms"] for p in (dkm, *others)},
        )
    if dkm:
        drift = _drift(dkm)
        yield _claim("DkM-SKS's update time does not grow over time", drift < _MUCH, drift=drift)
        yield _claim(
            "kNN update is most of the update time of DkM-SKS",
            dkm["knn_ms"] > dkm["insert_ms"] + dkm["delete_ms"],
        )
        yield _claim(
            "deletion is trivial: less than a twentieth of the update time of DkM-SKS",
            dkm["delete_ms"] < dkm["update_ms"] / 20,
            ms=dkm["delete_ms"],
        )
    if dkm and "kop" in by:
        yield _claim(
            "insertion takes DkM-SKS longer than KOP (equation 7)",
            dkm["insert_ms"] > by["kop"]["insert_ms"],
            ms=[dkm["insert_ms"], by["kop"]["insert_ms"]],
        )
    if "sop" in by:
        drift = _drift(by["sop"])
        yield _claim("SOP's update time grows over time", drift > 1.0, drift=drift)
    if "sop" in by and "kop" in by:
        yield _claim(
            "KOP's load balance is better than SOP's",
            by["kop"]["load_balance_ms"] < by["sop"]["load_balance_ms"],
        )
    if "ps2stream" in by:
        p = by["ps2stream"]
        share = p["load_balance_ms"] / p["update_ms"]
        yield _claim(
            "PS2Stream's load is on few workers: load balance over half of its update time",
            share > 0.5,
            share=round(share, 3),
        )


def _drift(p: Figure) -> float:
    """The median of the later half of the ticks, in terms of that of the earlier half."""
    ticks = p["update_ms_by_tick"]
    half = max(len(ticks) // 2, 1)
    later = ticks[half:] or ticks
    return round(float(np.median(later) / np.median(ticks[:half])), 3)


def _our_claims(by: dict[str, Figure]) -> Iterator[Figure]:
    """What nearcast wants of its own index."""
    ours = by.get(_OURS)
    if ours is None:
        return
    if "dkm-sks" in by:
        ratio = by["dkm-sks"]["knn_ms"] / ours["knn_ms"]
        yield _claim(
            "nearcast's index beats the paper's grid of inverted files",
            ratio > 1,
            ratio=round(ratio, 2),
        )
    yield _claim(
        "candidates examined per change at most 8 (nearcast's index)",
        ours["examined_per_change"] <= 8,
        value=ours["examined_per_change"],
    )
    for key, of in (
        ("load_balance_ms", "of single ticks"),
        ("load_balance_lasting_ms", "of each worker's median tick"),
    ):
        share = ours[key] / ours["update_ms"]
        yield _claim(
            f"load balance {of} at most 10% of update time (nearcast's index)",
            share <= _BALANCE,
            share=round(share, 3),
        )


def _series_claims(reported: list[Figure]) -> Iterator[Figure]:
    """Figures 8 to 10."""

    def line(what: str, algorithm: str, key: str) -> list[float]:
        some = [p for p in reported if (p["figure"], p["algorithm"]) == (what, algorithm)]
        return [p[key] for p in sorted(some, key=lambda p: float(p[AXES[what]]))]

    for algorithm in dict.fromkeys(p["algorithm"] for p in reported):
        update, balance = (
            line("figure 8", algorithm, key) for key in ("update_ms", "load_balance_ms")
        )
        if len(update) > 1:
            yield _claim(
                f"{algorithm}: update time falls as workers are added",
                update[-1] < update[0],
                ms=update,
            )
            growth = max(balance) / max(min(balance), 1e-3)
            if algorithm == "sop":
                yield _claim(
                    "sop: load balance falls as workers are added",
                    balance[-1] < balance[0],
                    ms=balance,
                )
            elif algorithm in ("kop", "dkm-sks", _OURS):
                yield _claim(
                    f"{algorithm}: load balance does not depend on m much (factor below 3)",
                    growth < 3,
                    ms=balance,
                )
        update, size = (line("figure 9", algorithm, key) for key in ("update_ms", "subscriptions"))
        if len(update) > 1 and algorithm in ("kop", "dkm-sks", _OURS):
            exponent = _exponent(size, update)
            yield _claim(
                f"{algorithm}: update time grows linearly with |S|",
                _LINEAR[0] <= exponent <= _LINEAR[1],
                exponent=exponent,
                ms=update,
            )
        update = line("figure 10", algorithm, "update_ms")
        if len(update) > 1 and algorithm in ("kop", "dkm-sks", _OURS):
            yield _claim(
                f"{algorithm}: update time grows slightly with k_max",
                1.0 < update[-1] / update[0] < _SLIGHT,
                ms=update,
            )
    for what, axis in AXES.items():
        dkm, kop = (line(what, a, "update_ms") for a in ("dkm-sks", "kop"))
        if dkm and kop:
            yield _claim(
                f"dkm-sks beats kop at every {axis}",
                all(d < k for d, k in zip(dkm, kop, strict=True)),
            )


def _exponent(x: list[float], y: list[float]) -> float:
    """The slope of log y over log x."""
    return round(float(np.polyfit(np.log(x), np.log(y), 1)[0]), 2)
