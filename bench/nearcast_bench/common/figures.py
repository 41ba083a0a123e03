"""What experiments report: figures as dictionaries, progress as lines of text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Figure = dict[str, Any]
Say = Callable[[str], None]
