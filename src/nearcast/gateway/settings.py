"""What a gateway is told when it starts: a file that `nearcast serve` writes."""

from __future__ import annotations

from pathlib import Path

import msgspec

from nearcast.kinds import Kind, kinds_of
from nearcast.model.errors import NearcastError
from nearcast.model.frame import Frame, Window
from nearcast.model.space import Space

__all__ = ["Limits", "Service", "load"]

_SEVERAL = 64 << 20


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one token may do; without tokens, what all clients together may."""

    body_bytes: int = 32 << 20  # of one request
    events_per_second: int = 0  # on average; 0: as many as fit
    subscriptions: int = 1_000_000
    connections: int = 20_000  # open streams
    webhooks: int = 100


class Service(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a service keeps things, and what it allows."""

    data: str  # folder of everything
    host: str = "127.0.0.1"
    port: int = 8080
    name: str = "gateway"  # several gateways of one run have different ones
    space: str = "geographic"
    plugins: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    window: tuple[int, int] = (1_000_000, 0)  # of the run: objects, milliseconds; one of them 0
    maxdist: float | None = None
    bounds: tuple[float, float, float, float] | None = None
    retain_ms: int = 0  # how far back asks reach
    fitted: bool = False  # whether keywords weigh by a fitted table
    archive: bool = False  # whether they reach further than that
    tokens: str = ""  # file of tokens; empty: nobody needs one
    certificate: str = ""  # files of TLS
    key: str = ""
    origins: tuple[str, ...] = ()  # of CORS; `*`: all
    private_webhooks: bool = False  # whether webhooks may go to addresses of this network
    segment_bytes: int = _SEVERAL  # of the event log, before another one is begun
    limits: Limits = Limits()
    tiles: str = ""  # URL of map tiles for the page; empty: it has its own base map

    @property
    def folder(self) -> Path:
        """`data` as a path."""
        return Path(self.data)

    @property
    def inbox(self) -> Path:
        """The event log."""
        return self.folder / "inbox"

    def of_kinds(self) -> dict[str, Kind]:
        """The kinds of query that the run takes."""
        count, span = self.window
        frame = Frame(Window(count, span), self.maxdist)
        found = kinds_of(self.plugins, self.kinds)
        return {name: kind.of_run(frame) for name, kind in found.items()}

    def of_space(self) -> Space:
        """The space of the run."""
        return Space(self.space)


def load(path: Path) -> Service:
    """The settings in a file."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Service)
    except OSError as error:
        raise NearcastError(f"{path}: {error.strerror}; start `nearcast serve` instead") from error
    except msgspec.DecodeError as error:
        raise NearcastError(f"{path}: {error}; start `nearcast serve` again") from error
