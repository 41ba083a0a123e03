"""`nearcast bench dskype`: its flags, and what runs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace

from nearcast.model.arguments import positive
from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.common.flags import PLAIN, Flags, given
from nearcast_bench.common.papers import with_claims
from nearcast_bench.dskype.claims import claims
from nearcast_bench.dskype.distributed import run_distributed
from nearcast_bench.dskype.full import Full, run_full
from nearcast_bench.dskype.plots import plots
from nearcast_bench.dskype.setting import DATA, SMALL, TWEETS, Setting, check

FULL = "full"


def add_flags(parser: argparse.ArgumentParser) -> Flags:
    """Declare the flags of this experiment."""
    flags = Flags(parser, (FULL,))
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--full", action="store_true",
                       help="hash+reach with the paper's 5,000,000 subscriptions")  # fmt: skip
    sizes.add_argument("--small", action="store_true", help="takes some seconds")
    flags.add("--subscriptions", type=positive, metavar="N", help="that stand")
    flags.add("--window", type=positive, metavar="N", help="messages of the sliding window")
    flags.add("--messages", type=positive, metavar="N", help="that are timed")
    flags.add("--shards", type=positive, metavar="N", help="a power of two; --full: processes")
    flags.add("--k", type=positive, metavar="K", help="of the subscriptions; default: 20")
    flags.add(
        "--data", action="append", metavar="NAME|FILE",
        help=f"{', '.join(DATA)}, another corpus of nearcast.workload, or Parquet: lon, lat, "
        "keywords; may be repeated",
    )  # fmt: skip
    flags.add("--step", type=positive, metavar="N", help="messages of a batch; default: 1,000")
    flags.seed()
    flags.add("--seeds", type=positive, metavar="N", help="runs with the next seeds",
              modes=(PLAIN,))  # fmt: skip
    flags.add("--figures", metavar="21,22,…", help="only these figures of the paper",
              modes=(PLAIN,))  # fmt: skip
    flags.add("--keep", metavar="DIR", help="a folder for plots and a table of claims")
    return flags


def setting_of(args: argparse.Namespace) -> Setting:
    """The setting that the flags describe."""
    usual = SMALL if args.small else Setting()
    names = ("subscriptions", "window", "messages", "shards", "k", "step", "seed", "seeds")
    values = given(args, **{name: name for name in names})
    if args.data:
        values["data"] = tuple(args.data)
    if args.figures:
        values["figures"] = tuple(name for name in args.figures.split(",") if name)
    setting = replace(usual, **values)
    check(setting)
    return setting


def full_of(args: argparse.Namespace) -> Full:
    """What `--full` measures."""
    names = ("subscriptions", "window", "messages", "shards", "k", "step", "seed")
    values = given(args, **{name: name for name in names})
    return Full(data=tuple(args.data or (TWEETS,)), **values)


def run(args: argparse.Namespace, say: Say) -> Iterator[Figure]:
    """The figures of the paper, then its claims."""
    figures = run_full(full_of(args), say) if args.full else run_distributed(setting_of(args), say)
    yield from with_claims(args, figures, claims, plots, say)
