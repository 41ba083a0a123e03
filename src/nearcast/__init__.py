"""Location-aware publish/subscribe on Spark.

One event log goes in (objects, subscriptions, asks), one notification log comes out, and it is a
function of the event log alone. `nearcast.engine` runs it on Spark; `nearcast.model` says what
the events mean.

Importing this package does not import Spark: `Engine` is loaded when it is first used, so that
the model, the wire formats and the command line's help stay light.
"""

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nearcast.engine import Engine

__all__ = ["Engine", "__version__"]

try:
    __version__ = version("nearcast")
except PackageNotFoundError:  # run from a source tree that is not installed
    __version__ = "0+unknown"


def __getattr__(name: str) -> Any:
    """Load `Engine`, and with it Spark, on first use."""
    if name == "Engine":
        from nearcast.engine import Engine

        return Engine
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
