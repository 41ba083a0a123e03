"""`nearcast bench live`: its flags, and what runs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace

from nearcast.kinds import KINDS
from nearcast.model.arguments import positive
from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.common.flags import Flags, given
from nearcast_bench.live.experiment import Setting, run_live


def add_flags(parser: argparse.ArgumentParser) -> Flags:
    """Declare the flags of this experiment."""
    flags = Flags(parser)
    usual = Setting()
    flags.add(
        "--subscriptions",
        type=positive,
        metavar="N",
        help=f"of each kind; default: {usual.subscriptions:,}",
    )
    flags.add(
        "--rate",
        action="append",
        type=positive,
        default=[],
        metavar="R",
        help="posts per second; may be repeated; default: 100 and 20,000",
    )
    flags.add("--seconds", type=positive, metavar="S", help=f"per rate; default: {usual.seconds}")
    flags.add(
        "--kind",
        action="append",
        choices=list(KINDS),
        default=[],
        help="of the subscriptions; may be repeated; default: all",
    )
    flags.add("--shards", type=positive, metavar="M", help=f"default: {usual.shards}")
    flags.seed()
    return flags


def run(args: argparse.Namespace, say: Say) -> Iterator[Figure]:
    """The figures."""
    values = given(
        args, subscriptions="subscriptions", seconds="seconds", shards="shards", seed="seed"
    )
    setting = replace(Setting(), **values)
    if args.rate:
        setting = replace(setting, rates=tuple(args.rate))
    if args.kind:
        setting = replace(setting, kinds=tuple(dict.fromkeys(args.kind)))
    return run_live(setting, say)
