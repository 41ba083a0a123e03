"""`nearcast bench past`: its flags, and what runs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from nearcast.model.arguments import positive
from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.common.flags import Flags
from nearcast_bench.past.experiment import Setting, run_past


def add_flags(parser: argparse.ArgumentParser) -> Flags:
    """Declare the flags of this experiment."""
    flags = Flags(parser)
    usual = Setting()

    def number(name: str, default: int, about: str) -> None:
        options: dict[str, Any] = {"type": positive, "default": default, "metavar": "N"}
        flags.add(name, **options, help=f"{about}; default: {default:,}")

    number("--objects", usual.objects, "published, and retained")
    number("--subscriptions", usual.subscriptions, "standing range queries")
    number("--asks", usual.asks, "in a batch, half of them range, half knn")
    number("--rounds", usual.rounds, "with and without retaining, in turn; and batches of asks")
    flags.add("--batch-events", type=positive, metavar="N", help="a batch")
    flags.add("--keep", metavar="DIR", help="a folder for logs and results")
    flags.seed()
    return flags


def run(args: argparse.Namespace, say: Say) -> Iterator[Figure]:
    """The figures."""
    setting = Setting(
        args.objects, args.subscriptions, args.asks, args.rounds, args.seed, args.batch_events
    )
    return run_past(setting, args.keep, say)
