"""`nearcast bench range-index`: its flags, and what runs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace

from nearcast.model.arguments import positive
from nearcast.model.space import Space
from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.common.flags import PLAIN, Flags, given, only_one
from nearcast_bench.range_index import experiment, full, spark
from nearcast_bench.range_index.stream import SHAPES, Setting

_FULL, _SPARK = "full", "spark"


def add_flags(parser: argparse.ArgumentParser) -> Flags:
    """Declare the flags of this experiment."""
    flags = Flags(parser, (_SPARK, _FULL))
    flags.add(
        "--full", action="store_true", help="10,000,000 queries; without --spark on two workers"
    )
    flags.add("--spark", action="store_true", help="through the whole pipeline")
    flags.add(
        "--queries", "--subscriptions", type=positive, metavar="N", help="standing subscriptions"
    )
    flags.seed()
    flags.add("--objects", type=positive, metavar="N", help="of the stream", modes=(PLAIN, _SPARK))
    flags.add(
        "--index",
        action="append",
        default=[],
        metavar="NAME",
        help="only this one; may be repeated without --full",
        modes=(PLAIN, _FULL),
    )
    flags.add("--side-max", type=float, metavar="S", help="longest box side", modes=(PLAIN,))
    flags.add("--shape", choices=SHAPES, help="of regions; default: box", modes=(PLAIN,))
    flags.add("--space", choices=list(Space), help="default: planar, a unit square", modes=(PLAIN,))
    flags.add(
        "--churn",
        action="store_true",
        help="an insertion or deletion after every fifth object",
        modes=(PLAIN,),
    )
    flags.add("--workers", type=positive, metavar="M", help="default: 2", modes=(_FULL,))
    flags.add("--strategy", metavar="NAME", help="who routes", modes=(_FULL, _SPARK))
    flags.add("--shards", type=positive, metavar="N", help="default: 2", modes=(_SPARK,))
    flags.add("--batch-events", type=positive, metavar="N", help="a batch", modes=(_SPARK,))
    flags.add("--keep", metavar="DIR", help="a folder for logs and results", modes=(_SPARK,))
    return flags


def run(args: argparse.Namespace, say: Say) -> Iterator[Figure]:
    """The figures of the chosen mode; `--spark --full` is `--spark` with as many queries."""
    if args.mode == _SPARK:
        yield from spark.run_spark(_spark_setting(args), say)
    elif args.mode == _FULL:
        yield from full.run_full(_full_setting(args), say)
    else:
        yield from experiment.run(setting_of(args), say)


def setting_of(args: argparse.Namespace) -> Setting:
    """The setting that the flags of a plain run describe."""
    values = given(
        args, queries="queries", objects="objects", side_max="side_max", seed="seed", shape="shape"
    )
    space = Space(args.space) if args.space else Space.PLANAR
    return replace(Setting(), **values, churn=args.churn, indexes=tuple(args.index), space=space)


def _full_setting(args: argparse.Namespace) -> full.Setting:
    values = given(args, queries="queries", router="strategy", workers="workers", seed="seed")
    return replace(full.Setting(), **values, index=only_one(args, "index") or full.Setting().index)


def _spark_setting(args: argparse.Namespace) -> spark.Setting:
    usual = spark.Setting()
    if args.full:
        usual = replace(usual, queries=full.Setting().queries)
    values = given(
        args,
        queries="queries",
        objects="objects",
        seed="seed",
        batch_events="batch_events",
        shards="shards",
        strategy="strategy",
        keep="keep",
    )
    return replace(usual, **values)
