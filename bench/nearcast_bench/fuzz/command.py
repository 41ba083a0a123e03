"""`nearcast bench fuzz`: its flags, and what runs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from nearcast.model.arguments import positive
from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.common.flags import Flags
from nearcast_bench.fuzz.experiment import run_fuzz


def add_flags(parser: argparse.ArgumentParser) -> Flags:
    """Declare the flags of this experiment."""
    flags = Flags(parser)
    flags.add("--lines", type=positive, default=20_000, metavar="N", help="default: 20,000")
    flags.add(
        "--spark", action="store_true", help="through a whole replay besides; many lines take long"
    )
    flags.seed()
    return flags


def run(args: argparse.Namespace, say: Say) -> Iterator[Figure]:
    """The figures."""
    return run_fuzz(args.lines, args.seed, args.spark, say)
