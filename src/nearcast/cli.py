"""The command line (SPEC section 7): parse, call, report; one clear line for what is wrong."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from nearcast import __version__
from nearcast.model.errors import NearcastError

PROG = "nearcast"
_BENCHES = ["pipeline", "dkm-sks", "range-index", "ps2stream", "tornado", "balance"]


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


def _positive(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return value


def _natural(text: str) -> int:
    return 0 if text == "0" else _positive(text)


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
    replay.add_argument("--shards", type=_positive, default=2, metavar="N")
    replay.add_argument(
        "--strategy", type=_strategy, action="extend", nargs="+", default=[], metavar="KIND=NAME"
    )
    replay.add_argument("--batch-events", type=_positive, default=None, metavar="N")
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
        "--warmup", type=_natural, default=0, metavar="N", help="objects that a plan is made from"
    )

    run = commands.add_parser("run", help="the same, live, from sources to sinks, until stopped")
    run.add_argument("config", metavar="CONFIG.toml")

    demo = commands.add_parser("demo", help="a live city on this machine: no input needed")
    demo.add_argument("--seconds", type=float, default=30.0, metavar="S")
    demo.add_argument("--out", default=None, metavar="DIR", help="default: nearcast-demo")
    demo.add_argument("--shards", type=_positive, default=2, metavar="N")
    demo.add_argument("--seed", type=int, default=1, metavar="S")

    generate = commands.add_parser("generate", help="write a seeded event log")
    generate.add_argument("name", metavar="NAME", help="`generate list` names them")
    generate.add_argument("--objects", type=_natural, default=None, metavar="N")
    generate.add_argument("--subscriptions", type=_natural, default=None, metavar="N")
    generate.add_argument("--seed", type=int, default=0, metavar="S")
    generate.add_argument("--out", metavar="FILE", help=".jsonl, .jsonl.gz or .parquet")

    bench = commands.add_parser("bench", help="an experiment; JSON lines on stdout")
    bench.add_argument("name", metavar="NAME", choices=_BENCHES)
    bench.add_argument("--json", action="store_true", help="JSON lines only, no word of progress")
    bench.add_argument("--objects", type=_positive, default=None, metavar="N")
    bench.add_argument("--subscriptions", type=_positive, default=None, metavar="N")
    bench.add_argument("--seed", type=int, default=7, metavar="S")
    bench.add_argument(
        "--workers", type=_positive, default=None, metavar="M", help="dkm-sks 20, ps2stream 8, …"
    )
    bench.add_argument("--ticks", type=_positive, default=10, metavar="N", help="dkm-sks")
    bench.add_argument("--k-max", type=_positive, default=10, metavar="K", help="dkm-sks")
    bench.add_argument("--workload", choices=["place", "twitter"], default="place")
    bench.add_argument("--data", default=None, metavar="FILE", help="dkm-sks: Parquet of places")
    bench.add_argument("--full", action="store_true", help="papers: their 10,000,000 subscriptions")
    bench.add_argument("--small", action="store_true", help="ps2stream, tornado: some seconds")
    bench.add_argument(
        "--series",
        choices=["m", "subscriptions", "k", "all"],
        help="dkm-sks: figures 8 to 10 (by m, |S|, k_max) in place of figure 7",
    )
    bench.add_argument(
        "--algorithm", action="append", default=[], metavar="NAME", help="dkm-sks: this one (too)"
    )
    bench.add_argument(
        "--figures", default="", metavar="6,7,…", help="ps2stream, tornado: only these"
    )
    bench.add_argument(
        "--dispatchers", type=_positive, default=None, metavar="D", help="ps2stream, tornado"
    )
    bench.add_argument(
        "--constants", action="store_true", help="ps2stream: only c1 to c4 of this machine"
    )
    bench.add_argument(
        "--spark", action="store_true", help="dkm-sks: 1,000,000 subscriptions through Spark"
    )
    bench.add_argument(
        "--keep", default=None, metavar="DIR", help="keep logs, results or plots there"
    )
    bench.add_argument("--batch-events", type=_positive, default=None, metavar="N")

    bench.add_argument("--queries", type=_positive, default=None, metavar="N", help="standing")
    bench.add_argument(
        "--side-max", type=float, default=0.01, metavar="S", help="range-index: longest box side"
    )
    bench.add_argument(
        "--index", action="append", default=[], metavar="NAME", help="of workers (range-index: too)"
    )
    bench.add_argument(
        "--churn",
        action="store_true",
        help="range-index: an insertion or deletion after every fifth object",
    )

    bench.add_argument(
        "--batches", type=_positive, default=None, metavar="N", help="balance: of each run"
    )
    bench.add_argument(
        "--phase", type=_positive, default=None, metavar="N", help="balance: batches to a jump"
    )
    bench.add_argument(
        "--strategy", action="append", default=[], metavar="NAME", help="balance: this one (too)"
    )
    bench.add_argument(
        "--churn-events", type=_natural, default=0, metavar="N", help="balance: a batch"
    )
    bench.add_argument(
        "--minutes", type=_positive, default=None, metavar="N", help="balance: through Spark, long"
    )

    commands.add_parser(
        "strategies", help="what can be chosen for which kind, and from which paper"
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; the exit status."""
    args = _parser().parse_args(argv)
    args.argv = sys.argv[1:] if argv is None else list(argv)
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


