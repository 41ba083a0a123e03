"""The commands of a service: `serve`, and `tokens` beside it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from nearcast.model.arguments import positive
from nearcast.model.errors import NearcastError

__all__ = ["COMMANDS", "add_commands"]

_TOKENS = "tokens.json"


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


def _serve(args: argparse.Namespace) -> int:
    try:
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


COMMANDS = {"serve": _serve, "tokens": _tokens}
