"""`nearcast bench balance`: its flags, and what runs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from nearcast.model.arguments import natural, positive
from nearcast.workload.shifting import Shifting
from nearcast_bench.balance.experiment import Setting
from nearcast_bench.balance.experiment import run as run_batches
from nearcast_bench.balance.replay import run_replay
from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.common.flags import PLAIN, Flags, given

_MINUTES = "minutes"


def add_flags(parser: argparse.ArgumentParser) -> Flags:
    """Declare the flags of this experiment."""
    flags = Flags(parser, (_MINUTES,))
    number: dict[str, Any] = {"type": positive, "metavar": "N"}
    flags.add("--minutes", **number, help="through Spark, for about so long")
    flags.add(
        "--strategy",
        action="append",
        default=[],
        metavar="NAME",
        help="only this one; may be repeated",
    )
    flags.seed()
    plain = (PLAIN,)
    flags.add("--queries", "--subscriptions", **number, help="standing", modes=plain)
    flags.add("--batches", **number, help="of each run", modes=plain)
    flags.add("--batch-events", **number, help="objects of a batch", modes=plain)
    flags.add("--phase", **number, help="batches between two jumps", modes=plain)
    flags.add(
        "--churn-events",
        type=natural,
        metavar="N",
        help="subscribes and unsubscribes of a batch",
        modes=plain,
    )
    flags.add("--keep", metavar="DIR", help="a folder for results", modes=(_MINUTES,))
    return flags


def run(args: argparse.Namespace, say: Say) -> Iterator[Figure]:
    """The figures of both modes of balance, or those of one long replay per strategy."""
    setting = setting_of(args)
    if args.mode == _MINUTES:
        yield from run_replay(setting, args.minutes, args.keep, say)
    else:
        yield from run_batches(setting, say)


def setting_of(args: argparse.Namespace) -> Setting:
    """The setting that the flags describe."""
    stream = given(
        args,
        queries="queries",
        batch="batch_events",
        phase="phase",
        churn="churn_events",
        seed="seed",
    )
    values = given(args, batches="batches")
    if args.strategy:
        values["strategies"] = tuple(args.strategy)
    return replace(Setting(), stream=replace(Shifting(), **stream), **values)
