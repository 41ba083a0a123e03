"""`nearcast.client` against a running service."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from itertools import islice

import pytest
from tests.gateway.running import Running

from nearcast.client import AsyncClient, Client, ServiceError

QUERY = {"kind": "knn", "at": [30, 30], "k": 2, "where": "bell"}


def test_it_publishes_subscribes_asks_and_listens(service: Running) -> None:
    with Client(service.server.url) as client:
        assert client.subscribe("c1", QUERY, owner="lee", meta={"n": 1}) is True
        assert client.subscribe("c1", QUERY, owner="lee", meta={"n": 1}) is False
        client.publish("c-o1", [30, 30.1], text="a bell")
        taken = client.send(
            [
                {"op": "publish", "id": "c-o2", "at": [30, 30], "text": "bell"},
                {"op": "nix"},
                {"op": "publish", "id": "c-o3", "at": [30, 99], "text": "bell"},
            ],
            most=2,
        )
        assert taken.accepted == 1
        assert [r.line for r in taken.rejected] == [2, 3]
        notes = list(islice(client.notifications("c1", after="0"), 2))
        assert [(n.id, n.event, n.object) for n in notes] == [
            ("c1", "enter", "c-o1"), ("c1", "enter", "c-o2"),
        ]  # fmt: skip
        assert notes[1].fields["owner"] == "lee"
        (second,) = islice(client.notifications(owner="lee", after=notes[0].cursor), 1)
        assert second == notes[1]
        service.settled()
        shown = client.subscription("c1")
        assert shown.result is not None
        assert [o["id"] for o in shown.result["objects"]] == ["c-o2", "c-o1"]
        assert [s.id for s in client.subscriptions(owner="lee")] == ["c1"]
        answer = client.ask(QUERY, 60_000, fields=["text"])
        assert [o["text"] for o in answer.objects] == ["bell", "a bell"]
        assert client.unsubscribe("c1") is True
        assert client.unsubscribe("c1") is False
        with pytest.raises(ServiceError, match="404: there is no subscription"):
            client.subscription("c1")
        with pytest.raises(ServiceError, match=r"400: .*query.k"):
            client.subscribe("c1", QUERY | {"k": 0})


def test_the_same_asynchronously(service: Running) -> None:
    async def talk() -> list[tuple[str, str | None]]:
        async with AsyncClient(service.server.url) as client:
            await client.subscribe("c2", QUERY)
            found = []

            async def hear() -> None:
                async for note in client.notifications("c2", after="0"):
                    found.append((note.event, note.object))
                    if len(found) == 1:
                        return

            hearing = asyncio.create_task(hear())
            await client.publish("c-o4", [30, 30], text="bell")
            await asyncio.wait_for(hearing, 60)
            assert (await client.ask(QUERY, 60_000)).objects
            assert "c2" in [s.id async for s in client.subscriptions()]
            assert await client.unsubscribe("c2")
            return found

    assert asyncio.run(talk()) == [("enter", "c-o4")]


def test_it_goes_on_when_the_gateway_was_away(service: Running) -> None:
    other = service.another()
    with Client(other.url) as client:
        client.subscribe("c3", QUERY | {"where": "drum"})
        client.publish("d0", [30, 30], text="drum")
        notes = client.notifications("c3", after="0")
        assert next(notes).object == "d0"
        port = int(other.url.rpartition(":")[2])
        other.stop()
        with Client(service.server.url) as direct:
            direct.publish("d1", [30, 30], text="drum")
        service.another(port=port)
        assert next(notes).object == "d1"
        client.unsubscribe("c3")


def test_it_loads_nothing_that_a_client_has_not() -> None:
    code = (
        "import sys\n"
        "for name in ('pyspark', 'numpy', 'numba', 'pyarrow', 'rich', 'shapely', 'starlette'):\n"
        "    sys.modules[name] = None\n"
        "import nearcast.client\n"
        "from nearcast.cli import main\n"
        "sys.exit(main(['tokens', 'list']))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'nearcast[serve]'" in done.stderr
