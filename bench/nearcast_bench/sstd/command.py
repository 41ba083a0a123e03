"""`nearcast bench sstd`: its flags, and what runs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace

from nearcast.kinds import KINDS
from nearcast.model.arguments import positive
from nearcast.model.errors import NearcastError
from nearcast.objects import STORES
from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.common.flags import PLAIN, Flags, given
from nearcast_bench.common.papers import with_claims
from nearcast_bench.sstd.adjusting import run_adjusting
from nearcast_bench.sstd.byparts import run_by_parts
from nearcast_bench.sstd.claims import claims
from nearcast_bench.sstd.continuous import run_continuous
from nearcast_bench.sstd.full import OBJECTS, POOL, Full, run_full, safe
from nearcast_bench.sstd.plots import plots
from nearcast_bench.sstd.setting import SMALL, Setting, check
from nearcast_bench.sstd.snapshot import run_snapshot
from nearcast_bench.sstd.source import DATA, TW14, source_of
from nearcast_bench.sstd.tuning import run_tuning

FULL = "full"


def add_flags(parser: argparse.ArgumentParser) -> Flags:
    """Declare the flags of this experiment."""
    flags = Flags(parser, (FULL,))
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--full", action="store_true",
                       help="stores alone, with the paper's 50,000,000 posts")  # fmt: skip
    sizes.add_argument("--small", action="store_true", help="takes some seconds")
    flags.add("--objects", type=positive, metavar="N", help="that are stored")
    flags.add("--asks", type=positive, metavar="N", help="of each kind and setting")
    flags.add(
        "--data", metavar="NAME|FILE", help=f"{', '.join(DATA)}, or Parquet: lon, lat, keywords"
    )
    flags.seed()
    flags.add(
        "--store", action="append", metavar="NAME", help="store of objects; --full: may be repeated"
    )
    flags.add("--queries", type=positive, metavar="N", help="that stand", modes=(PLAIN,))
    flags.add(
        "--step", type=positive, metavar="N", help="objects of a step of a stream", modes=(PLAIN,)
    )
    flags.add("--workers", type=positive, metavar="M", help="that store and match", modes=(PLAIN,))
    flags.add(
        "--seeds", type=positive, metavar="N", help="runs, each with the next seed", modes=(PLAIN,)
    )
    flags.add("--index", metavar="NAME", help="of standing range queries", modes=(PLAIN,))
    flags.add("--figures", metavar="7,8,…", help="only these figures of the paper", modes=(PLAIN,))
    flags.add("--delta", type=float, metavar="HOURS", help="length of a slice", modes=(FULL,))
    flags.add("--keep", metavar="DIR", help="a folder for plots and a table of claims")
    return flags


def setting_of(args: argparse.Namespace) -> Setting:
    """The setting that the flags describe."""
    usual = SMALL if args.small else Setting()
    values = given(args, objects="objects", asks="asks", data="data", seed="seed", step="step",
                   queries="queries", workers="workers", seeds="seeds", index="index")  # fmt: skip
    if args.store:
        values["store"] = _only(args.store)
    if args.figures:
        values["figures"] = tuple(name for name in args.figures.split(",") if name)
    return replace(usual, **values)


def full_of(args: argparse.Namespace, say: Say) -> Full:
    """What `--full` measures: as many posts as there is memory for."""
    values = given(args, objects="objects", asks="asks", seed="seed", delta_hours="delta")
    stores = tuple(args.store or ("curve",))
    wanted = values.pop("objects", OBJECTS)
    objects = safe(wanted, stores)
    if objects < wanted:
        say(f"memory is enough for {objects:,} posts, not {wanted:,}")
    return Full(objects, stores, **values)


def run(args: argparse.Namespace, say: Say) -> Iterator[Figure]:
    """The figures of the paper, then its claims."""
    for name in args.store or ():
        if name not in STORES:
            raise NearcastError(f"bench: no store {name!r}; there are {', '.join(STORES)}")
    yield from with_claims(args, _figures(args, say), claims, plots, say)


def _figures(args: argparse.Namespace, say: Say) -> Iterator[Figure]:
    if args.full:
        source = replace(source_of(args.data or TW14, args.seed or 7), pool=POOL)
        yield from run_full(full_of(args, say), source, say)
        return
    setting = setting_of(args)
    check(setting)
    if setting.index not in KINDS["range"].indexes:
        fit = ", ".join(KINDS["range"].indexes)
        raise NearcastError(f"bench: no range index {setting.index!r}; there are {fit}")
    if not args.small:  # a tiny run of each ask compiles what is timed
        tiny = replace(SMALL, seeds=1, asks=2, figures=("9", "8", "10"))
        for _ in run_snapshot(tiny, lambda _: None):
            pass
    yield from run_snapshot(setting, say)
    yield from run_by_parts(setting, say)
    yield from run_continuous(setting, say)
    yield from run_adjusting(setting, say)
    yield from run_tuning(setting, say)


def _only(stores: list[str]) -> str:
    if len(stores) > 1:
        raise NearcastError("bench sstd: give --store once, except with --full")
    return stores[0]
