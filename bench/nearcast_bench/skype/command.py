"""`nearcast bench skype`: its flags, and what runs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace

from nearcast.model.arguments import positive
from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.common.flags import PLAIN, Flags, given
from nearcast_bench.common.papers import figures_of, with_claims
from nearcast_bench.skype.claims import claims
from nearcast_bench.skype.disseminating import run_dissemination
from nearcast_bench.skype.full import run_full
from nearcast_bench.skype.plots import plots
from nearcast_bench.skype.reevaluation import run_reevaluation
from nearcast_bench.skype.setting import DATA, FULL, SMALL, Setting, check
from nearcast_bench.skype.source import source_of
from nearcast_bench.skype.sweeps import run_sweeps

_WARMED = (
    (run_reevaluation, "14", ("10", "14", "table 4", "walk")),
    (run_dissemination, "13", ("11", "12", "13")),
    (run_sweeps, "15", ("15", "16", "17", "18", "19", "20")),
)


def add_flags(parser: argparse.ArgumentParser) -> Flags:
    """Declare the flags of this experiment."""
    flags = Flags(parser, ("full",))
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--full", action="store_true", help="the paper's 1,000,000 subscriptions")
    sizes.add_argument("--small", action="store_true", help="takes some seconds")
    flags.add("--subscriptions", type=positive, metavar="N", help="that stand")
    flags.add("--window", type=positive, metavar="N", help="messages in the window")
    flags.add("--messages", type=positive, metavar="N", help="that are timed; as many come before")
    flags.add("--batch", type=positive, metavar="N", help="messages that are handled at once")
    flags.add("-k", type=positive, metavar="K", help="results of a subscription")
    flags.add("--data", metavar="NAME|FILE", help=f"{', '.join(DATA)}, or lon, lat, keywords")
    flags.seed()
    flags.add("--seeds", type=positive, metavar="N", help="runs, each with the next seed")
    flags.add("--index", metavar="NAME", help="behind which policies are compared", modes=(PLAIN,))
    flags.add("--figures", metavar="10,14,…", help="only these figures", modes=(PLAIN,))
    flags.add("--keep", metavar="DIR", help="a folder for plots and a table of claims")
    return flags


def setting_of(args: argparse.Namespace) -> Setting:
    """The setting that the flags describe."""
    usual = FULL if args.full else SMALL if args.small else Setting()
    values = given(args, subscriptions="subscriptions", window="window", messages="messages",
                   batch="batch", k="k", data="data", seed="seed", seeds="seeds",
                   dissemination="index")  # fmt: skip
    if args.figures:
        values["figures"] = figures_of(args)
    return replace(usual, **values)


def run(args: argparse.Namespace, say: Say) -> Iterator[Figure]:
    """The figures of the paper, then its claims."""
    setting = setting_of(args)
    check(setting)
    source_of(setting.data)  # refuses what there is not
    yield from with_claims(args, _figures(args, setting, say), claims, plots, say)


def _figures(args: argparse.Namespace, setting: Setting, say: Say) -> Iterator[Figure]:
    if args.full:
        yield from run_full(setting, say)
        return
    if not args.small:  # tiny runs compile what is timed
        for run, warm, figures in _WARMED:
            if any(setting.has(name) for name in figures):
                for _ in run(replace(SMALL, data=setting.data, figures=(warm,)), lambda _: None):
                    pass
    yield from run_reevaluation(setting, say)
    yield from run_dissemination(setting, say)
    yield from run_sweeps(setting, say)
