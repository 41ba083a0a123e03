"""The errors that nearcast raises on purpose."""

from __future__ import annotations

__all__ = ["Invalid", "NearcastError"]


class NearcastError(Exception):
    """Anything that nearcast refuses or cannot do; the message is meant for the user."""


class Invalid(NearcastError, ValueError):
    """A value that no event may hold; the message is one clear line that says what to do."""
