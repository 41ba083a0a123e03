"""The command line of experiments: their options, and who runs which."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from nearcast.model.arguments import PROG, natural, positive

_BENCHES = ["pipeline", "dkm-sks", "range-index", "ps2stream", "tornado", "balance"]


def add_options(parser: argparse.ArgumentParser) -> None:
    """All options of all experiments: they share most."""
    parser.add_argument("name", metavar="NAME", choices=_BENCHES)
    parser.add_argument("--json", action="store_true", help="JSON lines only, no word of progress")
    parser.add_argument("--objects", type=positive, default=None, metavar="N")
    parser.add_argument("--subscriptions", type=positive, default=None, metavar="N")
    parser.add_argument("--seed", type=int, default=7, metavar="S")
    parser.add_argument(
        "--workers", type=positive, default=None, metavar="M", help="dkm-sks 20, ps2stream 8, …"
    )
    parser.add_argument("--ticks", type=positive, default=10, metavar="N", help="dkm-sks")
    parser.add_argument("--k-max", type=positive, default=10, metavar="K", help="dkm-sks")
    parser.add_argument("--workload", choices=["place", "twitter"], default="place")
    parser.add_argument("--data", default=None, metavar="FILE", help="dkm-sks: Parquet of places")
    parser.add_argument(
        "--full", action="store_true", help="papers: their 10,000,000 subscriptions"
    )
    parser.add_argument("--small", action="store_true", help="ps2stream, tornado: some seconds")
    parser.add_argument(
        "--series",
        choices=["m", "subscriptions", "k", "all"],
        help="dkm-sks: figures 8 to 10 (by m, |S|, k_max) in place of figure 7",
    )
    parser.add_argument(
        "--algorithm", action="append", default=[], metavar="NAME", help="dkm-sks: this one (too)"
    )
    parser.add_argument(
        "--figures", default="", metavar="6,7,…", help="ps2stream, tornado: only these"
    )
    parser.add_argument(
        "--dispatchers", type=positive, default=None, metavar="D", help="ps2stream, tornado"
    )
    parser.add_argument(
        "--constants", action="store_true", help="ps2stream: only c1 to c4 of this machine"
    )
    parser.add_argument(
        "--spark", action="store_true", help="dkm-sks, range-index: through the whole pipeline"
    )
    parser.add_argument(
        "--keep", default=None, metavar="DIR", help="keep logs, results or plots there"
    )
    parser.add_argument("--batch-events", type=positive, default=None, metavar="N")

    parser.add_argument("--queries", type=positive, default=None, metavar="N", help="standing")
    parser.add_argument(
        "--side-max", type=float, default=0.01, metavar="S", help="range-index: longest box side"
    )
    parser.add_argument(
        "--index", action="append", default=[], metavar="NAME", help="of workers (range-index: too)"
    )
    parser.add_argument(
        "--churn",
        action="store_true",
        help="range-index: an insertion or deletion after every fifth object",
    )

    parser.add_argument(
        "--batches", type=positive, default=None, metavar="N", help="balance: of each run"
    )
    parser.add_argument(
        "--phase", type=positive, default=None, metavar="N", help="balance: batches to a jump"
    )
    parser.add_argument(
        "--strategy", action="append", default=[], metavar="NAME", help="balance: this one (too)"
    )
    parser.add_argument(
        "--churn-events", type=natural, default=0, metavar="N", help="balance: a batch"
    )
    parser.add_argument(
        "--minutes", type=positive, default=None, metavar="N", help="balance: through Spark, long"
    )


def run_bench(args: argparse.Namespace) -> int:
    """The experiment that `args` name; its figures as JSON lines."""
    if args.name == "dkm-sks":
        return _bench_dkm_sks(args)
    if args.name == "range-index":
        return _bench_range_index(args)
    if args.name in ("ps2stream", "tornado"):
        return _bench_paper(args)
    if args.name == "balance":
        return _bench_balance(args)
    from nearcast.bench.pipeline import run_pipeline

    return _print(
        run_pipeline(
            objects=args.objects or 1_000_000,
            subscriptions=args.subscriptions or 1_000_000,
            seed=args.seed,
            keep=args.keep,
            batch_events=args.batch_events,
            quiet=args.json,
        )
    )


def _print(figures: Iterable[dict[str, Any]]) -> int:
    """Each as a line as soon as it is there; the exit code."""
    for figure in figures:
        print(json.dumps(figure), flush=True)
    return 0


def _progress(args: argparse.Namespace) -> Callable[[str], None]:
    """Where an experiment tells how far it is."""

    def say(text: str) -> None:
        if not args.json:
            print(text, file=sys.stderr, flush=True)

    return say


def _bench_dkm_sks(args: argparse.Namespace) -> int:
    from nearcast.bench.dkm_deal import chosen
    from nearcast.bench.dkm_full import run_full
    from nearcast.bench.dkm_load import Setting
    from nearcast.bench.dkm_plots import plots
    from nearcast.bench.dkm_sks import run
    from nearcast.bench.dkm_spark import run_spark

    say = _progress(args)
    setting = Setting(
        workload=args.workload,
        subscriptions=args.subscriptions or (10_000_000 if args.full else 200_000),
        objects=args.objects or (1_000_000 if args.full else 100_000),
        workers=2 if args.full else args.workers or 20,
        k_max=args.k_max,
        ticks=args.ticks,
        seed=args.seed,
    )
    if args.spark:
        figures = run_spark(
            args.workload,
            args.subscriptions or 1_000_000,
            args.objects or 200_000,
            args.seed,
            args.batch_events or 50_000,
            args.keep,
            say,
        )
    elif args.full:
        figures = run_full(setting, args.data, say)
    else:
        figures = run(setting, args.data, chosen(args.algorithm), args.series, say)
    told = []
    print(json.dumps({"command": shlex.join([PROG, *args.argv])}), flush=True)
    for figure in figures:
        print(json.dumps(figure), flush=True)
        told.append(figure)
    if args.keep and not (args.full or args.spark):
        for path in plots(told, Path(args.keep)):
            say(f"drawn: {path}")
    return 0


def _bench_range_index(args: argparse.Namespace) -> int:
    from nearcast.bench import range_full, range_spark
    from nearcast.bench.range_index import run
    from nearcast.bench.range_stream import Setting

    say = _progress(args)
    if args.spark:
        usual = range_spark.Setting()
        piped = range_spark.Setting(
            queries=args.queries or args.subscriptions or usual.queries * (10 if args.full else 1),
            objects=args.objects or usual.objects,
            seed=args.seed,
            batch_events=args.batch_events or usual.batch_events,
            strategy=args.strategy[-1] if args.strategy else None,
            keep=args.keep,
        )
        return _print(range_spark.run_spark(piped, say))
    if args.full:
        whole = range_full.Setting(
            queries=args.queries or args.subscriptions or range_full.Setting().queries,
            index=args.index[-1] if args.index else range_full.Setting().index,
            router=args.strategy[-1] if args.strategy else range_full.Setting().router,
            workers=args.workers or range_full.Setting().workers,
            seed=args.seed,
        )
        return _print(range_full.run_full(whole, say))
    setting = Setting(
        queries=args.queries or args.subscriptions or Setting().queries,
        objects=args.objects or Setting().objects,
        side_max=args.side_max,
        seed=args.seed,
        churn=args.churn,
        indexes=tuple(args.index),
    )
    return _print(run(setting, say))


def _bench_paper(args: argparse.Namespace) -> int:
    from nearcast.bench.commands import Options, run_paper

    options = Options(
        size="full" if args.full else "small" if args.small else "usual",
        queries=args.queries or args.subscriptions,
        objects=args.objects,
        workers=args.workers,
        dispatchers=args.dispatchers,
        index=args.index[-1] if args.index else None,
        figures=tuple(name for name in args.figures.split(",") if name),
        seed=args.seed,
        constants=args.constants,
        keep=args.keep,
    )
    command = shlex.join([PROG, *args.argv])
    for figure in run_paper(args.name, options, _progress(args)):
        print(json.dumps(figure | {"command": command}), flush=True)
    return 0


def _bench_balance(args: argparse.Namespace) -> int:
    from nearcast.bench.balance import Setting, run
    from nearcast.bench.balance_replay import run_replay
    from nearcast.workload.shifting import Shifting

    usual, stream = Setting(), Shifting()
    setting = Setting(
        stream=Shifting(
            queries=args.queries or args.subscriptions or stream.queries,
            batch=args.batch_events or stream.batch,
            phase=args.phase or stream.phase,
            churn=args.churn_events,
            seed=args.seed,
        ),
        batches=args.batches or usual.batches,
        strategies=tuple(args.strategy) or usual.strategies,
    )
    say = _progress(args)
    if args.minutes:
        figures = run_replay(setting, args.minutes, args.keep, say)
    else:
        figures = run(setting, say)
    return _print(figures)
