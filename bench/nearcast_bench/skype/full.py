"""The target of one thread: a million subscriptions, arrival and expiry apart, and their bytes."""

from __future__ import annotations

from collections.abc import Iterator

from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.skype.load import Load, measure
from nearcast_bench.skype.reevaluation import shape_of
from nearcast_bench.skype.setting import Setting
from nearcast_bench.skype.source import source_of
from nearcast_bench.skype.sweeps import OWN, SKYPE

BYTES = 700
FASTER = 10.0


def run_full(setting: Setting, say: Say) -> Iterator[Figure]:
    """nearcast's own and Skype as published, on the same messages."""
    for n in range(setting.seeds):
        seed = setting.seed + n
        say(f"{setting.subscriptions:,} subscriptions, {setting.data}, seed {seed} …")
        load = Load(source_of(setting.data), shape_of(setting), seed)
        for row in measure(load, (OWN, SKYPE)):
            yield {"data": setting.data, "seed": seed, "figure": "full"} | row
