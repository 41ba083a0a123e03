"""`nearcast bench ps2stream`: its flags, and what runs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.common.flags import PLAIN, Flags, given
from nearcast_bench.common.papers import add_paper_flags, check_index, figures_of, with_claims
from nearcast_bench.ps2stream.adjust import run_adjust
from nearcast_bench.ps2stream.claims import claims
from nearcast_bench.ps2stream.experiment import FULL, SMALL, Setting, check, run_constants
from nearcast_bench.ps2stream.experiment import run as run_figures
from nearcast_bench.ps2stream.plots import plots

_CONSTANTS = "constants"


def add_flags(parser: argparse.ArgumentParser) -> Flags:
    """Declare the flags of this experiment."""
    flags = Flags(parser, (_CONSTANTS,))
    flags.add("--constants", action="store_true", help="measure only c1 to c4 of this machine")
    add_paper_flags(flags, parser, (PLAIN,))
    return flags


def setting_of(args: argparse.Namespace) -> Setting:
    """The setting that the flags describe."""
    usual = FULL if args.full else SMALL if args.small else Setting()
    values = given(
        args,
        queries="queries",
        workers="workers",
        dispatchers="dispatchers",
        index="index",
        seed="seed",
    )
    if args.objects is not None:
        values["changes"] = max(args.objects // 5, 1)
    return replace(usual, **values, figures=figures_of(args) or usual.figures)


def run(args: argparse.Namespace, say: Say) -> Iterator[Figure]:
    """The figures of the paper, then its claims; or the constants alone."""
    setting = setting_of(args)
    check(setting)
    check_index(setting.index)
    if args.mode == _CONSTANTS:
        for figure in run_constants(setting, say):
            yield figure | {"command": args.command}
        return
    figures = chain(run_figures(setting, say), run_adjust(setting, say))
    yield from with_claims(args, figures, claims, plots, say)
