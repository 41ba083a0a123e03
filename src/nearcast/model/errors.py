"""The errors that nearcast raises on purpose."""

from __future__ import annotations

__all__ = ["Invalid", "NearcastError", "brief"]


class NearcastError(Exception):
    """Anything that nearcast refuses or cannot do; the message is meant for the user."""


class Invalid(NearcastError, ValueError):
    """A value that no event may hold; the message is one clear line that says what to do."""


def brief(value: object) -> str:
    """The value in at most 40 characters, for a message of one line."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # An integer of thousands of digits; lists in lists in ...
        text = f"one huge {type(value).__name__}"
    return text if len(text) <= 40 else text[:37] + "..."
