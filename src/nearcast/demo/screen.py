"""The demo in the terminal: a live picture, or one plain line per batch in a pipe."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Protocol

from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from nearcast.demo.tally import Tally
from nearcast.engine.output.reports import BatchRecord

_BARS = "▁▂▃▄▅▆▇█"
_NOTES = 8
_KINDS = {
    "range.match": "match   a post in a watched area",
    "knn.enter": "enter   among the k nearest",
    "knn.leave": "leave   no longer among them",
    "terms.terms": "terms   what a district talks about",
}


class Screen(Protocol):
    """What the demo shows whoever watches."""

    def __enter__(self) -> Screen:
        """Begin to show."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """Leave the terminal as it was."""

    def status(self, text: str) -> None:
        """What is being waited for; an empty text for nothing."""

    def batch(self, record: BatchRecord, tally: Tally, notes: Iterable[str]) -> None:
        """A batch is done; some of its notifications, in words."""

    def talk(self, words: Mapping[str, str]) -> None:
        """What some districts talk about by now."""

    def elapsed(self, seconds: float) -> None:
        """How long the city has been streaming."""


class Silent:
    """Shows nothing."""

    def __enter__(self) -> Screen:
        """Nothing to begin."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """Nothing to end."""

    def status(self, text: str) -> None:
        """Not shown."""

    def batch(self, record: BatchRecord, tally: Tally, notes: Iterable[str]) -> None:
        """Not shown."""

    def talk(self, words: Mapping[str, str]) -> None:
        """Not shown."""

    def elapsed(self, seconds: float) -> None:
        """Not shown."""


class Plain(Silent):
    """One line per batch, for pipes and logs."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def status(self, text: str) -> None:
        """A line of its own."""
        if text:
            self._say(text)

    def batch(self, record: BatchRecord, tally: Tally, notes: Iterable[str]) -> None:
        """One line."""
        del notes  # for a picture
        busy = " ".join(f"{r.seconds:.2f}" for r in record.reports)
        self._say(
            f"batch {record.batch}: {record.events:,} events in {record.seconds:.1f} s "
            f"({tally.per_second:,.0f}/s), {record.notifications:,} notifications, "
            f"shards busy {busy} s; so far {tally.total:,} events, "
            f"{tally.notifications.total():,} notifications"
        )

    def _say(self, text: str) -> None:
        # Plain text: a pipe is read by programs, and a line is a line however long.
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


class Terminal:
    """A picture that is drawn anew a few times a second."""

    def __init__(self, console: Console, title: str, seconds: float) -> None:
        self._title, self._seconds = title, seconds
        self._elapsed = 0.0
        self._status = "starting …"
        self._done = False
        self._tally: Tally | None = None
        self._notes: deque[str] = deque(maxlen=_NOTES)
        self._talk: dict[str, str] = {}
        self._spinner = Spinner("dots")
        self._live = Live(console=console, get_renderable=self._render, refresh_per_second=8)

    def __enter__(self) -> Screen:
        """Begin to draw."""
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """Draw a last time and let the picture stand."""
        self._done = error is None
        self._live.stop()

    def status(self, text: str) -> None:
        """Beside a spinner."""
        self._status = text

    def batch(self, record: BatchRecord, tally: Tally, notes: Iterable[str]) -> None:
        """Everything that changes with a batch."""
        del record  # the tally has what is drawn
        self._tally = tally
        self._notes.extend(notes)

    def talk(self, words: Mapping[str, str]) -> None:
        """A line for each."""
        self._talk.update(words)

    def elapsed(self, seconds: float) -> None:
        """Moves the bar."""
        self._elapsed = min(seconds, self._seconds)

    def _render(self) -> RenderableType:
        parts: list[RenderableType] = []
        tally = self._tally
        if tally is not None and tally.last is not None:
            pair = Table.grid(expand=True, padding=(0, 1))
            pair.add_column(ratio=1)
            pair.add_column(ratio=1)
            pair.add_row(
                Panel(_figures(tally), title="events and notifications", border_style="blue"),
                Panel(_shards(tally.last), title="shards, last batch", border_style="blue"),
            )
            parts += [pair, *([_spoken(self._talk)] if self._talk else []), self._heard()]
        parts.append(self._foot())
        return Panel(Group(*parts), title=self._title, border_style="bright_black")

    def _heard(self) -> Panel:
        lines = [Text(note, no_wrap=True, overflow="ellipsis") for note in self._notes]
        for line in lines:
            line.highlight_regex(r"“[^”]*”", "green")
            line.highlight_regex(r"^\w+(?= hears)|\(\w+\)$", "bold")
            line.highlight_regex(r"[\d.]+ k?m away", "yellow")
        lines += [Text("") for _ in range(_NOTES - len(lines))]
        return Panel(Group(*lines), title="some of what is heard", border_style="green")

    def _foot(self) -> RenderableType:
        if self._status:
            self._spinner.update(text=Text(f" {self._status}"))
            return self._spinner
        if self._done:
            return Text("done", style="bold green")
        time = Text(f"{self._elapsed:.0f} of {self._seconds:.0f} s ", style="bold")
        bar = ProgressBar(total=self._seconds, completed=self._elapsed, width=40)
        return Columns([time, bar, Text("Ctrl-C stops early", style="dim")])


def _figures(tally: Tally) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right", style="bold", no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis")
    assert tally.last is not None
    table.add_row(f"{tally.total:,}", "events so far")
    table.add_row(f"{tally.per_second:,.0f}", "events per second")
    for kind, said in _KINDS.items():
        table.add_row(f"{tally.notifications[kind]:,}", said)
    table.add_row(f"{tally.last.notifications:,}", Text(spark_line(tally.reported), style="green"))
    return table


def _spoken(talk: Mapping[str, str]) -> Panel:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis")
    for name, words in sorted(talk.items()):
        table.add_row(name, Text(words, style="cyan"))
    return Panel(table, title="what districts talk about, last 10 s", border_style="cyan")


def _shards(record: BatchRecord) -> Table:
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1)
    table.add_column(justify="right", no_wrap=True)
    most = max((r.seconds for r in record.reports), default=0.0)
    for r in record.reports[:4]:
        bar = ProgressBar(total=most or 1.0, completed=r.seconds, complete_style="magenta")
        bar.finished_style = "magenta"
        table.add_row(
            Text(f"shard {r.shard}", style="bold"),
            bar,
            f"{r.seconds * 1000:,.0f} ms, {r.subscriptions:,} subs",
        )
    if len(record.reports) > 4:
        table.add_row("", Text(f"and {len(record.reports) - 4} more shards", style="dim"), "")
    table.add_row("", "", "")
    table.add_row(Text("batch", style="bold"), f"{record.batch}", f"{record.seconds:.1f} s")
    table.add_row(Text("in it", style="bold"), "events", f"{record.events:,}")
    return table


def spark_line(values: Iterable[int]) -> str:
    """Numbers as a row of little bars."""
    values = list(values)
    most = max(values, default=0)
    if most == 0:
        return _BARS[0] * len(values)
    return "".join(_BARS[min(v * len(_BARS) // (most + 1), len(_BARS) - 1)] for v in values)


def choose_screen(console: Console, title: str, seconds: float, quiet: bool | None) -> Screen:
    """Nothing if quiet, a picture on a terminal, lines elsewhere."""
    if quiet:
        return Silent()
    return Terminal(console, title, seconds) if console.is_terminal else Plain(console)
