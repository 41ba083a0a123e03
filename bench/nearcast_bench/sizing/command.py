"""`nearcast bench sizing`: its flags, and what runs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from nearcast.model.arguments import positive
from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.common.flags import Flags
from nearcast_bench.sizing.experiment import NUMBER, run_sizing


def add_flags(parser: argparse.ArgumentParser) -> Flags:
    """Declare the flags of this experiment."""
    flags = Flags(parser)
    about = f"subscriptions of each kind, and objects; default: {NUMBER:,}"
    flags.add("--number", type=positive, default=NUMBER, metavar="N", help=about)
    flags.seed()
    return flags


def run(args: argparse.Namespace, say: Say) -> Iterator[Figure]:
    """The figures."""
    return run_sizing(args.number, args.seed, say)
