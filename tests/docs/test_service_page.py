"""What docs/service.md prints is run here, against a service without Spark."""

from __future__ import annotations

import io
import json
import re
import shlex
from contextlib import redirect_stdout
from pathlib import Path

import httpx
from tests.gateway.running import Running, listen, running

from nearcast.serve.config import load_serving

PAGE = Path(__file__).parents[2] / "docs" / "service.md"
HOST = "http://127.0.0.1:8080"
POSTS = [
    {"op": "publish", "id": f"o{n}", "at": [139.70, 35.66 + n / 1000], "text": "soba"}
    for n in (2, 3)
]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.M | re.S)


def curl(line: str, service: Running) -> httpx.Response | list[object]:
    """Do what a line of curl does; a stream gives its first notifications."""
    words = shlex.split(line)
    assert words.pop(0) == "curl"
    method, url, body, headers, stream = "", "", None, {}, False
    while words:
        match words.pop(0):
            case "-X":
                method = words.pop(0)
            case "-d":
                body = words.pop(0).encode()
            case "--data-binary":
                assert words.pop(0) == "@posts.jsonl"
                body = "\n".join(map(json.dumps, POSTS)).encode()
            case "-H":
                name, _, value = words.pop(0).partition(": ")
                headers[name] = value
            case "-N":
                stream = True
            case word:
                assert word.startswith(HOST)
                url = word.removeprefix(HOST)
    if stream:
        path, _, query = url.partition("?")
        assert path == "/v1/notifications"
        return list(listen(service.http, 1, **dict([query.split("=")])))
    method = method or ("GET" if body is None else "POST")
    return service.http.request(method, url, content=body, headers=headers)


def test_the_page(tmp_path: Path, memory: Path) -> None:
    (lines,), (program,) = blocks("bash"), blocks("python")
    with running(tmp_path, memory) as service:
        for line in lines.splitlines():
            done = curl(line, service)
            if isinstance(done, httpx.Response):
                assert done.is_success, f"{line}: {done.text}"
            else:
                assert done
            service.settled()
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile(program.replace(HOST, service.server.url), str(PAGE), "exec"), {})
        assert "enter o7" in printed.getvalue()
        assert "Ramen here" in printed.getvalue()


def test_its_configuration_is_one(tmp_path: Path) -> None:
    (text,) = blocks("toml")
    path = tmp_path / text.splitlines()[0].removeprefix("# ")
    path.write_text(text)
    serving = load_serving(str(path))
    assert [s.port for s in serving.services] == [8080, 8081]
    assert serving.services[0].retain_ms == 2 * 86_400_000


def test_it_names_every_file_of_the_folder(tmp_path: Path, memory: Path) -> None:
    table = PAGE.read_text().split("## In its folder")[1]
    named = {name.rstrip("/") for name in re.findall(r"`([\w.-]+)/?`", table)}
    with running(tmp_path, memory) as service:
        service.http.post("/v1/events", content=json.dumps(POSTS))
        service.settled()
        there = {p.name for p in service.service.folder.iterdir() if not p.name.startswith(".")}
    assert {name.removesuffix("-wal").removesuffix("-shm") for name in there} <= named
