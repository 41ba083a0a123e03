"""The TOML file of `nearcast run`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import msgspec

from nearcast.model.errors import NearcastError


class RunTable(msgspec.Struct, forbid_unknown_fields=True):
    """`[run]`"""

    space: str = "geographic"
    bounds: tuple[float, float, float, float] | None = None
    shards: int = 2
    changes: str = "every"
    trigger: str = "1 second"
    batch_events: int = 500_000
    master: str = "local[*]"
    lateness_ms: int = 3_600_000
    warmup: int = 0


class StateTable(msgspec.Struct, forbid_unknown_fields=True):
    """`[state]`"""

    checkpoint: str
    arena: str = ""


class FolderSource(msgspec.Struct, tag_field="type", tag="folder", forbid_unknown_fields=True):
    """`[[source]]` type = "folder": files that appear and grow."""

    path: str


class SparkSource(msgspec.Struct, tag_field="type", tag="spark", forbid_unknown_fields=True):
    """`[[source]]` type = "spark": any streaming format that Spark reads, such as kafka."""

    format: str
    options: dict[str, str] = {}
    schema: str | None = None
    path: str | None = None


class FilesSink(msgspec.Struct, tag_field="type", tag="files", forbid_unknown_fields=True):
    """`[[sink]]` type = "files": notifications and rejects in a folder, each exactly once."""

    path: str
    format: str = "jsonl"


class ConsoleSink(msgspec.Struct, tag_field="type", tag="console", forbid_unknown_fields=True):
    """`[[sink]]` type = "console": notifications on standard output as well."""


class Config(msgspec.Struct, forbid_unknown_fields=True):
    """The whole file."""

    state: StateTable
    source: list[FolderSource | SparkSource]
    sink: list[FilesSink | ConsoleSink]
    run: RunTable = msgspec.field(default_factory=RunTable)
    strategies: dict[str, str] = {}
    balance: dict[str, Any] = {}  # as `routing.balance.Balance` has it; none: there is none
    plan: dict[str, float] = {}  # parameters of the strategies' plans
    spark: dict[str, Any] = {}  # settings of the Spark session


def load_config(path: str) -> Config:
    """Read and check a config file; relative paths in it are relative to the file."""
    try:
        data = tomllib.loads(Path(path).read_text())
    except OSError as error:
        raise NearcastError(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise NearcastError(f"{path}: not valid TOML: {error}") from error
    try:
        config = msgspec.convert(data, Config)
    except msgspec.ValidationError as error:
        raise NearcastError(f"{path}: {error}") from error
    folders = [s for s in config.source if isinstance(s, FolderSource)]
    streams = [s for s in config.source if isinstance(s, SparkSource)]
    if not config.source or len(streams) > 1 or (folders and streams):
        raise NearcastError(f"{path}: give one or more folder sources, or one spark source")
    if sum(isinstance(s, FilesSink) for s in config.sink) != 1:
        raise NearcastError(f"{path}: give exactly one [[sink]] of type files")
    base = Path(path).resolve().parent
    config.state.checkpoint = str(base / config.state.checkpoint)
    for part in [*folders, *config.sink]:
        if isinstance(part, FolderSource | FilesSink):
            part.path = str(base / part.path)
    return config
