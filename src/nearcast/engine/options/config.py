"""The TOML file of `nearcast run`: the options of a run, and where its events come from and go.

Options are those of `engine.options.run_options`; only places (checkpoint, sources, sinks) are
particular to the file. Each sink of type files has its own `format` and `keep`.
"""

from __future__ import annotations

import copy
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from nearcast.engine.feed.topics import TopicsOf
from nearcast.engine.options.config_sinks import (
    ConsoleSink,
    FilesSink,
    KafkaSink,
    SinkTable,
    dealt,
)
from nearcast.engine.options.effects import check
from nearcast.engine.options.run_options import (
    FOLDER,
    OPTIONS,
    STREAM,
    RunOptions,
    in_toml,
    suggest,
)
from nearcast.engine.output.sinks import SinkOf
from nearcast.model.errors import NearcastError, brief


class StateTable(msgspec.Struct, forbid_unknown_fields=True):
    """`[state]`, less its options."""

    checkpoint: str  # folder of the checkpoint


class FolderSource(msgspec.Struct, tag_field="type", tag="folder", forbid_unknown_fields=True):
    """`[[source]]` type = "folder": files that appear and grow."""

    path: str  # the folder


class SparkSource(msgspec.Struct, tag_field="type", tag="spark", forbid_unknown_fields=True):
    """`[[source]]` type = "spark": any streaming format that Spark reads, such as kafka."""

    format: str  # as Spark names it
    options: dict[str, str] = {}  # of that format
    schema: str | None = None  # as SQL declares columns, where the format needs one
    path: str | None = None  # for formats that read files


class KafkaSource(msgspec.Struct, tag_field="type", tag="kafka", forbid_unknown_fields=True):
    """`[[source]]` type = "kafka": topics of events, of subscriptions, of objects."""

    bootstrap: str  # some brokers, as HOST:PORT,HOST:PORT
    topics: list[str] = []  # of events of any sort, one JSON object per record
    subscriptions: list[str] = []  # compacted topics: key = id, value = query, no value: it ends
    objects: list[str] = []  # of publishes alone
    start: str = "earliest"  # earliest, latest or an RFC 3339 time: where a new checkpoint begins
    options: dict[str, str | int | bool] = {}  # of librdkafka, such as those of SASL and TLS


class _Places(msgspec.Struct, forbid_unknown_fields=True):
    """What the file says besides the options."""

    state: StateTable
    source: list[FolderSource | KafkaSource | SparkSource]
    sink: list[SinkTable]


@dataclass(frozen=True, slots=True)
class Config:
    """The whole file."""

    options: RunOptions
    checkpoint: str
    sources: list[str | TopicsOf] | SparkSource  # folders and topics
    out: str | None  # the folder of the run's own results; None: in the checkpoint, for a while
    sinks: list[SinkOf]  # that get them besides


# Options that are keys of tables, by table; the format belongs to sinks of type files alone.
_OPTIONS = {
    table: [n for n, o in OPTIONS.items() if o.table == table and not o.whole]
    for table in ("run", "state", "sink")
}
_KEYS: dict[str, list[str]] = {
    "run": _OPTIONS["run"],
    "state": [*StateTable.__struct_fields__, *_OPTIONS["state"]],
}
_ENTRIES: dict[str, dict[Any, list[str]]] = {  # of a list of tables, by their type
    "source": {
        "folder": ["type", *FolderSource.__struct_fields__],
        "kafka": ["type", *KafkaSource.__struct_fields__],
        "spark": ["type", *SparkSource.__struct_fields__],
    },
    "sink": {
        "files": ["type", *FilesSink.__struct_fields__, *_OPTIONS["sink"]],
        "kafka": ["type", *KafkaSink.__struct_fields__],
        "console": ["type", *ConsoleSink.__struct_fields__],
    },
}
_TABLES = list(dict.fromkeys([*(o.table for o in OPTIONS.values()), *_Places.__struct_fields__]))


def load_config(path: str) -> Config:
    """Read and check a config file; relative paths in it are relative to the file."""
    try:
        data = tomllib.loads(Path(path).read_text())
    except OSError as error:
        raise NearcastError(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise NearcastError(f"{path}: not valid TOML: {error}") from error
    try:
        return config_of(data, Path(path).resolve().parent)
    except (NearcastError, msgspec.ValidationError) as error:
        raise NearcastError(f"{path}: {error}") from error


def config_of(data: dict[str, Any], base: Path) -> Config:
    """Check what a file says; `data` stays as it is. Paths are relative to `base`."""
    data = copy.deepcopy(data)
    _refuse_unknown(data)
    named = _take_options(data)
    of_sinks = _take_options_of_sinks(data)
    places = msgspec.convert(data, _Places)
    streams = [s for s in places.source if isinstance(s, SparkSource)]
    if not places.source or (streams and len(places.source) > 1):
        raise NearcastError("give sources of type folder and kafka, or one of type spark")
    followed: list[str | TopicsOf] = []
    for source in places.source:
        if isinstance(source, FolderSource):
            followed.append(str(base / source.path))
        elif isinstance(source, KafkaSource):
            followed.append(
                TopicsOf(
                    source.bootstrap, tuple(source.topics), tuple(source.subscriptions),
                    tuple(source.objects), source.start, dict(source.options),
                )
            )  # fmt: skip
    first, others = dealt(places.sink, of_sinks, base)
    if first is not None:
        named |= {"format": first.format, "keep": first.keep}
    options = RunOptions.of(named)
    check(options, STREAM if streams else FOLDER)
    checkpoint = str(base / places.state.checkpoint)
    out = first.path if first else None
    return Config(options, checkpoint, streams[0] if streams else followed, out, others)


def _refuse_unknown(data: dict[str, Any]) -> None:
    """Refuse tables and keys that do not exist, with the nearest that does."""
    for table, given in data.items():
        if table not in _TABLES:
            raise NearcastError(f"[{table}]: there is no such table; {suggest(table, _TABLES)}")
        if table in _ENTRIES:
            for entry in given if isinstance(given, list) else []:
                known = _ENTRIES[table].get(entry.get("type")) if isinstance(entry, dict) else None
                if known is not None:  # else `_Places` says what is wrong
                    _refuse_keys(f"[[{table}]]", entry, known)
        elif table in _KEYS:
            if not isinstance(given, dict):
                raise NearcastError(f"[{table}]: {brief(given)} is not a table")
            _refuse_keys(f"[{table}]", given, _KEYS[table])


def _refuse_keys(where: str, given: dict[str, Any], known: list[str]) -> None:
    for key in given:
        if key in known:
            continue
        if key in OPTIONS:
            raise NearcastError(f"{where} {key}: it belongs to {in_toml(key)}")
        raise NearcastError(f"{where} {key}: there is no such key; {suggest(key, known)}")


def _take_options(data: dict[str, Any]) -> dict[str, Any]:
    """The options by name; they are taken out of the tables."""
    named = {n: data.pop(o.table) for n, o in OPTIONS.items() if o.whole and o.table in data}
    for table, entry in (("run", data.pop("run", {})), ("state", data.get("state", {}))):
        for name in _OPTIONS[table]:
            if isinstance(entry, dict) and name in entry:
                named[name] = entry.pop(name)
    return named


def _take_options_of_sinks(data: dict[str, Any]) -> list[dict[str, Any]]:
    """The same of each sink, for it alone."""
    sinks = data.get("sink")
    return [
        {name: sink.pop(name) for name in _OPTIONS["sink"] if name in sink}
        if isinstance(sink, dict)
        else {}
        for sink in (sinks if isinstance(sinks, list) else [])
    ]
