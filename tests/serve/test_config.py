"""What `nearcast serve` makes of a file, and of none."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from nearcast.engine.options.config import load_config
from nearcast.gateway.__main__ import check_address
from nearcast.gateway.settings import load
from nearcast.model.errors import NearcastError
from nearcast.serve.config import as_toml, load_serving, write_serving


def test_without_a_file(tmp_path: Path) -> None:
    serving = load_serving(None, data=str(tmp_path / "d"))
    write_serving(serving)
    config = load_config(str(serving.engine_file))
    assert (config.options.retain, config.options.keep) == ("24h", "7 days")
    assert config.out == str(serving.data)
    (service,) = serving.services
    assert load(serving.service_file(0)) == service
    assert (service.host, service.port, service.retain_ms) == ("127.0.0.1", 8080, 86_400_000)
    check_address(service)
    assert service.private_webhooks  # nobody else reaches it


def test_with_one(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text(
        '[serve]\nport = 9000\ngateways = 2\ndata = "d"\ntokens = "t.json"\nhost = "0.0.0.0"\n'
        '[run]\nshards = 3\nretain = "1h"\nspace = "planar"\nwindow = "30s"\nmaxdist = 5.5\n'
        '[strategies]\nknn = "broadcast"\n[[sink]]\ntype = "console"\n'
        '[[source]]\ntype = "folder"\npath = "more"\n'
    )
    serving = load_serving(str(path), port=9001)
    assert [s.port for s in serving.services] == [9001, 9002]
    first = serving.services[0]
    assert first.tokens == str(tmp_path / "t.json")
    assert not first.private_webhooks
    assert (first.window, first.maxdist, first.retain_ms) == ((0, 30_000), 5.5, 3_600_000)
    check_address(first)
    write_serving(serving)
    config = load_config(str(serving.engine_file))
    assert config.options.shards == 3
    assert config.options.strategies == {"knn": "broadcast"}
    assert isinstance(config.sources, list)
    assert len(config.sources) == 2


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('[state]\ncheckpoint = "x"\n', "checkpoint has no effect"),
        ("[serve]\nprot = 1\n", "prot"),
        ("[serve]\nport = 70000\n", "65535"),
        ('[serve]\nkey = "k.pem"\n', "belong together"),
        ("[run]\nshards = 0\n", "shards"),
        ('[[source]]\ntype = "spark"\nformat = "rate"\n', "type folder"),
        ("[serve", "not valid TOML"),
    ],
)
def test_what_is_wrong_is_refused(text: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text(text)
    with pytest.raises(NearcastError, match=reason):
        load_serving(str(path))


def test_an_address_for_everyone_needs_tokens(tmp_path: Path) -> None:
    for host, refused in (("0.0.0.0", True), ("::1", False), ("localhost", False), ("x.y", True)):
        (service,) = load_serving(None, host=host, data=str(tmp_path)).services
        if refused:
            with pytest.raises(NearcastError, match="no tokens"):
                check_address(service)
        else:
            check_address(service)


def test_toml_that_is_written_is_read_back() -> None:
    tables = {
        "run": {"a b": 'x"\n\\', "n": 1.5, "yes": True},
        "sink": [{"type": "x", "of": {"k": [1, 2]}}, {"type": "y"}],
    }
    assert tomllib.loads(as_toml(tables)) == tables
