"""The command line (SPEC section 7): parse, call, report; one clear line for what is wrong."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from nearcast import __version__
from nearcast.bench.cli import add_options, run_bench
from nearcast.model.arguments import PROG, natural, positive
from nearcast.model.errors import NearcastError


class _Parser(argparse.ArgumentParser):
    """An argument parser that says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        """Exit 2."""
        self.exit(2, f"{PROG}: {message} (see {self.prog} --help)\n")


def _bounds(text: str) -> tuple[float, float, float, float]:
    try:
        a, b, c, d = (float(v) for v in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError("write minx,miny,maxx,maxy") from None
    return a, b, c, d


def _strategy(text: str) -> tuple[str, str]:
    kind, equals, name = text.partition("=")
    if not equals or not kind or not name:
        raise argparse.ArgumentTypeError(f"{text!r}: write KIND=NAME, such as range=hash")
    return kind, name


def _window(text: str) -> str:
    kind, _, number = text.partition(":")
    units = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
    if kind == "count" and number.isdigit() and int(number) > 0:
        return text
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    if digits.isdigit() and int(digits) > 0 and text[len(digits) :] in units:
        return text
    raise argparse.ArgumentTypeError(f"{text!r}: write count:N or a duration such as 30s, 10m, 1h")


def _parser() -> _Parser:
    parser = _Parser(prog=PROG, description="Location-aware publish/subscribe on Spark.")
    parser.add_argument("--version", action="version", version=f"{PROG} {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    replay = commands.add_parser("replay", help="run whole logs through Spark and stop")
    replay.add_argument(
        "events", nargs="+", metavar="EVENTS", help="JSONL, .gz, Parquet, or folders"
    )
    replay.add_argument("--out", required=True, metavar="DIR", help="where results go")
    replay.add_argument("--space", choices=["geographic", "planar"], default="geographic")
    replay.add_argument("--bounds", type=_bounds, metavar="minx,miny,maxx,maxy")
    replay.add_argument("--shards", type=positive, default=2, metavar="N")
    replay.add_argument(
        "--strategy", type=_strategy, action="append", default=[], metavar="KIND=NAME ..."
    )
    replay.add_argument("--batch-events", type=positive, default=None, metavar="N")
    replay.add_argument("--window", type=_window, metavar="count:N|30s", help="of topk queries")
    replay.add_argument("--changes", choices=["every", "net"], default="every")
    replay.add_argument("--format", choices=["jsonl", "parquet"], default="jsonl")
    replay.add_argument("--checkpoint", metavar="DIR", help="go on where it stopped")
    replay.add_argument("--master", default="local[*]", metavar="URL", help="any Spark master")
    replay.add_argument(
        "--balance",
        choices=["off", "auto", "local", "global"],
        default="off",
        help="move subscriptions between shards as loads change",
    )
    replay.add_argument(
        "--warmup", type=natural, default=0, metavar="N", help="objects that a plan is made from"
    )

    run = commands.add_parser("run", help="the same, live, from sources to sinks, until stopped")
    run.add_argument("config", metavar="CONFIG.toml")

    demo = commands.add_parser("demo", help="a live city on this machine: no input needed")
    demo.add_argument("--seconds", type=float, default=30.0, metavar="S")
    demo.add_argument("--out", default=None, metavar="DIR", help="default: nearcast-demo")
    demo.add_argument("--shards", type=positive, default=2, metavar="N")
    demo.add_argument("--seed", type=int, default=1, metavar="S")

    generate = commands.add_parser("generate", help="write a seeded event log")
    generate.add_argument("name", metavar="NAME", help="`generate list` names them")
    generate.add_argument("--objects", type=natural, default=None, metavar="N")
    generate.add_argument("--subscriptions", type=natural, default=None, metavar="N")
    generate.add_argument("--seed", type=int, default=0, metavar="S")
    generate.add_argument("--out", metavar="FILE", help=".jsonl, .jsonl.gz or .parquet")

    bench = commands.add_parser("bench", help="an experiment; JSON lines on stdout")
    add_options(bench)

    commands.add_parser(
        "strategies", help="what can be chosen for which kind, and from which paper"
    )
    return parser


def _is_strategy(word: str) -> bool:
    """Whether a further word behind `--strategy` is one, and no option and no log."""
    return "=" in word and not word.startswith("-") and not Path(word).exists()


def _joined(argv: Sequence[str]) -> list[str]:
    """Values that argparse would take for something else, joined to their option.

    Bounds may begin with a minus, which looks like an option. Strategies may be several, and what
    follows them may be a log.
    """
    words = list(argv)
    joined: list[str] = []
    while words:
        word = words.pop(0)
        if word in ("--bounds", "--strategy") and words:
            joined.append(f"{word}={words.pop(0)}")
            while word == "--strategy" and words and _is_strategy(words[0]):
                joined.append(f"{word}={words.pop(0)}")
        else:
            joined.append(word)
    return joined


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; the exit status."""
    given = sys.argv[1:] if argv is None else list(argv)
    args = _parser().parse_args(_joined(given))
    args.argv = given
    try:
        return int(_COMMANDS[args.command](args))
    except NearcastError as error:
        print(f"{PROG}: {error}", file=sys.stderr)
        return getattr(error, "exit_status", 2)
    except KeyboardInterrupt:
        print(f"{PROG}: stopped", file=sys.stderr)
        return 130


def _replay(args: argparse.Namespace) -> int:
    from nearcast.engine.command import replay

    options: dict[str, Any] = {
        "space": args.space,
        "bounds": args.bounds,
        "shards": args.shards,
        "strategies": dict(args.strategy),
        "changes": args.changes,
        "format": args.format,
        "warmup": args.warmup,
        "balance": args.balance,
        "master": args.master,
    }
    replay(args.events, args.out, args.checkpoint, args.batch_events, options)
    return 0


def _run(args: argparse.Namespace) -> int:
    from nearcast.engine.command import run

    run(args.config)
    return 0


def _demo(args: argparse.Namespace) -> int:
    from nearcast.demo.run import run_demo

    return run_demo(seconds=args.seconds, out=args.out, shards=args.shards, seed=args.seed)


def _generate(args: argparse.Namespace) -> int:
    from nearcast.workload import GENERATORS, generate

    if args.name == "list":
        for generator in GENERATORS.values():
            print(f"{generator.name:18} {generator.description}")
        return 0
    if args.name not in GENERATORS:
        raise NearcastError(f"no workload {args.name!r}; there are {', '.join(GENERATORS)}")
    if args.out is None:
        raise NearcastError("generate: give --out FILE")
    chosen = GENERATORS[args.name]
    objects = chosen.objects if args.objects is None else args.objects
    subscriptions = chosen.subscriptions if args.subscriptions is None else args.subscriptions
    try:
        written = generate(args.name, objects, subscriptions, args.seed, args.out)
    except (ValueError, OSError) as error:
        raise NearcastError(str(error)) from error
    print(f"{args.out}: {written:,} events", file=sys.stderr)
    return 0


def _strategies(args: argparse.Namespace) -> int:
    from nearcast.index import INDEXES
    from nearcast.routing import DEFAULTS, ROUTERS

    for kind, (default, why) in DEFAULTS.items():
        print(f"{kind}: default {default} ({why})")
        for router in ROUTERS.values():
            if kind in router.kinds:
                print(f"  router {router.name:15} {router.about} [{router.paper}]")
        for index in INDEXES.values():
            if kind in index.kinds:
                print(f"  index  {index.name:15} {index.about} [{index.paper}]")
    print("choose with --strategy KIND=ROUTER or KIND=ROUTER+INDEX")
    print("topk, terms: not supported yet")
    return 0


_COMMANDS = {
    "replay": _replay,
    "run": _run,
    "demo": _demo,
    "generate": _generate,
    "bench": run_bench,
    "strategies": _strategies,
}
