"""The command line (docs/spec.md section 7): parse, call, report; one line for what is wrong."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from nearcast import __version__
from nearcast.engine.options.run_options import OPTIONS, RunOptions, flag, reference
from nearcast.model.arguments import PROG, Parser, natural, positive
from nearcast.model.errors import NearcastError
from nearcast.serve.command import COMMANDS as SERVICE
from nearcast.serve.command import add_commands as add_service


def _add_options(replay: argparse.ArgumentParser) -> None:
    """The options of a run; `engine.options.run_options` reads and checks them."""
    for row in reference():
        if row.flag:
            value = OPTIONS[row.name].value
            replay.add_argument(
                row.flag,
                dest=row.name,
                action="append",
                metavar=f"{value.form} ..." if value.several else value.form,
                help=f"{row.meaning} (default: {row.default})".replace("%", "%%"),
            )


def _toml_help() -> str:
    """The keys of a config file, for the help of `nearcast run`."""
    lines = ["options in CONFIG.toml, beside [state] checkpoint, [[source]] and [[sink]]:"]
    for row in reference():
        lines.append(f"  {row.toml}: {row.type}")
        lines.append(f"      {row.meaning} (default: {row.default})")
    return "\n".join(lines)


def _parser() -> Parser:
    parser = Parser(prog=PROG, description="Location-aware publish/subscribe on Spark.")
    parser.add_argument("--version", action="version", version=f"{PROG} {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    replay = commands.add_parser("replay", help="run whole logs through Spark and stop")
    replay.add_argument(
        "events", nargs="+", metavar="EVENTS", help="JSONL, .gz, Parquet, or folders"
    )
    replay.add_argument("--out", required=True, metavar="DIR", help="where results go")
    replay.add_argument("--checkpoint", metavar="DIR", help="go on where it stopped")
    _add_options(replay)

    run = commands.add_parser(
        "run",
        help="the same, live, from sources to sinks, until stopped",
        epilog=_toml_help(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    run.add_argument("config", metavar="CONFIG.toml")
    run.add_argument(
        "--metrics",
        metavar="HOST:PORT",
        help="serve /metrics and /healthz there, or on that port of 127.0.0.1 (default: off)",
    )
    run.add_argument(
        "--log", choices=("text", "json"), default="text", help="on standard error; default: text"
    )

    status = commands.add_parser("status", help="what a run holds, live or stopped")
    status.add_argument("checkpoint", metavar="CHECKPOINT", help="its folder")
    status.add_argument("--json", action="store_true", help="as JSON, for scripts")

    add_service(commands)

    fit = commands.add_parser("fit", help="the idf table of a corpus (keyword, df; N), for --idf")
    fit.add_argument("events", nargs="+", metavar="EVENTS", help="JSONL, .gz, Parquet, or folders")
    fit.add_argument("--out", required=True, metavar="FILE", help=".jsonl or .jsonl.gz")
    fit.add_argument(
        "--space", choices=("geographic", "planar"), default="geographic", help="of its positions"
    )

    demo = commands.add_parser("demo", help="a live city on this machine: no input needed")
    demo.add_argument("--seconds", type=float, default=30.0, metavar="S")
    demo.add_argument("--out", default=None, metavar="DIR", help="default: nearcast-demo")
    demo.add_argument("--shards", type=positive, default=2, metavar="N")
    demo.add_argument("--seed", type=int, default=1, metavar="S")

    generate = commands.add_parser("generate", help="write a seeded event log")
    generate.add_argument("name", metavar="NAME", help="`generate list` names them")
    generate.add_argument("--objects", type=natural, default=None, metavar="N")
    generate.add_argument("--subscriptions", type=natural, default=None, metavar="N")
    generate.add_argument("--seed", type=int, default=None, metavar="S", help="default: 0")
    generate.add_argument("--out", metavar="FILE", help=".jsonl, .jsonl.gz or .parquet")

    commands.add_parser("bench", help="an experiment; JSON lines on stdout")

    commands.add_parser(
        "strategies", help="what can be chosen for which kind, and from which paper"
    )
    return parser


def _is_pair(word: str) -> bool:
    """Whether a further word behind a flag of pairs is NAME=VALUE, and no flag and no log."""
    return "=" in word and not word.startswith("-") and not Path(word).exists()


def _joined(argv: Sequence[str]) -> list[str]:
    """Values that argparse would take for something else, joined to their flag.

    Bounds may begin with a minus, which looks like a flag. NAME=VALUE may be several, and what
    follows them may be a log.
    """
    several = {flag(name) for name, option in OPTIONS.items() if option.value.several}
    words = list(argv)
    joined: list[str] = []
    while words:
        word = words.pop(0)
        if (word == "--bounds" or word in several) and words:
            joined.append(f"{word}={words.pop(0)}")
            while word in several and words and _is_pair(words[0]):
                joined.append(f"{word}={words.pop(0)}")
        else:
            joined.append(word)
    return joined


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; the exit status."""
    given = sys.argv[1:] if argv is None else list(argv)
    try:
        if given[:1] == ["bench"]:  # has a parser of its own
            return _bench(given[1:])
        args = _parser().parse_args(_joined(given))
        return int(_COMMANDS[args.command](args))
    except NearcastError as error:
        print(f"{PROG}: {error}", file=sys.stderr)
        return getattr(error, "exit_status", 2)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("nearcast"):
            raise
        print(f"{PROG}: {error.name} is missing: pip install 'nearcast[engine]'", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{PROG}: stopped", file=sys.stderr)
        return 130


def _replay(args: argparse.Namespace) -> int:
    from nearcast.engine.options.command import replay

    given = {name: getattr(args, name, None) for name in OPTIONS}
    options = RunOptions.read({name: words for name, words in given.items() if words})
    replay(args.events, args.out, args.checkpoint, options)
    return 0


def _run(args: argparse.Namespace) -> int:
    from nearcast.engine.options.command import run

    run(args.config, metrics=args.metrics, log=args.log)
    return 0


def _status(args: argparse.Namespace) -> int:
    import json

    from nearcast.engine.operations.status import status, table

    found = status(Path(args.checkpoint))
    print(json.dumps(found, indent=2) if args.json else table(found))
    return 0


def _fit(args: argparse.Namespace) -> int:
    from nearcast.kinds import KINDS
    from nearcast.model.space import Space
    from nearcast.wire.idf import Fit
    from nearcast.wire.logs import find_logs

    out = Path(args.out)
    if not out.name.endswith((".jsonl", ".jsonl.gz")):
        raise NearcastError(f"fit: {out}: write a name that ends in .jsonl or .jsonl.gz")
    fit = Fit(Space(args.space), KINDS)
    for name, _ in find_logs(args.events):
        fit.add(name)
    if not fit.objects:
        raise NearcastError(f"fit: there is no valid publish in {', '.join(args.events)}")
    fitted = fit.fitted()
    fitted.write(out)
    refused = f", {fit.rejects:,} events refused" if fit.rejects else ""
    print(f"{out}: {len(fitted.df):,} keywords of {fit.objects:,} posts{refused}", file=sys.stderr)
    return 0


def _demo(args: argparse.Namespace) -> int:
    from nearcast.demo.run import run_demo

    return run_demo(seconds=args.seconds, out=args.out, shards=args.shards, seed=args.seed)


def _generate(args: argparse.Namespace) -> int:
    from nearcast.workload import GENERATORS, generate

    if args.name == "list":
        for option in ("objects", "subscriptions", "seed", "out"):
            if getattr(args, option) is not None:
                raise NearcastError(f"generate: --{option} has no effect: `list` writes no log")
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
        written = generate(args.name, objects, subscriptions, args.seed or 0, args.out)
    except (ValueError, OSError) as error:
        raise NearcastError(str(error)) from error
    print(f"{args.out}: {written:,} events", file=sys.stderr)
    return 0


def _bench(argv: Sequence[str]) -> int:
    try:
        from nearcast_bench.cli import main as run_experiment
    except ModuleNotFoundError as error:
        if error.name != "nearcast_bench":
            raise
        raise NearcastError(
            "bench: the experiments are not installed: run `make setup` in a clone of nearcast"
        ) from error
    return run_experiment(argv)


def _strategies(_: argparse.Namespace) -> int:
    from nearcast.kinds import KINDS
    from nearcast.objects import DEFAULT, REASON, STORES
    from nearcast.routing import ROUTERS

    for kind in KINDS.values():
        print(f"{kind.name}: default {kind.default} ({kind.reason})")
        for name in kind.routers:
            router = ROUTERS[name]
            print(f"  router {router.name:15} {router.about} [{router.paper}]")
        for index in kind.index_classes():
            print(f"  index  {index.name:15} {index.about} [{index.paper}]")
        for variant in kind.variants.values():
            print(f"  /      {variant.name:15} {variant.about} [{variant.paper}]")
    print(f"objects that stay: default {DEFAULT} ({REASON})")
    for store in STORES.values():
        print(f"  store  {store.name:15} {store.about} [{store.paper}]")
    print("choose with --strategy KIND=ROUTER, ROUTER+INDEX or ROUTER+INDEX/VARIANT, --store NAME")
    return 0


_COMMANDS = {
    "replay": _replay,
    "run": _run,
    "status": _status,
    "fit": _fit,
    "demo": _demo,
    "generate": _generate,
    "strategies": _strategies,
    **SERVICE,
}
