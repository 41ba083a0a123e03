"""`nearcast bench tornado`: its flags, and what runs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace

from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.common.flags import Flags, given
from nearcast_bench.common.papers import add_paper_flags, check_index, figures_of, with_claims
from nearcast_bench.tornado.adapt import run_adapt
from nearcast_bench.tornado.claims import claims
from nearcast_bench.tornado.experiment import FULL, SMALL, Setting, check
from nearcast_bench.tornado.experiment import run as run_figures
from nearcast_bench.tornado.plots import plots
from nearcast_bench.tornado.routing import run_routing


def add_flags(parser: argparse.ArgumentParser) -> Flags:
    """Declare the flags of this experiment."""
    flags = Flags(parser)
    add_paper_flags(flags, parser, ())
    return flags


def setting_of(args: argparse.Namespace) -> Setting:
    """The setting that the flags describe."""
    usual = FULL if args.full else SMALL if args.small else Setting()
    values = given(
        args,
        queries="queries",
        objects="objects",
        evaluators="workers",
        units="dispatchers",
        index="index",
        seed="seed",
    )
    return replace(usual, **values, figures=figures_of(args) or usual.figures)


def run(args: argparse.Namespace, say: Say) -> Iterator[Figure]:
    """The figures of the paper, then its claims."""
    setting = setting_of(args)
    check(setting)
    check_index(setting.index)
    yield from with_claims(args, _figures(setting, say), claims, plots, say)


def _figures(setting: Setting, say: Say) -> Iterator[Figure]:
    yield from run_figures(setting, say)
    if "7" in setting.figures:
        yield from run_routing(setting, say)
    if "9" in setting.figures:
        yield from run_adapt(setting, say)