def _bench(args: argparse.Namespace) -> int:
    if args.name == "dkm-sks":
        return _bench_dkm_sks(args)
    if args.name == "range-index":
        return _bench_range_index(args)
    if args.name in ("ps2stream", "tornado"):
        return _bench_paper(args)
    if args.name == "balance":
        return _bench_balance(args)
    from nearcast.bench.pipeline import run_pipeline

    for figure in run_pipeline(
        objects=args.objects or 1_000_000,
        subscriptions=args.subscriptions or 1_000_000,
        seed=args.seed,
        keep=args.keep,
        batch_events=args.batch_events,
        quiet=args.json,
    ):
        print(json.dumps(figure), flush=True)
    return 0


def _progress(args: argparse.Namespace) -> Callable[[str], None]:
    """Where an experiment tells how far it is."""

    def say(text: str) -> None:
        if not args.json:
            print(text, file=sys.stderr, flush=True)

    return say


def _bench_dkm_sks(args: argparse.Namespace) -> int:
    from nearcast.bench.dkm_deal import chosen
    from nearcast.bench.dkm_full import run_full
    from nearcast.bench.dkm_load import Setting
    from nearcast.bench.dkm_plots import plots
    from nearcast.bench.dkm_sks import run
    from nearcast.bench.dkm_spark import run_spark

    say = _progress(args)
    setting = Setting(
        workload=args.workload,
        subscriptions=args.subscriptions or (10_000_000 if args.full else 200_000),
        objects=args.objects or (1_000_000 if args.full else 100_000),
        workers=2 if args.full else args.workers or 20,
        k_max=args.k_max,
        ticks=args.ticks,
        seed=args.seed,
    )
    if args.spark:
        figures = run_spark(
            args.workload,
            args.subscriptions or 1_000_000,
            args.objects or 200_000,
            args.seed,
            args.batch_events or 50_000,
            args.keep,
            say,
        )
    elif args.full:
        figures = run_full(setting, args.data, say)
    else:
        figures = run(setting, args.data, chosen(args.algorithm), args.series, say)
    told = []
    print(json.dumps({"command": shlex.join([PROG, *args.argv])}), flush=True)
    for figure in figures:
        print(json.dumps(figure), flush=True)
        told.append(figure)
    if args.keep and not (args.full or args.spark):
        for path in plots(told, Path(args.keep)):
            say(f"drawn: {path}")
    return 0


def _bench_range_index(args: argparse.Namespace) -> int:
    from nearcast.bench import range_full
    from nearcast.bench.range_index import run
    from nearcast.bench.range_stream import Setting

    say = _progress(args)
    if args.full:
        whole = range_full.Setting(
            queries=args.queries or args.subscriptions or range_full.Setting().queries,
            index=args.index[-1] if args.index else range_full.Setting().index,
            router=args.strategy[-1] if args.strategy else range_full.Setting().router,
            workers=args.workers or range_full.Setting().workers,
            seed=args.seed,
        )
        for figure in range_full.run_full(whole, say):
            print(json.dumps(figure), flush=True)
        return 0
    setting = Setting(
        queries=args.queries or args.subscriptions or Setting().queries,
        objects=args.objects or Setting().objects,
        side_max=args.side_max,
        seed=args.seed,
        churn=args.churn,
        indexes=tuple(args.index),
    )
    for figure in run(setting, say):
        print(json.dumps(figure), flush=True)
    return 0


def _bench_paper(args: argparse.Namespace) -> int:
    from nearcast.bench.commands import Options, run_paper

    options = Options(
        size="full" if args.full else "small" if args.small else "usual",
        queries=args.queries or args.subscriptions,
        objects=args.objects,
        workers=args.workers,
        dispatchers=args.dispatchers,
        index=args.index[-1] if args.index else None,
        figures=tuple(name for name in args.figures.split(",") if name),
        seed=args.seed,
        constants=args.constants,
        keep=args.keep,
    )
    command = shlex.join([PROG, *args.argv])
    for figure in run_paper(args.name, options, _progress(args)):
        print(json.dumps(figure | {"command": command}), flush=True)
    return 0


def _bench_balance(args: argparse.Namespace) -> int:
    from nearcast.bench.balance import Setting, run
    from nearcast.bench.balance_replay import run_replay
    from nearcast.workload.shifting import Shifting

    usual, stream = Setting(), Shifting()
    setting = Setting(
        stream=Shifting(
            queries=args.queries or args.subscriptions or stream.queries,
            batch=args.batch_events or stream.batch,
            phase=args.phase or stream.phase,
            churn=args.churn_events,
            seed=args.seed,
        ),
        batches=args.batches or usual.batches,
        strategies=tuple(args.strategy) or usual.strategies,
    )
    say = _progress(args)
    if args.minutes:
        figures = run_replay(setting, args.minutes, args.keep, say)
    else:
        figures = run(setting, say)
    for figure in figures:
        print(json.dumps(figure), flush=True)
    return 0


def _strategies(args: argparse.Namespace) -> int:
    from nearcast.index import INDEXES
    from nearcast.routing import DEFAULTS, ROUTERS

    for kind, (default, why) in DEFAULTS.items():
        print(f"{kind}: default {default} ({why})")
        for router in ROUTERS.values():
            if kind in router.kinds:
                print(f"  router {router.name:10} {router.about} [{router.paper}]")
        for index in INDEXES.values():
            if kind in index.kinds:
                print(f"  index  {index.name:10} {index.about} [{index.paper}]")
    print("choose with --strategy KIND=ROUTER or KIND=ROUTER+INDEX")
    print("topk, terms: not supported yet")
    return 0


_COMMANDS = {
    "replay": _replay,
    "run": _run,
    "demo": _demo,
    "generate": _generate,
    "bench": _bench,
    "strategies": _strategies,
}
