"""The callback by which long work reports its progress: one type for the whole package."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

# Called with what is being done, how much of it is done, and how much there is (None: unknown).
Progress: TypeAlias = Callable[[str, int, int | None], None]
