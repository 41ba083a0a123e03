"""`python -m nearcast.gateway FILE`: one gateway as a process; `nearcast serve` starts it."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import sys
from pathlib import Path

import uvicorn

from nearcast.gateway.app import create_app
from nearcast.gateway.settings import Service, load
from nearcast.model.errors import NearcastError

_STOP_S = 5
_LOOK_S = 0.2


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_address(service: Service) -> None:
    """Refuse to be reachable for everyone without tokens."""
    if not service.tokens and not is_loopback(service.host):
        raise NearcastError(
            f"serve: {service.host} can be reached from outside, and there are no tokens; make "
            "some with `nearcast tokens`, name their file in [serve] tokens, or use 127.0.0.1"
        )


def main(path: str) -> int:
    """Serve until SIGINT or SIGTERM; the exit status."""
    logging.basicConfig(format="nearcast: gateway: %(message)s", stream=sys.stderr)
    try:
        service = load(Path(path))
        check_address(service)
        app = create_app(service)
    except NearcastError as error:
        print(f"nearcast: {error}", file=sys.stderr)
        return 2
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            host=service.host,
            port=service.port,
            access_log=False,  # addresses of streams may carry a token
            log_level="warning",
            ssl_certfile=service.certificate or None,
            ssl_keyfile=service.key or None,
            timeout_graceful_shutdown=_STOP_S,
            timeout_keep_alive=30,
            ws_max_size=1 << 20,
            ws="wsproto",
            backlog=4096,
            server_header=False,
        )
    )

    async def close_streams() -> None:
        """Open streams would hold up the end: they do not end by themselves."""
        while not server.should_exit:
            await asyncio.sleep(_LOOK_S)
        app.state.gateway.hub.close()
        await asyncio.sleep(_STOP_S)

    app.state.gateway.beside(close_streams)
    server.run()
    return 0 if server.started else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
