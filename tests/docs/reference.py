"""The tables of docs/spec.md that say what the code says, made from the code.

`python -m tests.docs.reference` writes them anew; `test_spec` fails where the page differs.
What a field means stands as a comment behind it, where the code declares it.
"""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect as types

from nearcast.cli import _parser
from nearcast.engine.options.config import (
    FolderSource,
    KafkaSource,
    SparkSource,
    StateTable,
)
from nearcast.engine.options.config_sinks import ConsoleSink, FilesSink, KafkaSink
from nearcast.engine.options.run_options import reference
from nearcast.engine.options.settings import Settings
from nearcast.engine.output.reports import summarise
from nearcast.kinds import KINDS
from nearcast.routing import ROUTERS
from nearcast.routing.balance import Balance
from nearcast.wire import shapes
from nearcast.wire.notifications import answers_schema, notifications_schema
from nearcast.wire.tables import REJECTS

PAGE = Path(__file__).parents[2] / "docs" / "spec.md"
BLOCK = re.compile(r"(<!-- made by tests/docs/reference.py: (\w+) -->\n)(.*?)(<!-- end -->)", re.S)
Rows = Iterable[Sequence[str]]


def table(head: Sequence[str], rows: Rows) -> str:
    """A table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(_cell(c) for c in line)} |\n" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def comments(declared: type) -> dict[str, str]:
    """What a class says of its fields: the comment behind each, or the lines of one above it."""
    found: dict[str, str] = {}
    above: list[str] = []
    for line in inspect.getsource(declared).splitlines():
        text = line.strip()
        if text.startswith("#"):
            above.append(text.removeprefix("#").strip())
            continue
        if field := re.match(r"(\w+): ", text):
            behind = re.search(r"  # (?!noqa|type:)(.+)$", line)
            found[field[1]] = behind[1] if behind else " ".join(above)
        above = []
    return found


# -- types ---------------------------------------------------------------------------------------

_SIMPLE: dict[type, str] = {
    types.FloatType: "number",
    types.BoolType: "true or false",
    types.DictType: "object",
    types.NoneType: "null",
    types.AnyType: "any value",
}


def named(type_: Any) -> str:
    """A type of msgspec, for people."""
    if isinstance(type_, types.StrType):
        if type_.max_length is None:
            return "string"
        return f"string of {type_.min_length} to {type_.max_length} characters"
    if isinstance(type_, types.IntType):
        return "integer" if type_.ge is None else f"integer, at least {type_.ge}"
    if isinstance(type_, types.TupleType):
        return f"[{', '.join(named(t) for t in type_.item_types)}]"
    if isinstance(type_, types.ListType):
        item = named(type_.item_type)
        return (
            f"list of {item}s" if isinstance(type_.item_type, types.StrType) else f"list of {item}"
        )
    if isinstance(type_, types.LiteralType):
        return " or ".join(f'"{value}"' for value in type_.values)
    if isinstance(type_, types.UnionType):
        some = [t for t in type_.types if not isinstance(t, types.NoneType)]
        if all(isinstance(t, types.StructType) for t in some):
            return "object"
        return " or ".join(named(t) for t in some)
    return _SIMPLE.get(type(type_)) or str(type_)


def _fields(shape: type[msgspec.Struct], said: dict[str, str]) -> Rows:
    info = types.type_info(shape)
    assert isinstance(info, types.StructType)
    yield f"`{info.tag_field}`", f'"{info.tag}"', "yes", ""
    for field in info.fields:
        if said[field.encode_name].startswith("not in this version"):
            continue
        needed = "yes" if field.required else "no"
        yield f"`{field.encode_name}`", named(field.type), needed, said[field.encode_name]


# -- events and results --------------------------------------------------------------------------

# In docs/spec.md only what this version takes: others are refused.
EVENTS = (shapes.PublishShape, shapes.SubscribeShape, shapes.UnsubscribeShape, shapes.AskShape)
QUERIES = tuple(kind.query for kind in KINDS.values())
NOTIFICATIONS = notifications_schema(KINDS)
ANSWERS = answers_schema(KINDS)
_OF_QUERIES = {
    "region": "`bbox`, `circle`, or a GeoJSON `Polygon` or `MultiPolygon`; edges belong to it",
    "at": "the place that distances are measured from",
    "k": "how many objects the result holds, at most",
    "where": "condition on keywords (section 2); without one, or an empty one: always true",
    "window": "milliseconds; only objects younger than that are in the result",
    "keywords": "each taken whole, a repeated one once; an object must share one of them",
    "alpha": "how much nearness weighs in a score, from 0 to 1; the words weigh the rest",
    "maxdist": "how far away nearness is 0; without it that of the run (section 4)",
}
_OF_TERMS = {
    "k": "how many keywords are reported, at most",
    "window": "milliseconds; objects with `t - window < time <= t` count at a moment t",
    "every": "milliseconds from one moment to the next; the first comes `every` after `time`",
    "exclude": "keywords that do not count, normalised as those of objects are",
}
_OF_NOTIFICATIONS = {
    "id": "the subscription",
    "event": "`match`, `enter`, `leave` or `terms`",
    "object": "id of the object; not with `terms`",
    "time": "of the object or moment that caused it, epoch milliseconds",
    "distance": "only with `enter` of a `knn`: metres, or units of the plane",
    "score": "only with `enter` of a `topk`: from 0 to 1",
    "terms": "only with `terms`: list of [keyword, count], in Parquet as JSON text",
    "owner": "of the subscription, if it has one",
    "meta": "of the subscription, if it has one; in Parquet as JSON text",
}
_OF_ANSWERS = {
    "id": "the ask",
    "event": "`answer`",
    "time": "of the ask, epoch milliseconds",
    "objects": "what it found, in the order of section 5: `id` and value of each, and the `fields` "
    "of the ask; in Parquet as JSON text",
    "terms": "only of `terms`: list of [keyword, count], in Parquet as JSON text",
}
_OF_REJECTS = {
    "file": "the log, as it was named; of Kafka `topic T, partition P`",
    "line": "number of the line or row in it, from 1; 0: the file as a whole; of Kafka the offset",
    "reason": "one line; it begins with the field that is wrong, if one is",
    "event": "the first 200 characters of what was refused",
}
_OF_SUMMARY = {
    "events": "handled, by `op`; `rejected`; `total`",
    "notifications": "by kind and event; `total`",
    "rejects": "how many events were refused",
    "rejects_by_kind": "the same by the field that was wrong; `line`: not readable as an event",
    "seconds": "that this call took",
    "events_per_second": "of this call; null if it took no time",
    "batches": "of all calls with this checkpoint",
    "resumed_after_batches": "batches of earlier calls",
    "shards": "by shard: subscriptions, what it did in all batches, bytes",
    "state_bytes": "of all shards, in the checkpoint",
    "arena_bytes": "of all shards, in their arenas",
    "balance": "its settings, `adjustments` with loads before and after, and what was `left_alone`",
    "settings": "of the run",
}


def events() -> str:
    """Fields of events."""
    head = ["field", "type", "needed", "meaning"]
    parts = [(s, comments(s)) for s in EVENTS] + [
        (q, _OF_QUERIES | (_OF_TERMS if "every" in q.__struct_fields__ else {})) for q in QUERIES
    ]
    return "\n".join(
        f"{inspect.getdoc(shape)}\n\n{table(head, _fields(shape, said))}" for shape, said in parts
    )


def _columns(schema: Any, said: dict[str, str], but: str = "") -> str:
    rows = [
        (f"`{f.name}`", str(f.type), "no" if f.nullable else "yes", said[f.name])
        for f in schema
        if f.name != but
    ]
    return table(["field", "type", "always", "meaning"], rows)


def notifications() -> str:
    """Fields of notifications."""
    return _columns(NOTIFICATIONS, _OF_NOTIFICATIONS)


def answers() -> str:
    """Fields of answers."""
    return _columns(ANSWERS, _OF_ANSWERS)


def rejects() -> str:
    """Fields of rejects."""
    rows = [(f"`{f.name}`", _OF_REJECTS[f.name]) for f in REJECTS if f.name != "pos"]
    return table(["field", "meaning"], rows)


def summary() -> str:
    """Keys of summary.json."""
    keys = summarise([], 0.0, Settings())
    return table(["key", "meaning"], [(f"`{key}`", _OF_SUMMARY[key]) for key in keys])


# -- commands and settings -----------------------------------------------------------------------


def commands() -> str:
    """Every command with its arguments; those of `bench` are in its own help."""
    parser = _parser()
    chosen = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    helps = {a.dest: a.help or "" for a in chosen._choices_actions}
    parts = []
    for name, command in chosen.choices.items():
        actions = [a for a in command._actions if not isinstance(a, argparse._HelpAction)]
        if name == "bench" or not actions:
            parts.append(f"`nearcast {name}`: {helps[name]}\n")
            continue
        rows = [(f"`{_written(a)}`", _default(a), a.help or "") for a in actions]
        listed = table(["argument", "default", "meaning"], rows)
        parts.append(f"`nearcast {name}`: {helps[name]}\n\n{listed}")
    return "\n".join(parts)


def _written(action: argparse.Action) -> str:
    value = action.metavar or ("|".join(map(str, action.choices)) if action.choices else "")
    if not action.option_strings:
        return f"{value} ..." if action.nargs == "+" else str(value)
    return f"{action.option_strings[0]} {value}".strip()


def _default(action: argparse.Action) -> str:
    if action.required:
        return "needed"
    return "" if action.default in (None, []) else f"`{action.default}`"


def options() -> str:
    """The options of a run: keyword arguments of `Engine`, flags of `replay`, keys of the file."""
    head = ["`Engine`", "`replay`", "config file", "type", "default", "meaning", "applies to"]
    rows = [
        (f"`{r.name}`", _code(r.flag), _code(r.toml), r.type, r.default, r.meaning, r.applies)
        for r in reference()
    ]
    return table(head, rows)


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def places() -> str:
    """Keys of the config file that are no options of a run."""
    rows = []
    for where, shape in PLACES:
        said = comments(shape)
        info = types.type_info(shape)
        assert isinstance(info, types.StructType)
        name = f'{where} `type = "{info.tag}"`' if info.tag else where
        if not info.fields:
            rows.append((name, "", "", "", inspect.getdoc(shape) or ""))
        for f in info.fields:
            needed = "yes" if f.required else "no"
            rows.append((name, f"`{f.encode_name}`", named(f.type), needed, said[f.encode_name]))
    return table(["table", "key", "type", "needed", "meaning"], rows)


def balance() -> str:
    """Keys of `[balance]`."""
    said = comments(Balance)
    usual = Balance()
    rows = [
        (f"`{name}`", f"`{value}`", said[name])
        for name, value in ((n, getattr(usual, n)) for n in Balance.__dataclass_fields__)
    ]
    return table(["key of `[balance]`", "default", "meaning"], rows)


def plan() -> str:
    """Keys of `[plan]`, and whose they are."""
    keys: dict[tuple[str, float], list[str]] = {}
    for name, router in ROUTERS.items():
        for key, value in getattr(router, "parameters", {}).items():
            keys.setdefault((key, value), []).append(f"`{name}`")
    rows = [(f"`{k}`", f"`{v:g}`", ", ".join(names)) for (k, v), names in sorted(keys.items())]
    return table(["key of `[plan]`", "default", "read by"], rows)


PLACES = (
    ("`[state]`", StateTable),
    ("`[[source]]`", FolderSource),
    ("`[[source]]`", KafkaSource),
    ("`[[source]]`", SparkSource),
    ("`[[sink]]`", FilesSink),
    ("`[[sink]]`", KafkaSink),
    ("`[[sink]]`", ConsoleSink),
)
BLOCKS: dict[str, Callable[[], str]] = {
    f.__name__: f
    for f in (
        events,
        notifications,
        answers,
        rejects,
        summary,
        commands,
        options,
        places,
        balance,
        plan,
    )
}


def rewritten(page: str) -> str:
    """The page with its blocks made anew."""
    return BLOCK.sub(lambda found: f"{found[1]}\n{BLOCKS[found[2]]()}\n{found[4]}", page)


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text()))
