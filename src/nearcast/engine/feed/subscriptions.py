"""Records of a compacted topic of subscriptions, as lines of events.

The key is the id. The value is a query, what stands beside a query in a subscribe
(`{"query": ..., "owner": ...}`), or a whole subscribe; no value ends the subscription. What is
neither goes on as it is, so that it is refused where all events are, with its reason.
"""

from __future__ import annotations

import msgspec

__all__ = ["line_of"]

_SUBSCRIBE = b'"subscribe"'
_BREAKS = bytes.maketrans(b"\r\n", b"  ")  # within JSON they are blanks


def line_of(key: bytes | None, value: bytes | None, time_ms: int) -> bytes:
    """The event of a record that was written at that time."""
    name = msgspec.json.encode(_text(key))
    if value is None:
        return b'{"op":"unsubscribe","id":%s,"time":%d}' % (name, time_ms)
    try:
        fields = msgspec.json.decode(value, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        line = value.translate(_BREAKS)
        return line if line.strip() else b"{}"  # a blank one would be skipped
    if not {"op", "query"} & fields.keys():
        fields = {"query": msgspec.Raw(value)}
    raw = {n: bytes(v).translate(_BREAKS) for n, v in fields.items()}
    if raw.get("op", _SUBSCRIBE) != _SUBSCRIBE:
        return b'{"op":"only subscribe comes this way"}'
    if "id" in raw and msgspec.json.decode(raw["id"]) != _text(key):
        raw["id"] = b'{"key":%s,"value":%s}' % (name, raw["id"])  # refused: they differ
    usual = {"op": _SUBSCRIBE, "id": name, "time": b"%d" % time_ms}
    pairs = (msgspec.json.encode(n) + b":" + v for n, v in (usual | raw).items())
    return b"{" + b",".join(pairs) + b"}"


def _text(key: bytes | None) -> str:
    """A key as an id; empty, which no id is, where it is none."""
    try:
        return (key or b"").decode()
    except UnicodeDecodeError:
        return ""
