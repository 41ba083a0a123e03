"""`nearcast bench soak`: its flags, and what runs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from nearcast.model.arguments import positive
from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.common.flags import Flags
from nearcast_bench.soak.experiment import SAMPLES, run_soak


def add_flags(parser: argparse.ArgumentParser) -> Flags:
    """Declare the flags of this experiment."""
    flags = Flags(parser)
    flags.add("--batches", type=positive, default=10_000, metavar="N", help="default: 10,000")
    flags.add("--samples", type=positive, default=SAMPLES, metavar="N", help=f"default: {SAMPLES}")
    flags.seed()
    return flags


def run(args: argparse.Namespace, say: Say) -> Iterator[Figure]:
    """The figures."""
    return run_soak(args.batches, args.samples, args.seed, say)
