"""The command line of experiments: one sub-command for each, with flags of its own."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

from nearcast.model.arguments import PROG, Parser

# Name: what it measures, and its folder. `command.py` there has `add_flags(parser)`, which
# declares the flags and returns them, and `run(args, say)`, which yields the figures.
EXPERIMENTS = {
    "pipeline": ("the whole pipeline with many range subscriptions", "pipeline"),
    "dkm-sks": ("knn: the experiments of the paper on DkM-SKS", "dkm_sks"),
    "range-index": ("the range indexes side by side", "range_index"),
    "ps2stream": ("the experiments of the paper on PS2Stream", "ps2stream"),
    "tornado": ("the experiments of the paper on Tornado", "tornado"),
    "past": ("objects that stay, through the whole pipeline: storing, asking, a restart", "past"),
    "balance": ("a hot spot that jumps, with and without live balance", "balance"),
    "terms": ("standing terms: posts a second with all moments reported", "terms"),
    "sstd": ("the experiments of the paper on SSTD", "sstd"),
    "crashes": ("crash points drawn at random: nothing lost, nothing twice", "crashes"),
    "fuzz": ("fuzzed lines through decode: each accepted or refused", "fuzz"),
    "dskype": ("topk: the distributed experiments of the paper on Skype", "dskype"),
    "live": ("from a publish to its visible notification, at several rates", "live"),
    "sizing": ("bytes per subscription and object, and the time to rebuild", "sizing"),
    "soak": ("many batches of a live run: files, memory and times stay flat", "soak"),
    "skype": ("the experiments of the paper on Skype, centralised", "skype"),
    "redraw": ("draw the plots of stored results again", "redraw"),
}


def parse(argv: Sequence[str]) -> tuple[ModuleType, argparse.Namespace]:
    """The module of the experiment that `argv` names, and its flags."""
    parser = Parser(prog=f"{PROG} bench", description="Experiments; JSON lines on stdout.")
    names = parser.add_subparsers(dest="name", required=True, metavar="NAME")
    for name, (about, folder) in EXPERIMENTS.items():
        one = names.add_parser(name, help=about, description=about, allow_abbrev=False)
        one.add_argument("--json", action="store_true", help="print no progress on stderr")
        if name in argv[:1]:  # the others are not loaded
            command = import_module(f"nearcast_bench.{folder}.command")
            flags = command.add_flags(one)
    args = parser.parse_args(argv)
    args.mode = flags.mode(args)
    args.command = shlex.join([PROG, "bench", *argv])
    return command, args


def main(argv: Sequence[str]) -> int:
    """Run the experiment that `argv` names and print its figures as JSON lines; the exit status."""
    command, args = parse(argv)

    def say(text: str) -> None:
        if not args.json:
            print(text, file=sys.stderr, flush=True)

    for figure in command.run(args, say):
        print(json.dumps(figure), flush=True)
    return 0
