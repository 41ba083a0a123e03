"""`nearcast bench crashes`: its flags, and what runs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from nearcast.model.arguments import positive
from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.common.flags import Flags
from nearcast_bench.crashes.experiment import run_campaign


def add_flags(parser: argparse.ArgumentParser) -> Flags:
    """Declare the flags of this experiment."""
    flags = Flags(parser)
    flags.add("--points", type=positive, default=100, metavar="N", help="crashes; default: 100")
    flags.seed()
    return flags


def run(args: argparse.Namespace, say: Say) -> Iterator[Figure]:
    """The figures."""
    return run_campaign(args.points, args.seed, say)
