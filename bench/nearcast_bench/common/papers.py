"""What the experiments of PS2Stream and Tornado share: sizes, flags, what `--keep` keeps."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from nearcast.kinds import KINDS
from nearcast.model.arguments import positive
from nearcast.model.errors import NearcastError
from nearcast.plotting import need_matplotlib
from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.common.flags import Flags
from nearcast_bench.common.shapes import claims_table

Judge = Callable[[list[Figure]], Iterable[Figure]]
Draw = Callable[[list[Figure], Path], list[Path]]


def add_paper_flags(flags: Flags, parser: argparse.ArgumentParser, modes: Sequence[str]) -> None:
    """Declare the flags of both; `modes`: those that run the figures, if there are others."""
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--full", action="store_true", help="the paper's 10,000,000 queries")
    sizes.add_argument("--small", action="store_true", help="takes some seconds")
    flags.add(
        "--queries", "--subscriptions", type=positive, metavar="N", help="standing subscriptions"
    )
    flags.add("--index", metavar="NAME", help="of the workers")
    flags.seed()
    flags.add("--objects", type=positive, metavar="N", help="of the stream", modes=modes)
    flags.add("--workers", type=positive, metavar="M", help="that match", modes=modes)
    flags.add("--dispatchers", type=positive, metavar="D", help="that route", modes=modes)
    flags.add("--figures", metavar="6,7,…", help="only these figures of the paper", modes=modes)
    flags.add("--keep", metavar="DIR", help="a folder for plots and a table of claims", modes=modes)


def figures_of(args: argparse.Namespace) -> tuple[str, ...]:
    """The figures that were requested; none: all."""
    return tuple(name for name in (args.figures or "").split(",") if name)


def check_index(name: str) -> None:
    """Refuse an index that does not serve the kind of the papers."""
    fit = KINDS["range"].indexes
    if name not in fit:
        raise NearcastError(f"bench: no range index {name!r}; there are {', '.join(fit)}")


def with_claims(
    args: argparse.Namespace, figures: Iterable[Figure], judge: Judge, draw: Draw, say: Say
) -> Iterator[Figure]:
    """All figures, then the claims, each with the command; last, `--keep` keeps them."""
    if args.keep:
        need_matplotlib()  # before the work, not after it
    measured: list[Figure] = []
    for figure in figures:
        measured.append(figure)
        yield figure | {"command": args.command}
    judged = list(judge(measured))
    for claim in judged:
        yield claim | {"command": args.command}
    if args.keep:
        folder = Path(args.keep)
        table = folder / f"{args.name}-claims.md"
        for path in [*draw(measured, folder), table]:
            say(f"kept: {path}")
        table.write_text(claims_table(judged))
