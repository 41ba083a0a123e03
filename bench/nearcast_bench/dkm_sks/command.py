"""`nearcast bench dkm-sks`: its flags, and what runs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from nearcast.model.arguments import positive
from nearcast.plotting import need_matplotlib
from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.common.flags import PLAIN, Flags, given
from nearcast_bench.dkm_sks import experiment, full, spark
from nearcast_bench.dkm_sks.deal import chosen
from nearcast_bench.dkm_sks.load import Setting
from nearcast_bench.dkm_sks.plots import plots

_FULL, _SPARK = "full", "spark"
_FULL_SETTING = Setting(subscriptions=10_000_000, objects=1_000_000, workers=2)


def add_flags(parser: argparse.ArgumentParser) -> Flags:
    """Declare the flags of this experiment."""
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument(
        "--full", action="store_true", help="the paper's 10,000,000 subscriptions on two workers"
    )
    modes.add_argument("--spark", action="store_true", help="through the whole pipeline")
    flags = Flags(parser, (_FULL, _SPARK))
    flags.add("--workload", choices=["place", "twitter"], default="place", help="default: place")
    flags.add("--subscriptions", type=positive, metavar="N", help="standing")
    flags.add("--objects", type=positive, metavar="N", help="of O_init, or of the log")
    flags.seed()
    bare = (PLAIN, _FULL)
    flags.add("--data", metavar="FILE", help="Parquet of places", modes=bare)
    flags.add("--k-max", type=positive, metavar="K", help="largest k", modes=bare)
    flags.add("--ticks", type=positive, metavar="N", help="time-stamps", modes=bare)
    flags.add("--workers", type=positive, metavar="M", help="default: 20", modes=(PLAIN,))
    flags.add(
        "--series",
        choices=["m", "subscriptions", "k", "all"],
        help="figures 8 to 10 (by m, |S|, k_max) in place of figure 7",
        modes=(PLAIN,),
    )
    flags.add(
        "--algorithm",
        action="append",
        default=[],
        metavar="NAME",
        help="only this one; may be repeated",
        modes=(PLAIN,),
    )
    flags.add("--batch-events", type=positive, metavar="N", help="a batch", modes=(_SPARK,))
    flags.add(
        "--keep",
        metavar="DIR",
        help="a folder for plots; with --spark for logs and results",
        modes=(PLAIN, _SPARK),
    )
    return flags


def run(args: argparse.Namespace, say: Say) -> Iterator[Figure]:
    """The command, then the figures of the chosen mode."""
    if args.mode == _FULL:
        figures = full.run_full(setting_of(args), args.data, say)
    elif args.mode == _SPARK:
        figures = _through_spark(args, say)
    else:
        figures = _plain(args, say)
    yield {"command": args.command}
    yield from figures


def setting_of(args: argparse.Namespace) -> Setting:
    """The setting that the flags describe, without Spark."""
    values = given(
        args,
        workload="workload",
        subscriptions="subscriptions",
        objects="objects",
        workers="workers",
        k_max="k_max",
        ticks="ticks",
        seed="seed",
    )
    return replace(_FULL_SETTING if args.full else Setting(), **values)


def _plain(args: argparse.Namespace, say: Say) -> Iterator[Figure]:
    algorithms, measured = chosen(args.algorithm), []
    if args.keep:
        need_matplotlib()  # before the work, not after it
    for figure in experiment.run(setting_of(args), args.data, algorithms, args.series, say):
        yield figure
        measured.append(figure)
    if args.keep:
        for path in plots(measured, Path(args.keep)):
            say(f"drawn: {path}")


def _through_spark(args: argparse.Namespace, say: Say) -> Iterator[Figure]:
    return spark.run_spark(
        args.workload,
        args.subscriptions or 1_000_000,
        args.objects or 200_000,
        args.seed,
        args.batch_events or 50_000,
        args.keep,
        say,
    )
