"""`nearcast bench redraw`: the plots of a paper from the lines of stored results."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from nearcast.model.errors import NearcastError
from nearcast.plotting import need_matplotlib
from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.common.flags import Flags
from nearcast_bench.dkm_sks.plots import plots as dkm_sks_plots
from nearcast_bench.dskype.plots import plots as dskype_plots
from nearcast_bench.ps2stream.plots import plots as ps2stream_plots
from nearcast_bench.skype.plots import plots as skype_plots
from nearcast_bench.sstd.plots import plots as sstd_plots
from nearcast_bench.tornado.plots import plots as tornado_plots

PAPERS = {
    "dkm-sks": dkm_sks_plots,
    "ps2stream": ps2stream_plots,
    "skype": skype_plots,
    "sstd": sstd_plots,
    "dskype": dskype_plots,
    "tornado": tornado_plots,
}


def add_flags(parser: argparse.ArgumentParser) -> Flags:
    """Declare what is drawn, from what, and where to."""
    flags = Flags(parser)
    flags.add("paper", choices=list(PAPERS), help="whose figures")
    flags.add("results", nargs="+", metavar="RESULTS.jsonl", help="what its experiment printed")
    flags.add("--keep", required=True, metavar="DIR", help="a folder for the plots")
    return flags


def run(args: argparse.Namespace, say: Say) -> Iterator[Figure]:
    """Draw all figures that there are points for; one line per file."""
    need_matplotlib()
    points = [line for name in args.results for line in _lines(Path(name)) if "figure" in line]
    for path in PAPERS[args.paper](points, Path(args.keep)):
        say(f"drawn: {path}")
        yield {"drawn": str(path)}


def _lines(path: Path) -> list[Figure]:
    try:
        return [json.loads(line) for line in path.read_text().splitlines()]
    except (OSError, ValueError) as error:
        raise NearcastError(f"bench redraw: {path}: not a file of JSON lines ({error})") from error
