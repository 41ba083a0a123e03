"""Everything that README and the pages of the guide print is run here, in order, page by page.

What README prints runs as there, in processes of their own; the other pages share a session.
"""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nearcast.cli import main
from nearcast.engine.options.config import load_config

if TYPE_CHECKING:
    pass

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HERE = re.compile(r"^cat > (\S+) <<'EOF'\n(.*?)^EOF\n", re.MULTILINE | re.DOTALL)
PAGES = (
    "guide", "knn", "topk", "terms", "range", "archive", "strategies", "balance", "papers/dkm-sks",
)  # fmt: skip
PATIENCE = 240  # seconds; far more than any of them takes


def blocks(page: str) -> list[tuple[str, str]]:
    return BLOCK.findall((ROOT / page).read_text())


def call(args: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        args, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, f"{args}: {done.stdout}{done.stderr}"
    return done


def run_live(args: list[str], folder: Path) -> None:
    """`nearcast run` goes on until it is stopped: give it something to do, then stop it."""
    inbox = folder / "inbox"
    inbox.mkdir()
    query = {"kind": "range", "region": {"bbox": [0, 0, 1, 1]}}
    events = [
        {"op": "subscribe", "id": "s", "time": 0, "query": query},
        {"op": "publish", "id": "o", "time": 1, "at": [0.5, 0.5]},
    ]
    (inbox / "1.jsonl").write_text("".join(json.dumps(e) + "\n" for e in events))
    with subprocess.Popen(args, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        reported = folder / "live-out" / "notifications"
        deadline = time.monotonic() + PATIENCE
        while not any(reported.glob("*.jsonl")):
            assert process.poll() is None, "it ended by itself"
            assert time.monotonic() < deadline, "no notification came"
            time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        shown, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert '"event":"match"' in shown
    assert json.loads((folder / "live-out" / "summary.json").read_text())["events"]["publish"] == 1


def in_full(words: list[str], folder: Path) -> list[str]:
    """A command with its files in `folder`: Spark's workers were started elsewhere."""
    files = (".jsonl", ".gz", ".parquet")
    folders = ("--out", "--checkpoint", "--keep", "--archive")
    return [
        str(folder / word) if word.endswith(files) or before in folders else word
        for before, word in zip(["", *words], words, strict=False)
    ]


def run_lines(text: str, folder: Path, apart: bool) -> str:
    """Run the lines of a shell block in `folder`; what its `cat`s print."""
    for name, content in HERE.findall(text):
        (folder / name).write_text(content)
    lines = HERE.sub("", text).splitlines()
    return "".join(run_line(line, folder, apart) for line in lines)


def run_line(line: str, folder: Path, apart: bool) -> str:
    """Run a command in `folder`: in a process of its own, or here, where Spark runs already."""
    words = shlex.split(line, comments=True)
    if not words:
        return ""
    if words[0] == "cat":
        return "".join(path.read_text() for path in sorted(folder.glob(words[1])))
    if words[0] == "make":
        call(["make", "-n", *words[1:]], ROOT)  # itself run by CI; here: that there is such a one
        return ""
    assert words[0] == "nearcast", line
    args = [sys.executable, "-m", *words]
    if words[1] == "run":
        run_live(args, folder)
    elif apart:
        call(args, folder)
    else:
        assert main(in_full(words[1:], folder)) == 0, line
    return ""


def check_config(path: Path) -> None:
    """Whether `nearcast run` would take it; only the guide starts one."""
    load_config(str(path))


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    "page",
    ["README.md", *(f"docs/{page}.md" for page in PAGES)],
)
def test_page(page: str, tmp_path: Path) -> None:
    shown = ""
    for language, text in blocks(page):
        if language == "sh":
            shown = run_lines(text, tmp_path, apart=page == "README.md")
        elif language == "" and shown:  # what the commands before it print, in any order
            assert sorted(shown.splitlines()) == sorted(text.splitlines())
            shown = ""
        elif language == "python":
            call([sys.executable, "-c", text], tmp_path)
        elif language == "toml":
            name = text.splitlines()[0].removeprefix("# ")
            (tmp_path / name).write_text(text)
            check_config(tmp_path / name)
        else:
            raise AssertionError(f"{page}: no test for a block of {language!r}")
    if page == "README.md":
        reported = [p.read_text() for p in sorted((tmp_path / "out/notifications").iterdir())]
        events = [json.loads(line) for line in "".join(reported).splitlines()]
        assert [(e["id"], e["event"], e["object"]) for e in events if e["id"] == "bo"] == [
            ("bo", "enter", "o1"),
            ("bo", "enter", "o2"),
            ("bo", "leave", "o1"),
        ]
        assert [e["object"] for e in events if e["id"] == "ana"] == ["o1"]
