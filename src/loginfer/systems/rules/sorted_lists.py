"""Places in ascending lists, for kernels."""

from __future__ import annotations

from typing import Any

from loginfer.compiled import inlined

__all__ = ["gallop", "position"]


@inlined
def position(values: Any, low: Any, high: Any, wanted: Any) -> Any:
    """Return the first place from `low` to `high` whose value is not below the wanted one."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def gallop(values: Any, low: Any, end: Any, wanted: Any) -> Any:
    """Return the same as `position`, sooner if the place is near the start."""
    step = 1
    while low + step < end and values[low + step] < wanted:
        low += step
        step *= 2
    high = min(low + step, end)
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low
