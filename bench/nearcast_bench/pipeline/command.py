"""`nearcast bench pipeline`: its flags, and what runs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from nearcast.model.arguments import positive
from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.common.flags import Flags
from nearcast_bench.pipeline.experiment import run_pipeline


def add_flags(parser: argparse.ArgumentParser) -> Flags:
    """Declare the flags of this experiment."""
    flags = Flags(parser)
    number: dict[str, Any] = {"type": positive, "default": 1_000_000, "metavar": "N"}
    flags.add("--objects", **number, help="default: 1,000,000")
    flags.add("--subscriptions", **number, help="default: 1,000,000")
    flags.add("--batch-events", type=positive, metavar="N", help="a batch")
    flags.add("--keep", metavar="DIR", help="a folder for logs and results")
    flags.seed()
    return flags


def run(args: argparse.Namespace, say: Say) -> Iterator[Figure]:
    """The figures."""
    return run_pipeline(
        objects=args.objects,
        subscriptions=args.subscriptions,
        seed=args.seed,
        keep=args.keep,
        batch_events=args.batch_events,
        say=say,
    )
