"""The reader answers what a logged ask answers at that point."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.test_asks import WORLD, ask, busy

from nearcast.engine.options.settings import Settings
from nearcast.gateway.reader import Reader
from nearcast.gateway.settings import Service
from nearcast.model.space import Space
from nearcast.testing.live_run import LiveRun
from nearcast.wire.arriving import Arrival
from nearcast.wire.told import ANSWERS, Cursor, Told

Json = dict[str, Any]


class Side:
    """A run, and a reader beside it."""

    def __init__(self, folder: Path, memory: Path, retain_ms: int, **given_: Any) -> None:
        self.settings = Settings(
            order="arrival", shards=3, space=Space.PLANAR, retain_ms=retain_ms, maxdist=50.0,
            manifests="files", arena=str(memory), lateness_ms=0, **given_,
        )  # fmt: skip
        self.run = LiveRun(self.settings, folder, batch_events=7)
        out = folder / "out"
        out.mkdir(exist_ok=True)
        (out / "checkpoint").symlink_to(folder / "checkpoint")
        self.service = Service(str(out), space="planar", retain_ms=retain_ms, maxdist=50.0)
        self.reader = Reader(self.service)
        self.arrival = Arrival(Space.PLANAR, self.service.of_kinds())
        self._seen = Cursor(0)

    def handle(self, events: list[Json]) -> dict[str, Json]:
        """Have the run handle events; the answers that it reports, by id."""
        self.run.write(events)
        while self.run.step() is not None:
            pass
        told = Told(self.run.run.out)
        found = [(cursor, line) for cursor, line in told.read(self._seen)]
        self._seen = Cursor(told.last() + 1)
        return {
            value["id"]: value
            for cursor, line in found
            if cursor.shard == ANSWERS
            for value in [json.loads(line)]
        }

    def answer(self, asked: Json) -> Json | None:
        """What the reader answers, as a line of the log would say it."""
        ((_, event, _),), _, _ = self.arrival.check([msgspec.json.encode(asked)], 0)
        found = self.reader.answer(event)  # type: ignore[arg-type]
        if found is None:
            return None
        assert self.reader.held is not None
        assert found.batch == self.reader.held.batch == self.run.next - 1
        head = {"id": asked["id"], "event": "answer", "time": found.time}
        said: Json = json.loads(b"{%s}" % found.body)
        return head | said

    def compare(self, asks: list[Json]) -> int:
        """Ask the reader, then the run; how many were answered."""
        self.reader.catch_up()
        found = {a["id"]: self.answer(a) for a in asks}
        logged = self.handle(asks)
        assert {i: v for i, v in found.items() if v is not None} == logged
        return len(logged)


def by_score(rng: Random, name: str, time: int) -> Json:
    """An ask for the best by score, which the random logs have not."""
    kind = "topk"
    query = {
        "kind": kind, "at": [rng.randint(-9, 9), rng.randint(-9, 9)], "k": rng.choice((1, 3, 9)),
        "keywords": rng.sample(("a", "b", "c", "x"), 2), "alpha": rng.choice((0.0, 0.5, 1.0)),
    }  # fmt: skip
    return ask(name, time, rng.choice((5, 10**6)), query)


@settings(max_examples=5)
@given(seed=st.integers(0, 10**6), retain=st.sampled_from([20, 10**9]))
def test_answers_are_those_of_the_log(module_memory: Path, seed: int, retain: int) -> None:
    folder = Path(mkdtemp(dir=module_memory))
    side = Side(folder / "run", folder / "memory", retain)
    rng, log = Random(seed), busy(seed, Space.PLANAR, 60, late=0.3)
    answered = 0
    for n in range(0, len(log), 25):
        part = log[n : n + 25]
        side.handle([e for e in part if e["op"] != "ask"])
        asks = [e for e in part if e["op"] == "ask"]
        if asks:
            asks.append(by_score(rng, f"best{n}", asks[-1]["time"]))
        answered += side.compare(asks)
        if n == 50:  # a reader that begins later knows the same
            side.reader = Reader(side.service)
    assert answered or retain < 10**9
    shutil.rmtree(folder)


def test_it_follows_through_sealing_merging_and_forgetting(memory: Path) -> None:
    """Slices that are sealed, files that are merged and written anew, objects that go."""
    from nearcast.engine.shard import objects
    from nearcast.objects.base import Slicing

    usual = objects.SLICING
    objects.SLICING = Slicing(delta_ms=50, least=4, most=1 << 20)
    try:
        side = Side(memory / "run", memory / "arena", retain_ms=400)
        query = {"kind": "range", "region": WORLD}
        late_reader = 0
        for n in range(70):
            time = n * 10
            side.handle(
                [
                    {"op": "publish", "id": f"o{n}-{m}", "time": time, "at": [m, n], "text": "a"}
                    for m in range(3)
                ]
            )
            if n % 7 == 0:
                assert side.compare([ask(f"q{n}", time, 300, query)]) == 1
            if n % 30 == 0:
                late_reader += 1
                side.reader = Reader(side.service)
        held = side.reader.held
        assert held is not None
        assert held.floor > 0
        assert late_reader == 3
        assert len(side.reader._store) < 3 * 70
    finally:
        objects.SLICING = usual
