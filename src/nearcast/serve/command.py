"""The commands of a service: `serve`, and `tokens` beside it."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from nearcast.model.arguments import positive
from nearcast.model.errors import NearcastError

__all__ = ["COMMANDS", "add_commands"]

_TOKENS = "tokens.json"
_DATA = "nearcast-data"


def add_commands(commands: Any) -> None:
    """Declare them."""
    serve = commands.add_parser("serve", help="run, with an HTTP service in front")
    serve.add_argument("config", nargs="?", metavar="CONFIG.toml")
    serve.add_argument("--host", metavar="H", help="default: 127.0.0.1")
    serve.add_argument("--port", type=positive, metavar="P", help="default: 8080")
    serve.add_argument("--data", metavar="DIR", help="default: nearcast-data")
    serve.add_argument("--demo", action="store_true", help="a city posts without end")

    tokens = commands.add_parser("tokens", help="who may use a service")
    what = tokens.add_subparsers(dest="what", required=True, metavar="WHAT")
    add = what.add_parser("add", help="make a token and print it, this once")
    add.add_argument("name")
    add.add_argument("--owner", required=True, help="whose subscriptions it has; * for everyone's")
    add.add_argument(
        "--rights", required=True, metavar="R,R", help="of publish, subscribe, ask, admin"
    )
    for one in (add, what.add_parser("remove"), what.add_parser("list")):
        one.add_argument("--file", default=_TOKENS, metavar="FILE", help=f"default: {_TOKENS}")
    what.choices["remove"].add_argument("name")

    webhooks = commands.add_parser("webhooks", help="webhooks of a service, and what they missed")
    what = webhooks.add_subparsers(dest="what", required=True, metavar="WHAT")
    listed = what.add_parser("list", help="all of them, and how many notifications were given up")
    replay = what.add_parser("replay", help="post again what was given up, in order")
    replay.add_argument("name")
    replay.add_argument("--owner", default="", help="of the token that registered it")
    replay.add_argument(
        "--private", action="store_true", help="its address may be one of a private network"
    )
    for one in (listed, replay):
        one.add_argument("--data", default=_DATA, metavar="DIR", help=f"default: {_DATA}")


def _serve(args: argparse.Namespace) -> int:
    try:
        import_module("wsproto")  # uvicorn looks for it late, and would fail again and again
        from nearcast.gateway.__main__ import check_address
    except ModuleNotFoundError as error:
        raise _missing(error) from None
    from nearcast.serve.config import load_serving
    from nearcast.serve.supervisor import supervise

    serving = load_serving(args.config, host=args.host, port=args.port, data=args.data)
    check_address(serving.services[0])
    if args.demo and serving.services[0].tokens:
        raise NearcastError("serve: --demo is for a service without tokens; leave one of them out")
    return supervise(serving, args.demo)


def _missing(error: ModuleNotFoundError) -> NearcastError:
    return NearcastError(f"serve: {error.name} is missing: pip install 'nearcast[serve]'")


def _tokens(args: argparse.Namespace) -> int:
    try:
        from nearcast.gateway.tokens import new_token, read_tokens, remove_token
    except ModuleNotFoundError as error:
        raise _missing(error) from None
    path = Path(args.file)
    if args.what == "add":
        rights = tuple(r for r in args.rights.split(",") if r)
        print(new_token(path, args.name, args.owner, rights))
        print(f"{path}: knows {args.name!r} by a digest; keep the token itself", file=sys.stderr)
    elif args.what == "remove":
        remove_token(path, args.name)
    else:
        for token in read_tokens(path):
            print(f"{token.name}\t{token.owner}\t{','.join(token.rights)}")
    return 0


def _webhooks(args: argparse.Namespace) -> int:
    try:
        from nearcast.gateway.replaying import find_hook, known_hooks, replay
    except ModuleNotFoundError as error:
        raise _missing(error) from None
    data = Path(args.data)
    if args.what == "list":
        for state in known_hooks(data):
            how = "failing" if state.failures else "delivering"
            print(f"{state.name}\t{state.tenant or '*'}\t{how}\t{state.dead} given up")
        return 0
    sent, reason = replay(data, find_hook(data, args.name, args.owner), args.private)
    print(f"{args.name}: {sent} notifications posted again", file=sys.stderr)
    if reason:
        raise NearcastError(f"webhooks: {args.name}: {reason}; the rest waits")
    return 0


COMMANDS = {"serve": _serve, "tokens": _tokens, "webhooks": _webhooks}
