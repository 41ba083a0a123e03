"""The flags of one experiment, each declared once, with the modes in which it has an effect.

A mode is a way to run an experiment: plain, or the one that a flag of its name chooses (`--full`,
`--spark`). A flag that has no effect in the chosen mode is refused.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from nearcast.model.errors import NearcastError

PLAIN = "plain"
SEED = 7  # of workloads, unless another one is given


class Flags:
    """Declares flags. One that is not given is None, False (a switch) or empty (a list)."""

    def __init__(self, parser: argparse.ArgumentParser, modes: Sequence[str] = ()) -> None:
        """`modes`: all but the plain one; of two that are chosen the first holds."""
        self._parser, self._others = parser, modes
        self._modes: dict[str, tuple[str, Sequence[str]]] = {}  # by the name in the namespace

    def add(self, *names: str, modes: Sequence[str] = (), **options: Any) -> None:
        """Declare a flag; `names` after the first are other spellings. No `modes`: all of them."""
        action = self._parser.add_argument(*names, **options)
        if modes:
            self._modes[action.dest] = names[0], modes
            action.help = f"{action.help} ({self._limit(modes)})"

    def seed(self) -> None:
        """Declare `--seed`."""
        self.add("--seed", type=int, default=SEED, metavar="S", help="of the workload")

    def _limit(self, modes: Sequence[str]) -> str:
        """Where a flag of these modes has an effect."""
        if PLAIN in modes:
            return "not with " + _listed([m for m in self._others if m not in modes])
        return "only with " + _listed(modes)

    def mode(self, args: argparse.Namespace) -> str:
        """The mode that `args` choose. Refuses a flag that was given and has no effect in it."""
        mode = next((m for m in self._others if getattr(args, m)), PLAIN)
        for dest, (name, modes) in self._modes.items():
            if mode not in modes and getattr(args, dest):
                raise NearcastError(
                    f"bench {args.name}: {name} has no effect here ({self._limit(modes)})"
                )
        return mode


def _listed(modes: Sequence[str]) -> str:
    return " or ".join(f"--{mode}" for mode in modes)


def given(args: argparse.Namespace, **names: str) -> dict[str, Any]:
    """{name in a setting: value} of the flags that were given; `names`: setting's to flag's."""
    values = {name: getattr(args, flag) for name, flag in names.items()}
    return {name: value for name, value in values.items() if value is not None}


def only_one(args: argparse.Namespace, flag: str) -> str | None:
    """The value of a flag that may be repeated in other modes; None if it was not given."""
    values: list[str] = getattr(args, flag)
    if len(values) > 1:
        raise NearcastError(f"bench {args.name}: give --{flag} once, not {', '.join(values)}")
    return values[0] if values else None
