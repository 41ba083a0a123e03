"""What is shown: the real figures, on a terminal and in a pipe."""

from __future__ import annotations

import io

from rich.console import Console

from nearcast.demo.screen import Plain, Silent, Terminal, choose_screen, spark_line
from nearcast.demo.tally import Tally
from nearcast.engine.output.reports import BatchRecord
from nearcast.engine.shard.report import Report

RECORD = BatchRecord(
    7,
    2.0,
    [
        Report(
            0, 7, 1_500, events={"publish": 4_000}, notifications={"range.match": 30}, seconds=0.5
        ),
        Report(1, 7, 1_501, notifications={"knn.enter": 12, "knn.leave": 11}, seconds=0.25),
    ],
)


def console(terminal: bool) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=120, height=40)


def text(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def tally() -> Tally:
    tally = Tally()
    tally.add(RECORD)
    return tally


def test_tally_adds_up() -> None:
    total = tally()
    total.add(RECORD)
    assert total.total == 8_000
    assert total.notifications == {"range.match": 60, "knn.enter": 24, "knn.leave": 22}
    assert total.per_second == 2_000.0
    assert list(total.reported) == [53, 53]


def test_a_pipe_gets_one_line_a_batch() -> None:
    out = console(terminal=False)
    screen = choose_screen(out, "demo", 30.0, None)
    assert isinstance(screen, Plain)
    with screen:
        screen.status("starting Spark …")
        screen.batch(RECORD, tally(), ["ana hears of something"])
        screen.elapsed(3.0)
    assert text(out).splitlines() == [
        "starting Spark …",
        "batch 7: 4,000 events in 2.0 s (2,000/s), 53 notifications, shards busy 0.50 0.25 s; "
        "so far 4,000 events, 53 notifications",
    ]


def test_a_terminal_gets_a_picture() -> None:
    out = console(terminal=True)
    screen = choose_screen(out, "demo", 30.0, None)
    assert isinstance(screen, Terminal)
    with screen:
        screen.status("starting Spark …")
        screen.batch(RECORD, tally(), ["ana hears of “Ramen” 320 m away"])
        screen.talk({"Ueno": "soba 2, tea 1"})
        screen.status("")
        screen.elapsed(12.0)
    plain = Console(file=io.StringIO(), width=120, no_color=True)
    screen._done = False
    plain.print(screen._render())
    shown = text(plain)
    for part in (
        "4,000",
        "2,000",
        "match",
        "shard 1",
        "1,501 subs",
        "“Ramen”",
        "soba 2",
        "12 of 30 s",
    ):
        assert part in shown


def test_quiet_shows_nothing() -> None:
    out = console(terminal=True)
    screen = choose_screen(out, "demo", 30.0, True)
    assert isinstance(screen, Silent)
    with screen:
        screen.batch(RECORD, tally(), [])
    assert text(out) == ""


def test_spark_line() -> None:
    assert spark_line([]) == ""
    assert spark_line([0, 0]) == "▁▁"
    assert spark_line([0, 50, 100]) == "▁▄█"
