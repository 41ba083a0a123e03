"""The configuration of `nearcast serve`: that of `nearcast run`, a table `[serve]`, and defaults.

Places are the service's own: everything is in its folder. Checked as a whole before anything
starts; what the processes then read are two files there, `engine.toml` and `service-N.json`.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from nearcast.engine.options.config import FolderSource, config_of
from nearcast.engine.options.run_options import RunOptions
from nearcast.engine.options.spans import window_of
from nearcast.gateway.settings import Limits, Service
from nearcast.model.errors import NearcastError
from nearcast.wire.durable import make_folder, write_atomic

__all__ = ["DATA", "Serving", "load_serving", "write_serving"]

DATA = "nearcast-data"
RETAIN = "24h"
"""How far back asks reach unless `[run] retain` says otherwise."""
KEEP = "7 days"


class ServeTable(msgspec.Struct, forbid_unknown_fields=True):
    """`[serve]`."""

    data: str = DATA  # folder of everything
    host: str = "127.0.0.1"
    port: int = 8080
    gateways: int = 1  # processes; the others have the next ports
    keep: str = KEEP  # how long notifications can be read again
    tokens: str = ""  # file of `nearcast tokens`
    certificate: str = ""  # of TLS, in PEM
    key: str = ""
    origins: list[str] = []  # pages of other origins that may call it (CORS); "*": all
    # Whether webhooks may go to addresses of this network; unless it says: where no tokens are
    # needed, since only this machine reaches such a service, and needs no way into itself.
    private_webhooks: bool | None = None
    tiles: str = ""  # URL of map tiles for the page
    limits: Limits = Limits()  # of a token that says none


@dataclass(frozen=True, slots=True)
class Serving:
    """What is to be started."""

    data: Path
    engine: dict[str, Any]  # the configuration of `nearcast run`
    services: list[Service]

    @property
    def engine_file(self) -> Path:
        """Where the engine finds its part."""
        return self.data / "engine.toml"

    def service_file(self, n: int) -> Path:
        """Where a gateway finds its part."""
        return self.data / f"service-{n}.json"


def load_serving(
    path: str | None, *, host: str | None = None, port: int | None = None, data: str | None = None
) -> Serving:
    """Read and check a file, if there is one; what is given by name goes first."""
    found: dict[str, Any] = {}
    base = Path.cwd()
    if path is not None:
        try:
            found = tomllib.loads(Path(path).read_text())
        except OSError as error:
            raise NearcastError(f"{path}: {error.strerror}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise NearcastError(f"{path}: not valid TOML: {error}") from error
        base = Path(path).resolve().parent
    try:
        return _serving(found, base, host, port, data)
    except (NearcastError, msgspec.ValidationError) as error:
        raise NearcastError(f"{path}: {error}" if path else f"serve: {error}") from error


def _serving(
    found: dict[str, Any], base: Path, host: str | None, port: int | None, data: str | None
) -> Serving:
    table = msgspec.convert(found.pop("serve", {}), ServeTable)
    table.host, table.port = host or table.host, table.port if port is None else port
    if not 0 < table.port < 65_536 or not 1 <= table.gateways <= 64:
        raise NearcastError("[serve] port is from 1 to 65535, gateways from 1 to 64")
    if bool(table.certificate) != bool(table.key):
        raise NearcastError("[serve] certificate and key belong together; give both or none")
    folder = (Path(data) if data is not None else base / table.data).resolve()
    engine = _engine(found, folder, table.keep)
    options = config_of(engine, base).options
    services = [_service(table, options, folder, base, n) for n in range(table.gateways)]
    return Serving(folder, engine, services)


def _engine(found: dict[str, Any], folder: Path, keep: str) -> dict[str, Any]:
    """What `nearcast run` gets: the places of the service, and its defaults."""
    if "checkpoint" in found.get("state", {}):
        raise NearcastError("[state] checkpoint has no effect: everything is in [serve] data")
    sources = found.pop("source", [])
    if any(source.get("type") != FolderSource.__struct_config__.tag for source in sources):
        raise NearcastError("[[source]]: a service reads its requests, and sources of type folder")
    inbox = {"type": "folder", "path": str(folder / "inbox")}
    own = {"type": "files", "path": str(folder), "keep": keep}
    return {
        **found,
        "run": {"retain": RETAIN, **found.get("run", {})},
        "state": {**found.get("state", {}), "checkpoint": str(folder / "checkpoint")},
        "source": [inbox, *sources],
        "sink": [own, *found.get("sink", [])],  # what clients read, then what else is wanted
    }


def _service(table: ServeTable, options: RunOptions, folder: Path, base: Path, n: int) -> Service:
    private = table.private_webhooks

    def place(name: str) -> str:
        return str((base / name).resolve()) if name else ""

    return Service(
        data=str(folder),
        host=table.host,
        port=table.port + n,
        name=f"g{n}",
        space=options.space,
        plugins=options.plugins,
        kinds=options.kinds,
        window=window_of(options.window),
        maxdist=options.maxdist,
        bounds=options.bounds,
        retain_ms=options.retain_ms("arrival"),
        fitted=bool(options.idf),
        archive=bool(options.archive),
        tokens=place(table.tokens),
        certificate=place(table.certificate),
        key=place(table.key),
        origins=tuple(table.origins),
        private_webhooks=not table.tokens if private is None else private,
        limits=table.limits,
        tiles=table.tiles,
    )


def write_serving(serving: Serving) -> None:
    """Write what the processes read."""
    make_folder(serving.data / "inbox")
    write_atomic(serving.engine_file, as_toml(serving.engine).encode())
    for n, service in enumerate(serving.services):
        data = msgspec.json.format(msgspec.json.encode(service))
        write_atomic(serving.service_file(n), data)


def as_toml(tables: dict[str, Any]) -> str:
    """Tables, and lists of tables, as TOML."""
    parts = ["# Made by `nearcast serve` at every start; change its own configuration instead."]
    for name, table in tables.items():
        for entry in table if isinstance(table, list) else [table]:
            parts.append(f"\n[[{name}]]" if isinstance(table, list) else f"\n[{name}]")
            parts += [f"{_key(key)} = {_value(value)}" for key, value in entry.items()]
    return "\n".join(parts) + "\n"


def _key(name: str) -> str:
    return json.dumps(name)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value)  # strings, numbers and truth are written as in JSON
