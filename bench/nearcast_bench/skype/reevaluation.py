"""Policies side by side behind one index: figures 10 and 14, table 4, equation 12."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nearcast.index.tops.policies.cost import expected_updates
from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.skype.load import Load, Shape, measure
from nearcast_bench.skype.setting import DATA, Setting
from nearcast_bench.skype.source import source_of

CSKYBAND, SKYBAND, KMAX, OWN = "cskyband", "skyband", "kmax", "roots"
COMPARED = (CSKYBAND, SKYBAND, KMAX, OWN)
TIMES = (1, 2, 3, 4, 5, 6)  # of k: kmax from 20 to 120
PARTS = (1.0, 0.95, 0.9, 0.85, 0.8)  # of the k-th score
DEPTHS = (0, 1, 2, 3)  # roots of k besides k


def shape_of(setting: Setting) -> Shape:
    """The usual workload of a setting."""
    return Shape(setting.subscriptions, setting.window, setting.messages, setting.batch, setting.k)


def run_reevaluation(setting: Setting, say: Say) -> Iterator[Figure]:
    """All figures on policies, seed by seed."""
    for n in range(setting.seeds):
        seed = setting.seed + n
        if setting.has("10"):
            yield from _tuning(setting, seed, say)
        if setting.has("14") or setting.has("table 4"):
            yield from _data(setting, seed, say)
        if setting.has("walk"):
            yield from _walk(setting, seed, say)


def _tuning(setting: Setting, seed: int, say: Say) -> Iterator[Figure]:
    """Figure 10: kmax and the part of the k-th score, with cSkyband beside them."""
    say(f"figure 10, seed {seed} …")
    load = Load(source_of(setting.data), shape_of(setting), seed)
    swept = [(f"kmax={t}", {"figure": "10(a)", "kmax": t * setting.k}) for t in TIMES]
    swept += [(f"skyband={p}", {"figure": "10(b)", "part": p}) for p in PARTS]
    swept.append((CSKYBAND, {"figure": "10"}))
    names = [f"{setting.dissemination}/{policy}" for policy, _ in swept]
    for (policy, what), row in zip(swept, measure(load, names), strict=True):
        name = policy.partition("=")[0]
        yield {"data": setting.data, "seed": seed, "policy": name} | what | row


def _data(setting: Setting, seed: int, say: Say) -> Iterator[Figure]:
    """Figure 14 and table 4: the policies as they were tuned, on each data set."""
    for data in DATA:
        say(f"figure 14, {data}, seed {seed} …")
        load = Load(source_of(data), shape_of(setting), seed)
        names = [f"{setting.dissemination}/{policy}" for policy in COMPARED]
        for policy, row in zip(COMPARED, measure(load, names), strict=True):
            yield {"data": data, "seed": seed, "figure": "14", "policy": policy} | row


def _walk(setting: Setting, seed: int, say: Say) -> Iterator[Figure]:
    """Re-evaluations by the depth of buffers, beside those that equation 12 expects.

    It is about subscriptions that have as many messages in the window as their buffer is deep, so
    these alone are counted.
    """
    say(f"equation 12, seed {seed} …")
    shape = shape_of(setting)
    load = Load(source_of(setting.data), shape, seed)
    for roots in DEPTHS:
        name = f"{setting.dissemination}/roots={roots}"
        (row,) = measure(load, [name])
        n = setting.k + int(np.ceil(roots * np.sqrt(setting.k))) + 1
        updates = float(expected_updates(setting.k, np.asarray(float(n)), shape.window))
        deep = load.with_matches(n)
        yield {
            "data": setting.data, "seed": seed, "figure": "walk", "depth": n,
            "expected": round(2 * deep / updates, 5), "subscriptions_deep": deep,
        } | row  # fmt: skip
