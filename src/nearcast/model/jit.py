"""The one way to declare a compiled function: Numba, cached on disk, with exact float semantics.

Numba has no type information, so that its own decorator would turn every function into `Any`. For
the type checker `njit` is the identity; at run time it is Numba's.

`fastmath` stays off everywhere: the order of float operations is part of what a result means
(SPEC: the notification log is a function of the event log alone), and kernels that may reorder
them would give different bits on different machines.

A `lean` function must not make arrays: it is compiled without reference counts. Those are atomic,
and one is counted for every array of every tuple that a function receives: a third of the time of
`index.balls.match` went into them.

The cache folder's name holds a digest of every source file that compiles something, of Numba, of
Python and of the processor: Numba itself only looks at a function's own file, and would keep a
caller of a changed function in another file.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

__all__ = ["cache_dir", "cache_home", "njit"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


def cache_home() -> Path:
    """The folder of what is made once per machine: `NEARCAST_CACHE_DIR`, or below `~/.cache`."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("NEARCAST_CACHE_DIR") or Path(home, "nearcast"))


def cache_dir() -> Path:
    """The folder of compiled code for exactly this source, Numba, Python and processor."""
    digest = hashlib.sha256(f"{version('numba')} {sys.version} {platform.processor()}".encode())
    package = Path(__file__).resolve().parent.parent
    for source in sorted(package.rglob("*.py")):
        text = source.read_bytes()
        if b"njit" in text:
            digest.update(str(source).encode() + text)
    return Path(cache_home(), "kernels-" + digest.hexdigest()[:16])


if TYPE_CHECKING:

    @overload
    def njit(function: _Function, /) -> _Function: ...
    @overload
    def njit(**options: Any) -> Callable[[_Function], _Function]: ...
    def njit(function: Any = None, /, **options: Any) -> Any:
        """Compile `function` on first use; `options`: Numba's (with cache), and `lean`."""

else:
    import numba
    import numba.core.config

    if "NUMBA_CACHE_DIR" not in os.environ:
        numba.core.config.CACHE_DIR = str(cache_dir())

    def njit(function=None, /, **options):
        """Compile `function` on first use; `options` are Numba's, with `cache=True` by default."""
        if options.get("fastmath"):
            raise ValueError("fastmath would make results depend on the machine; leave it off")
        if options.pop("lean", False):
            options["_nrt"] = False
        compiled = numba.njit(**{"cache": True, "nogil": True, **options})
        return compiled if function is None else compiled(function)
