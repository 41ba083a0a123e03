"""`RunOptions`: the options of a run, written once.

The command line, the TOML file of `nearcast run` and the keyword arguments of `Engine` are three
ways to the same options. Here stand their names, types, defaults, help and how single values are
read and checked; `engine.options.effects` refuses options that have no effect in a run. Importing
this loads neither Spark nor Numba, so that help comes at once.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Annotated, Any, NamedTuple, get_type_hints

from nearcast.engine.options import several, spans, values
from nearcast.engine.options.values import Value
from nearcast.model.errors import NearcastError

# Ways to run: whole logs; the files of folders as they grow; a stream that Spark reads.
REPLAY, FOLDER, STREAM = WAYS = ("replay", "folder", "stream")
LIVE = (FOLDER, STREAM)
SPACES = ("geographic", "planar")
MODES = ("off", "auto", "local", "global")
STORES = ("curve", "rtree", "scan")  # `nearcast.objects`, which would load compiled code
BATCH_EVENTS = 500_000


@dataclass(frozen=True, slots=True)
class Option:
    """What there is to know about an option besides its name, type and default."""

    value: Value  # how it is read and checked
    help: str
    flag: str = ""  # on the command line; empty: made from the name
    table: str = "run"  # of the TOML file
    whole: bool = False  # the option is the whole table, not one key of it
    ways: tuple[str, ...] = WAYS  # to run, in which it has an effect
    otherwise: str = ""  # why it has none in other ways, and what to do instead


@dataclass(frozen=True, slots=True)
class RunOptions:
    """All options of a run, each a value that is allowed. None stands for the default."""

    space: Annotated[str, Option(values.Choice(SPACES), "what a position is")] = "geographic"
    bounds: Annotated[
        tuple[float, float, float, float] | None,
        Option(
            values.Bounds(),
            "where most posts are: a hint for the cells of a plan, never a filter",
        ),
    ] = None
    shards: Annotated[int, Option(values.Whole(1, 4096), "parts that work side by side")] = 2
    strategies: Annotated[
        dict[str, str],
        Option(
            several.Strategies(),
            "how a kind of query is dealt and found",
            flag="--strategy",
            table="strategies",
            whole=True,
        ),
    ] = field(default_factory=dict)
    plugins: Annotated[
        tuple[str, ...],
        Option(
            several.Modules(),
            "modules that bring more kinds of query, in a list KINDS",
            flag="--plugin",
        ),
    ] = ()
    kinds: Annotated[
        tuple[str, ...],
        Option(
            several.Names(),
            "kinds of query that the run takes; subscriptions of others are refused",
            flag="--kind",
        ),
    ] = ()
    batch_events: Annotated[
        int,
        Option(
            values.Whole(1),
            "events per batch, at most",
            ways=(REPLAY, FOLDER),
            otherwise="Spark decides what a batch of its stream holds; limit it in the options of "
            "the source, such as maxOffsetsPerTrigger or maxFilesPerTrigger",
        ),
    ] = BATCH_EVENTS
    window: Annotated[
        str,
        Option(
            spans.Window(),
            "sliding window of the whole run: its latest N posts, or those younger than that",
        ),
    ] = "count:1000000"
    maxdist: Annotated[
        float | None,
        Option(
            values.Distance(),
            "how far away nearness is 0 for queries by score that do not say it: metres, or units "
            "of the plane",
        ),
    ] = None
    idf: Annotated[
        str,
        Option(
            values.Text("FILE", empty="none: all weigh the same"),
            "how much keywords weigh in scores: a table of `nearcast fit`",
        ),
    ] = ""
    retain: Annotated[
        str | None,
        Option(
            spans.Retain(),
            "how far back objects are kept for asks; auto: as far as the asks of the logs reach",
        ),
    ] = None
    store: Annotated[
        str,
        Option(values.Choice(STORES), "what retained objects rest in"),
    ] = "curve"
    archive: Annotated[
        str,
        Option(
            values.Text("DIR", empty="none"),
            "folder that keeps every object for good, as GeoParquet; asks that reach back further "
            "than objects are retained read it",
        ),
    ] = ""
    changes: Annotated[
        str,
        Option(
            values.Choice(("every", "net")),
            "every change of a result, or per batch the difference before and after",
        ),
    ] = "every"
    format: Annotated[
        str,
        Option(values.Choice(("jsonl", "parquet")), "files of notifications", table="sink"),
    ] = "jsonl"
    keep: Annotated[
        str,
        Option(
            spans.Keep(),
            "roll the files of batches into segments, and keep these so long (all: for ever), and "
            "as long as a reader needs them",
            table="sink",
            ways=LIVE,
            otherwise="a replay ends, and its results are yours; leave it out",
        ),
    ] = ""
    master: Annotated[str, Option(values.Text("URL"), "any Spark master")] = "local[*]"
    spark_conf: Annotated[
        dict[str, str],
        Option(several.Texts(), "settings of the Spark session", table="spark", whole=True),
    ] = field(default_factory=dict)
    balance: Annotated[
        str | dict[str, Any],
        Option(
            several.Balancing(MODES, usual="auto"),
            "move subscriptions between shards as loads change",
            table="balance",
            whole=True,
        ),
    ] = "off"
    warmup: Annotated[
        int, Option(values.Whole(0, zero="10000"), "posts that a first plan is made from")
    ] = 0
    plan: Annotated[
        dict[str, float],
        Option(
            several.Numbers(), "parameters of the plans of strategies", table="plan", whole=True
        ),
    ] = field(default_factory=dict)
    lateness_ms: Annotated[
        int,
        Option(
            values.Whole(0),
            "milliseconds that an ended subscription waits for late posts",
            ways=LIVE,
            otherwise="a replay handles events in the order of their times, so none is late; "
            "leave it out",
        ),
    ] = 3_600_000
    trigger: Annotated[
        str,
        Option(
            spans.Duration(),
            "time from the start of a batch to the start of the next, at least",
            ways=LIVE,
            otherwise="a replay starts each batch when the one before is done; leave it out",
        ),
    ] = "0 seconds"
    metrics: Annotated[
        str,
        Option(
            values.Address(),
            "serve /metrics (Prometheus) and /healthz of the run there",
            ways=LIVE,
            otherwise="a replay ends, and its figures are in summary.json; leave it out",
        ),
    ] = ""
    manifests: Annotated[
        str,
        Option(
            values.Choice(("auto", "files", "spark")),
            "who remembers from batch to batch which files hold the state of a shard: files of the "
            "checkpoint, or Spark's own state; auto: what the checkpoint began with, and for a new "
            "one files on a local master, else Spark",
            table="state",
        ),
    ] = "auto"
    arena: Annotated[
        str,
        Option(
            values.Text("DIR", empty="shared memory, or the temporary folder"),
            "folder for the indexes, on each machine",
            table="state",
        ),
    ] = ""

    def __post_init__(self) -> None:
        """Check every value, then those that must agree."""
        for name in OPTIONS:
            value, default = getattr(self, name), DEFAULTS[name]
            value = default if value is None else checked(name, value)
            object.__setattr__(self, name, value)
        if self.space == "geographic" and self.bounds is not None:
            west, south, east, north = self.bounds
            if not (west >= -180.0 and south >= -90.0 and east <= 180.0 and north <= 90.0):
                raise NearcastError(
                    "bounds: write degrees, lon from -180 to 180 and lat from -90 to 90, or use "
                    "space planar"
                )

    @staticmethod
    def of(named: Mapping[str, Any]) -> RunOptions:
        """Options by name, as Python or a TOML file gives them."""
        return RunOptions().with_(named)

    @staticmethod
    def read(words: Mapping[str, Sequence[str]]) -> RunOptions:
        """Options by name, as the command line gives them: all words behind a flag."""
        named = {}
        for name, given in words.items():
            try:
                named[name] = OPTIONS[name].value.read(given)
            except ValueError as error:
                raise NearcastError(f"{name}: {error}") from None
        return RunOptions.of(named)

    def with_(self, named: Mapping[str, Any]) -> RunOptions:
        """The same with these instead; one that does not exist is refused."""
        for name in named:
            if name not in OPTIONS:
                raise NearcastError(f"{name}: there is no such option; {suggest(name, OPTIONS)}")
        return replace(self, **dict(named))

    def balance_settings(self) -> dict[str, Any]:
        """`balance` by names in any case."""
        return dict(self.balance) if isinstance(self.balance, dict) else {"mode": self.balance}

    def retain_ms(self, order: str) -> int:
        """How far back objects are retained; 0: none, or not known before the logs are."""
        kept = self.retain or (spans.AUTO if order == "time" else spans.OFF)
        if kept == spans.AUTO and order != "time":
            raise NearcastError("retain: auto is for logs that end; use a duration, all or off")
        return spans.retained_ms(kept)

    def given(self) -> dict[str, Any]:
        """Those that differ from the default: whoever writes a default wants nothing changed."""
        all_ = {name: getattr(self, name) for name in OPTIONS}
        return {name: value for name, value in all_.items() if value != DEFAULTS[name]}


def checked(name: str, value: Any) -> Any:
    """The value of an option, as it is kept; an error names the option."""
    try:
        return OPTIONS[name].value.check(value)
    except ValueError as error:
        raise NearcastError(f"{name}: {error}") from None


def no_effect(name: str, why: str) -> NearcastError:
    """The error for an option that would change nothing."""
    return NearcastError(f"{name} has no effect: {why}")


def suggest(name: str, known: Iterable[str]) -> str:
    """What to write instead of a name that does not exist."""
    known = list(known)
    near = difflib.get_close_matches(name, known, 1, 0.6)
    return f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"


def flag(name: str) -> str:
    """An option on the command line of `nearcast replay`; empty: it does not apply there."""
    option = OPTIONS[name]
    return option.flag or f"--{name.replace('_', '-')}" if REPLAY in option.ways else ""


def in_toml(name: str) -> str:
    """Where an option stands in the TOML file: `[run] shards`."""
    option = OPTIONS[name]
    if option.table == "sink":
        return f"[[sink]] {name}, of type files"
    return f"[{option.table}]" if option.whole else f"[{option.table}] {name}"


class Row(NamedTuple):
    """An option, for the reference."""

    name: str  # the keyword argument of `Engine`
    flag: str  # of `nearcast replay`; empty: it has none
    toml: str
    type: str
    default: str
    meaning: str
    applies: str


def reference() -> list[Row]:
    """All options, in order, for people: help and documentation are made from this."""
    rows = []
    for name, option in OPTIONS.items():
        applies = "all runs" if option.ways == WAYS else ", ".join(option.ways)
        default = option.value.show(DEFAULTS[name])
        kind = option.value.sort
        rows.append(Row(name, flag(name), in_toml(name), kind, default, option.help, applies))
    return rows


OPTIONS: dict[str, Option] = {
    name: next(part for part in hint.__metadata__ if isinstance(part, Option))
    for name, hint in get_type_hints(RunOptions, include_extras=True).items()
}
DEFAULTS: dict[str, Any] = {
    f.name: f.default if f.default_factory is MISSING else f.default_factory()
    for f in fields(RunOptions)
}
