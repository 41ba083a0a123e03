"""Fuzzed lines: valid events with something changed, values of JSON's grammar, bytes."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

from nearcast.model.space import Space
from nearcast.testing.logs import random_log

__all__ = ["fuzzed"]

_EVENTS = 400  # valid ones that are mutated
_RAW = (  # values that Python's JSON would not write
    "1e400", "-1e400", "-0", "-0.0", "1E5", "01", "1.", ".5", "+1", "NaN", "Infinity", "-Infinity",
    "9" * 25, "-" + "9" * 25, "0." + "1" * 400, "1e-400", "18446744073709551616", "0x10", "true",
    "null", "nul", '"\\ud800"', '"\\u0000"', '"\\x41"', "'a'", "[" * 50 + "]" * 50, "{}", "[]",
    "[[]]", '{"a":1,"a":2}', '"' + "a" * 300 + '"', "9007199254740993", "1.7976931348623157e308",
)  # fmt: skip
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**53, 2**63 - 1, 2**63, -(2**63), 2**64, 1e300, -1e300,
    0.1, 180, 180.0000001, -180, 90, -90, 5e-324, "", " ", "a", "a AND", "a OR (b", "NOT", "NOT a",
    '"', '"a b', "range", "1970-01-01T00:00:00Z", "1970-01-01T00:00:60.5+23:59", "2024-02-30",
    "٣", "ﬃ", "\u0000", "\u2028", "e\u0301", "\U0001f600", "a" * 257, "x" * 5000, [], [0], [0, 0],
    [0, 0, 0, 0], ["a", 1], [None], {}, {"kind": "range"}, {"bbox": [0, 0, 1, 1]},
    {"circle": {"at": [0, 0], "radius": -1}}, {"type": "Polygon", "coordinates": []},
    {"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [0, 1], [1, 0], [0, 0]]]},
)  # fmt: skip
_BYTES = b'{}[]",:\\ \t\r0123456789.eE+-abcNOTtrue\x00\x7f\x80\xc3\xed\xa0\xff'
_DEEP = 3000  # brackets, more than any decoder follows


def fuzzed(seed: int) -> Callable[[], bytes]:
    """What makes the next line; none holds a line feed."""
    rng = Random(seed)
    events = [json.dumps(e) for e in random_log(seed, Space.GEOGRAPHIC, _EVENTS, late=0.1)]
    ways = (_event, _event, _event, _text, _text, _bytes, _grammar, _noise)

    def line() -> bytes:
        made = rng.choice(ways)(rng, rng.choice(events))
        return made.replace(b"\n", b" ")

    return line


def _event(rng: Random, text: str) -> bytes:
    """A valid event with one to three values changed, removed, added or renamed."""
    event = json.loads(text)
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
        holder = rng.choice(_holders(event))
        _change(rng, holder)
    return json.dumps(event, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")


def _holders(value: Any) -> list[Any]:
    """Every object and array in a value."""
    found: list[Any] = []
    if isinstance(value, dict | list):
        found.append(value)
        for part in value.values() if isinstance(value, dict) else value:
            found += _holders(part)
    return found


def _change(rng: Random, holder: Any) -> None:
    if not holder:
        return
    places = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
    place = rng.choice(places)
    what = rng.randrange(5)
    if what == 0:
        del holder[place]
    elif what == 1 and isinstance(holder, dict):
        names = ("op", "id", "time", "at", "k", "last", "owner", "", "Ｋ")
        holder[rng.choice(names)] = deepcopy(rng.choice(_VALUES))
    elif what == 2 and isinstance(holder, list):
        holder.insert(place, deepcopy(rng.choice(_VALUES)))
    else:
        holder[place] = deepcopy(rng.choice(_VALUES))


def _text(rng: Random, text: str) -> bytes:
    """A valid event with something in its text changed: a value, a piece twice, a cut."""
    what = rng.randrange(5)
    at, to = sorted(rng.randrange(len(text) + 1) for _ in range(2))
    if what == 0:  # another value behind a colon
        places = [i for i, c in enumerate(text) if c == ":"]
        at = rng.choice(places) + 1
        stop = min((text.find(c, at) for c in ",}]" if text.find(c, at) > 0), default=len(text))
        text = text[:at] + rng.choice(_RAW) + text[stop:]
    elif what == 1:
        text = text[:at] + text[to:]
    elif what == 2:
        text = text[:to] + text[at:]
    elif what == 3:
        text = text[:at] + rng.choice(_RAW) + text[at:]
    else:
        text = text + rng.choice((" ", "\t", "\r", ",", "}", text, "\ufeff", "//", "null"))
    return text.encode("utf-8", "surrogatepass")


def _bytes(rng: Random, text: str) -> bytes:
    """A valid event with a few bytes changed, put in or taken out."""
    data = bytearray(text.encode())
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(data)) if data else 0
        what = rng.randrange(3)
        if what == 0 and data:
            data[at] = rng.choice(_BYTES)
        elif what == 1:
            data.insert(at, rng.choice(_BYTES))
        elif data:
            del data[at]
    return bytes(data)


def _grammar(rng: Random, _: str) -> bytes:
    """Some value of JSON, seldom an event."""
    if rng.random() < 0.01:
        return b"[" * _DEEP if rng.random() < 0.5 else b'{"op":' * _DEEP

    def value(depth: int) -> str:
        what = rng.randrange(6) if depth < 4 else rng.randrange(3)
        if what == 0:
            return rng.choice(_RAW)
        if what in (1, 2):
            return json.dumps(rng.choice(_VALUES))
        parts = [value(depth + 1) for _ in range(rng.randrange(4))]
        if what == 3:
            return f"[{','.join(parts)}]"
        names = ("op", "id", "time", "at", "query", "kind", "region", "bbox", "text", "where")
        return "{" + ",".join(f'"{rng.choice(names)}":{p}' for p in parts) + "}"

    return value(0).encode("utf-8", "surrogatepass")


def _noise(rng: Random, _: str) -> bytes:
    """Bytes without a meaning; sometimes none, or white space."""
    if rng.random() < 0.2:
        return rng.choice((b"", b" ", b"\t \r", b"\xc2\xa0", b"\xef\xbb\xbf", b"\x00"))
    return bytes(rng.choices(_BYTES, k=rng.randrange(1, 60)))
