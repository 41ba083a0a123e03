"""Dead letters of webhooks, posted again: `nearcast webhooks replay`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from nearcast.gateway.hooks import DeadLetters, Hooks, HookState
from nearcast.gateway.posting import Poster, Refused
from nearcast.gateway.registry import Registry
from nearcast.model.errors import NearcastError
from nearcast.wire.durable import write_atomic

__all__ = ["find_hook", "known_hooks", "replay"]


def known_hooks(data: Path) -> list[HookState]:
    """The webhooks of a data folder."""
    registry = _registry(data)
    try:
        return Hooks(registry).all()
    finally:
        registry.close()


def _registry(data: Path) -> Registry:
    if not (data / "registry.sqlite").exists():
        raise NearcastError(f"webhooks: {data} is no folder of a service; name it with --data")
    return Registry(data)


def find_hook(data: Path, name: str, owner: str) -> HookState:
    """One of them."""
    for state in known_hooks(data):
        if (state.tenant, state.name) == (owner, name):
            return state
    raise NearcastError(f"webhooks: there is no {name!r}; `nearcast webhooks list` names them")


def replay(data: Path, state: HookState, private: bool) -> tuple[int, str]:
    """Post what was given up, in order, once each; (notifications sent, why the rest was not)."""
    return asyncio.run(_replay(data, state, private))


async def _replay(data: Path, state: HookState, private: bool) -> tuple[int, str]:
    letters = DeadLetters(data, state)
    # Taken out of the way first: what a gateway gives up meanwhile goes into a new file.
    taken = letters.path.with_suffix(".replaying")
    if taken.exists() or not letters.path.exists():
        if not taken.exists():
            return 0, ""
    else:
        letters.path.rename(taken)
    waiting = DeadLetters(data, state)
    waiting.path = taken
    rest, sent, reason = waiting.all(), 0, ""
    async with Poster(state.hook.url, state.hook.secret, private) as poster:
        while rest and not reason:
            try:
                await poster.post(bytes(rest[0].body))
            except Refused as error:
                reason = str(error)
            else:
                sent += rest.pop(0).count
                write_atomic(taken, b"".join(msgspec.json.encode(r) + b"\n" for r in rest))
    if not rest:
        taken.unlink()
    return sent, reason
