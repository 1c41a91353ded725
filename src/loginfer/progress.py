"""How long work tells how far it is: one type of callback for the whole package."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

# Called with what is being done, how much of it is done, and how much there is (None: unknown).
Progress: TypeAlias = Callable[[str, int, int | None], None]
