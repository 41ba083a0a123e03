"""The one way to declare a compiled function: Numba, cached on disk, with exact float semantics.

Numba has no type information, so that its own decorator would turn every function into `Any`. For
the type checker `njit` is the identity; at run time it is Numba's.

`fastmath` stays off everywhere: the order of float operations is part of what a result means
(SPEC: the notification log is a function of the event log alone), and kernels that may reorder
them would give different bits on different machines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, overload

__all__ = ["njit"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

if TYPE_CHECKING:

    @overload
    def njit(function: _Function, /) -> _Function: ...
    @overload
    def njit(**options: Any) -> Callable[[_Function], _Function]: ...
    def njit(function: Any = None, /, **options: Any) -> Any:
        """Compile `function` on first use; `options` are Numba's, `cache=True` unless told."""

else:
    import numba

    def njit(function=None, /, **options):
        """Compile `function` on first use; `options` are Numba's, `cache=True` unless told."""
        if options.get("fastmath"):
            raise ValueError("fastmath would make results depend on the machine; leave it off")
        compiled = numba.njit(**{"cache": True, **options})
        return compiled if function is None else compiled(function)
