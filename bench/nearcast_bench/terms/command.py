"""`nearcast bench terms`: its flags, and what runs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from nearcast.model.arguments import positive
from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.common.flags import Flags, given
from nearcast_bench.terms.bare import run_bare
from nearcast_bench.terms.stream import Load

INDEXES = ("tables", "groups", "cheapest")


def add_flags(parser: argparse.ArgumentParser) -> Flags:
    """Declare the flags of this experiment."""
    flags = Flags(parser)
    usual = Load()
    flags.add(
        "--objects",
        type=positive,
        metavar="N",
        help=f"posts that are timed; default: {usual.objects:,}",
    )
    flags.add(
        "--subscriptions",
        type=positive,
        metavar="N",
        help=f"standing queries; default: {usual.subscriptions:,}",
    )
    flags.add(
        "--rate",
        type=positive,
        metavar="N",
        help=f"posts a second, by their times; default: {usual.rate:,}",
    )
    for name, default in (("every", usual.every), ("window", usual.window)):
        flags.add(
            f"--{name}", type=float, metavar="SECONDS", help=f"of the queries; default: {default:g}"
        )
    flags.add(
        "--area",
        type=float,
        metavar="SHARE",
        help=f"of the space, of a region; default: {usual.area:g}",
    )
    flags.add(
        "--index",
        action="append",
        default=[],
        metavar="NAME",
        choices=INDEXES,
        help=f"may be repeated; default: {', '.join(INDEXES)}",
    )
    flags.add("--shards", type=positive, default=2, metavar="N", help="default: 2")
    flags.add(
        "--step",
        type=positive,
        default=50_000,
        metavar="N",
        help="posts of a batch; default: 50,000",
    )
    flags.seed()
    return flags


def load_of(args: argparse.Namespace) -> Load:
    """What comes in."""
    names = ("objects", "subscriptions", "rate", "every", "window", "area", "seed")
    return Load(**given(args, **{name: name for name in names}))


def run(args: argparse.Namespace, say: Say) -> Iterator[Figure]:
    """The figures."""
    load = load_of(args)
    for index in args.index or INDEXES:
        for figure in run_bare(load, index, args.shards, args.step, say):
            yield figure | {"command": args.command}
