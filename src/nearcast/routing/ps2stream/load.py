"""Definition 1 of PS2Stream: the load of one worker."""

from __future__ import annotations

from typing import Any, NamedTuple


class Constants(NamedTuple):
    """Average costs, in microseconds. Only their proportions decide anything."""

    c1: float  # of checking whether one object matches one query
    c2: float  # of handling one object
    c3: float  # of one insertion of a query
    c4: float  # of one deletion of a query
    deletions: float  # |Q^d| for each of Q^i in the same time


# About what `measure.measure_constants` finds with `gi2`: `nearcast bench ps2stream --constants`.
PARAMETERS = {"c1": 1e-5, "c2": 0.3, "c3": 2.5, "c4": 2.5, "deletions": 1.0}


def constants_of(parameters: dict[str, float]) -> Constants:
    """The constants among the parameters of a plan."""
    return Constants(*(float(parameters[name]) for name in Constants._fields))


def load(c: Constants, objects: Any, queries: Any) -> Any:
    """Definition 1: L = c1·|O|·|Q^i| + c2·|O| + c3·|Q^i| + c4·|Q^d|; of numbers or of arrays."""
    return c.c1 * objects * queries + c.c2 * objects + (c.c3 + c.c4 * c.deletions) * queries


def balance(loads: list[float]) -> float:
    """L_max / L_min; infinite where a worker has nothing to do and another has."""
    if max(loads) == 0.0:
        return 1.0
    return max(loads) / min(loads) if min(loads) > 0.0 else float("inf")
