"""Dissemination: figures 11 (groups of alpha), 12 (IPT), 13 (CIQ), by `dissemination.py`."""

from __future__ import annotations

from collections.abc import Iterator

from nearcast.index.tops.igpt.index import Pruned
from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.skype.dissemination import INDEXES, Stream, measure
from nearcast_bench.skype.setting import DATA, Setting

GROUPS = (5, 10, 20, 40)


def run_dissemination(setting: Setting, say: Say) -> Iterator[Figure]:
    """Seed by seed; sizes are those of the other figures, with fewer messages."""
    for n in range(setting.seeds):
        seed = setting.seed + n
        if setting.has("11"):
            yield from _groups(setting, seed, say)
        if setting.has("12") or setting.has("13"):
            for data in DATA:
                say(f"figures 12 and 13, {data}, seed {seed} …")
                for row in measure(_stream(setting, data, seed), INDEXES):
                    yield row | {"figure": "13", "data": data, "system": row["index"]}


def _groups(setting: Setting, seed: int, say: Say) -> Iterator[Figure]:
    usual = Pruned.groups
    for data in DATA:
        for groups in GROUPS:
            say(f"figure 11, {groups} groups, {data}, seed {seed} …")
            try:
                Pruned.groups = groups
                for row in measure(_stream(setting, data, seed), (INDEXES[0], "igpt")):
                    if row["index"] == "igpt":
                        yield row | {"figure": "11", "data": data, "alpha_groups": groups}
            finally:
                Pruned.groups = usual


def _stream(setting: Setting, data: str, seed: int) -> Stream:
    """What `measure` takes: the messages before the timed ones are there to warm up."""
    timed = max(setting.messages // 10, 1)
    return Stream(
        corpus=data, subscriptions=10 * setting.subscriptions, window=setting.window,
        messages=timed, warm=max(timed // 4, 1), step=min(setting.batch, timed), k=setting.k,
        seed=seed,
    )  # fmt: skip
